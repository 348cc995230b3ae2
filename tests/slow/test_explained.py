"""Epochs chosen by takes as the estimator explains them serve users better than epochs chosen by takes and f alone."""

from dataclasses import replace

import numpy as np
import pytest

from unveil.data.interactions import Sequences
from unveil.data.splits import leave_one_out
from unveil.simulation.world import World
from unveil.studies.results import TRUE
from unveil.studies.trial import TrialContext
from unveil.training.fit import prepare, validation_of
from unveil.training.recipe import Recipe


def found(estimator: str, seed: int, *, explained: bool) -> float:
    """NDCG@10 of the true favourite among all items, exposure learnt from a tenth of the impressions."""
    world = World.builtin(seed=0).with_severity(2)
    log = world.log(np.random.default_rng(seed), "rational_exposed", impressions=0.1)
    world, split = world.aligned_with(log), leave_one_out(Sequences.of(log))
    told = {"propensity.name": "recorded-temporal", "propensity.rate": 0.1} if estimator != "naive" else {}
    recipe = Recipe.preset("quick", "bert4rec").changed(
        {"estimator.name": estimator, "training.seed": seed, "training.threads": 1, **told}
    )
    ready = prepare(split.train, recipe, log=log, world=world)
    fitted = ready.fit(replace(validation_of(split, recipe), of_interactions=explained))
    trial = TrialContext.of(world, log, recipe, popular=False)
    figure = trial.tests[TRUE].evaluate(ready.model, resamples=1).value("full", "NDCG", 10)
    print(estimator, seed, "f + offset" if explained else "f", figure, fitted.best)
    return figure


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ["corrected", "rational"])
def test_what_the_estimator_expects_chooses_the_better_epoch(estimator: str) -> None:
    naive = np.mean([found("naive", seed, explained=False) for seed in range(3)])
    by_f, by_both = (np.mean([found(estimator, seed, explained=how) for seed in range(3)]) for how in (False, True))
    assert by_both > by_f + 0.03
    assert by_both > naive + 0.1
