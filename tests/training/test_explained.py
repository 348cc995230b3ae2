"""Which epoch is kept: the one that predicts takes best as its estimator explains them, not f by itself."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
import torch

from tests.run_folders import TINY
from unveil.data.interactions import Interactions, Sequences
from unveil.data.slots import Slots, histories
from unveil.data.splits import Split, leave_one_out
from unveil.estimators.base import ESTIMATORS, Explaining
from unveil.simulation.builtin import WorldSpec
from unveil.simulation.world import World
from unveil.studies.trial import TrialContext
from unveil.training.fit import prepare, validation_of
from unveil.training.recipe import Recipe
from unveil.training.trainer import Trainer

WORLD = World.builtin(WorldSpec(users=30, items=25, steps=12), seed=1)
EXPLAINING = {
    "corrected",
    "corrected-sampled",
    "corrected-distilled",
    "corrected-tempered",
    "logit-adjustment",
    "rational",
    "consideration",
    "wmf-distilled-rated",
}


@pytest.fixture(scope="module")
def log() -> Interactions:
    return WORLD.log(np.random.default_rng(0), ratings_noise=1.0)


def trained(name: str, log: Interactions) -> tuple[Trainer, Split, Recipe, float]:
    """Two epochs, and what validation said of the last."""
    recipe = Recipe.preset("quick").changed({**TINY, "estimator.name": name, "training.epochs": 2})
    split = leave_one_out(Sequences.of(log))
    ready = prepare(split.train, recipe, log=log, world=WORLD.aligned_with(log))
    recipe = recipe.changed({"training.validate_every": 2})
    fitted = replace(ready, config=recipe.training).fit(validation_of(split, recipe))
    assert fitted.best is not None
    return ready, split, recipe, fitted.best.value


def by_hand(ready: Trainer, split: Split, recipe: Recipe, *, shifted: bool) -> float:
    """NDCG@10 of the validation takes among all that the user has not met, one case at a time."""
    total = 0.0
    for user, item, step, seen in zip(
        split.valid.user_C, split.valid.item_C, split.valid.step_C, split.valid.seen_C, strict=True
    ):
        one = (torch.tensor([int(each)]) for each in (user, item, step))
        met = split.whole.item_N[split.whole.offset_U1[user] : split.whole.offset_U1[user] + seen]
        with torch.inference_mode():
            token_BL = histories(split.whole, np.array([user]), np.array([seen]), recipe.model.length)
            score_V = ready.model.scores(token_BL)[0]
            if shifted:
                assert isinstance(ready.estimator, Explaining)
                score_V = score_V + ready.estimator.offset(Slots(*one))[0]
        rivals = np.setdiff1d(np.arange(split.whole.n_items), np.append(met, item))
        rank = 1 + int((score_V[rivals] >= score_V[item]).sum())
        total += 1 / np.log2(rank + 1) if rank <= 10 else 0
    return total / len(split.valid)


@pytest.mark.parametrize("name", sorted(EXPLAINING))
def test_validation_ranks_by_f_and_what_the_estimator_says_of_exposure(name: str, log: Interactions) -> None:
    ready, split, recipe, value = trained(name, log)
    assert value == pytest.approx(by_hand(ready, split, recipe, shifted=True), abs=1e-6)


@pytest.mark.parametrize("name", ["naive", "itps", "wmf-distilled"])
def test_estimators_that_explain_nothing_are_validated_by_f(name: str, log: Interactions) -> None:
    ready, split, recipe, value = trained(name, log)
    assert value == pytest.approx(by_hand(ready, split, recipe, shifted=False), abs=1e-6)


def test_these_are_all_that_explain_something() -> None:
    assert {name for name in ESTIMATORS if hasattr(ESTIMATORS[name], "offset")} == EXPLAINING


def test_where_the_truth_is_asked_for_nothing_is_added(log: Interactions) -> None:
    recipe = Recipe.preset("quick").changed({**TINY, "training.epochs": 1})
    by_truth, by_log = (TrialContext.of(WORLD, log, recipe, negatives=5, by_log=by_log) for by_log in (False, True))
    assert not by_truth.validation.of_interactions
    assert by_log.validation.of_interactions


def test_no_other_order_predicts_takes_better_than_that_of_f_and_exposure() -> None:
    """P(taken) ∝ θ exp f, four items: the mean of NDCG is highest in the order of P, and f alone has another."""
    f_V, theta_V = np.array([1.0, 0.5, 0.0, -0.5]), np.array([0.05, 0.2, 0.9, 0.6])
    chance_V = theta_V * np.exp(f_V) / (theta_V * np.exp(f_V)).sum()
    gain = 1 / np.log2(np.arange(2, 6))
    mean = {order: float(gain @ chance_V[list(order)]) for order in permutations(range(4))}
    expected = tuple(int(i) for i in np.argsort(-(f_V + np.log(theta_V))))
    assert max(mean, key=lambda order: mean[order]) == expected
    assert mean[tuple(int(i) for i in np.argsort(-f_V))] < mean[expected] - 0.1
