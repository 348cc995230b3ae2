"""The parts put together: which propensity an estimator gets, what validates, and what is refused before training."""

from typing import Any

import numpy as np
import pytest
import torch

from tests.run_folders import TINY, small_log
from tests.scorers import Constant
from unveil.data.interactions import Interactions, Sequences
from unveil.data.splits import Split, leave_one_out
from unveil.errors import UnveilError
from unveil.evaluation.evaluator import ValidationEvaluator
from unveil.models.baselines import Random
from unveil.simulation.builtin import WorldSpec
from unveil.simulation.world import World
from unveil.training.fit import prepare, validation_of
from unveil.training.recipe import Recipe
from unveil.training.trainer import Trainer

WORLD = World.builtin(WorldSpec(users=30, items=25, steps=12), seed=1)


@pytest.fixture(scope="module")
def log() -> Interactions:
    return WORLD.log(np.random.default_rng(0))


def recipe(changes: dict[str, Any]) -> Recipe:
    return Recipe.preset("quick").changed({**TINY, **changes})


def ready(log: Interactions, changes: dict[str, Any], world: World | None = None) -> Trainer:
    train = leave_one_out(Sequences.of(log)).train
    return prepare(train, recipe(changes), log=log, world=None if world is None else world.aligned_with(log))


@pytest.mark.parametrize(
    ("estimator", "in_world", "asked", "propensity", "by_proxy"),
    [
        ("naive", False, "auto", None, False),
        ("ips", False, "auto", "popularity-static", True),
        ("itps", False, "auto", "popularity-temporal", True),
        ("ips", True, "auto", "known-static", False),
        ("itps", True, "auto", "known-temporal", False),
        ("itps", True, "popularity-temporal", "popularity-temporal", True),
        ("itps", False, "logged", "logged", False),
        ("ideal", True, "auto", None, False),
    ],
)
def test_an_estimator_gets_the_propensity_it_needs(
    estimator: str, in_world: bool, asked: str, propensity: str | None, by_proxy: bool, log: Interactions
) -> None:
    changes = {"estimator.name": estimator, "propensity.name": asked}
    found = ready(log, changes, WORLD if in_world else None)
    assert found.estimator.name == estimator
    assert (found.propensity and found.propensity.name) == propensity
    assert found.by_proxy == by_proxy
    assert (found.weights is None) == (propensity is None)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"estimator.name": "ideal"}, "'ideal' needs a world whose truth is known, and none is given"),
        ({"estimator.name": "itps", "propensity.name": "known-temporal"}, "needs a world whose exposure is known"),
        ({"estimator.name": "ips", "propensity.name": "popularity-temporal"}, "needs a static propensity"),
        ({"estimator.name": "itps", "estimator.clipp": 0.1}, "Did you mean 'clip'"),
        ({"estimator.name": "itps", "propensity.half_with": 1}, "Did you mean 'half_width'"),
        ({"training.device": "gpu9"}, "not a device"),
        ({"model.name": "bert4rec", "task.mask_probability": 0.0}, "mask_probability"),
    ],
)
def test_what_is_missing_or_wrong_is_refused_before_training(
    changes: dict[str, Any], message: str, log: Interactions
) -> None:
    with pytest.raises(UnveilError, match=message):
        ready(log, changes)


def test_a_log_without_propensities_has_none_logged() -> None:
    with pytest.raises(UnveilError, match="'logged' needs a log with a propensity column"):
        ready(small_log(), {"estimator.name": "itps", "propensity.name": "logged"})


def test_an_empty_training_part_is_refused(log: Interactions) -> None:
    train = leave_one_out(Sequences.of(log)).train
    empty = train.cut(np.zeros_like(train.length_U), np.zeros_like(train.length_U))
    with pytest.raises(UnveilError, match="the training part has no events"):
        prepare(empty, recipe({}))


@pytest.fixture(scope="module")
def split() -> Split:
    return leave_one_out(Sequences.of(small_log()))


@pytest.mark.parametrize(
    ("monitor", "tied"),  # tied with four negatives, a target is fifth
    [("NDCG@10", 1 / np.log2(6)), ("Recall@3", 0.0)],
)
def test_the_monitor_says_what_validates(monitor: str, tied: float, split: Split) -> None:
    found = validation_of(split, recipe({"training.monitor": monitor}), protocol="popular-4", seed=3)
    same = ValidationEvaluator.of(split, length=TINY["model.length"], monitor=monitor, protocol="popular-4", seed=3)
    scorer = Random(split.whole.n_items)
    assert found(scorer) == same(scorer) > 0
    assert found(Constant(split.whole.n_items)) == pytest.approx(tied)


@pytest.mark.parametrize(
    ("monitor", "message"),
    [
        ("NDCG", r"training\.monitor: no such figure: found 'NDCG', expected a metric at a number of places"),
        ("NDCG@0", "no such figure"),
        ("NDCG@ten", "no such figure"),
        ("NDGC@10", "Did you mean 'NDCG'"),
        ("Gini@10", "not a metric of the target's rank"),
    ],
)
def test_a_monitor_that_is_none(monitor: str, message: str, split: Split) -> None:
    with pytest.raises(UnveilError, match=message):
        validation_of(split, recipe({"training.monitor": monitor}))


def test_training_leaves_the_best_weights(split: Split) -> None:
    chosen = recipe({"training.epochs": 4, "training.lr": 0.1})
    validation = validation_of(split, chosen)
    parts = prepare(split.train, chosen)
    fitted = parts.fit(validation)
    assert fitted.best is not None
    assert (
        fitted.best.value
        == validation(parts.model)
        == max(e.validation["NDCG@10"] for e in fitted.epochs if e.validation)
    )
    assert next(parts.model.parameters()).device == torch.device("cpu")


def test_without_validation_the_last_weights_stay(split: Split) -> None:
    parts = prepare(split.train, recipe({"training.epochs": 2}))
    assert parts.fit(None).best is None


@pytest.mark.parametrize("name", ["bert4rec", "sasrec", "gru4rec"])
@pytest.mark.parametrize("estimator", ["naive", "itps", "ideal"])
def test_every_network_learns_under_every_kind_of_estimator(name: str, estimator: str, log: Interactions) -> None:
    changes = {"model.name": name, "estimator.name": estimator, "training.epochs": 8, "training.lr": 1e-2}
    found = ready(log, changes, WORLD)
    assert found.model.name == name
    losses = [epoch.loss for epoch in found.fit(None).epochs]
    assert losses[-1] < losses[0]
