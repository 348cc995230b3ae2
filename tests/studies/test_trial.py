"""Arms of a trial differ in the loss alone, and are judged on what the world says."""

from functools import cache

import numpy as np
import pytest
from polars.testing import assert_frame_equal

from unveil.estimators.base import weights_of
from unveil.simulation.builtin import WorldSpec
from unveil.simulation.world import World
from unveil.studies.results import STANDARD, TRUE
from unveil.studies.trial import Arm, TrialContext
from unveil.training.recipe import Recipe

SPEC = WorldSpec(users=40, items=30, steps=12, shortest=5, severity=1.5)
SMALL = {"model.width": 8, "model.length": 10, "task.batch_size": 16, "training.epochs": 4, "training.patience": None}
ALL = ("random", "popularity", "naive", "ips", "itps")


def recipe() -> Recipe:
    return Recipe.preset("quick").changed({**SMALL, "training.device": "cpu", "training.threads": 1})


@cache
def context() -> TrialContext:
    world = World.builtin(SPEC)
    return TrialContext.of(world, world.log(np.random.default_rng(0)), recipe(), negatives=5)


@cache
def arm(name: str) -> Arm:
    return context().arm(name, recipe())


def test_only_losses_are_fitted_and_only_some_weighted() -> None:
    arms = [arm(name) for name in ALL]
    assert [each.fitted is not None for each in arms] == [False, False, True, True, True]
    assert [each.trainer is not None and each.trainer.weights is not None for each in arms] == [
        False,
        False,
        False,
        True,
        True,
    ]


def test_all_arms_answer_the_same_questions() -> None:
    arms = [arm(name) for name in ALL]
    assert len({each.evaluations[TRUE].fingerprint for each in arms}) == 1
    assert len({each.evaluations[STANDARD].fingerprint for each in arms}) == 1
    assert arms[0].evaluations[TRUE].fingerprint != arms[0].evaluations[STANDARD].fingerprint


def test_an_arm_does_not_depend_on_those_before_it() -> None:
    world = World.builtin(SPEC)
    other = TrialContext.of(world, world.log(np.random.default_rng(0)), recipe(), negatives=5)
    arm("naive")
    alone, last = other.arm("itps", recipe()), arm("itps")
    assert_frame_equal(alone.evaluations[TRUE].frame, last.evaluations[TRUE].frame)
    assert_frame_equal(alone.evaluations[STANDARD].frame, last.evaluations[STANDARD].frame)


def test_losses_lead_to_different_models() -> None:
    naive, itps = (arm(name).evaluations[TRUE].frame for name in ("naive", "itps"))
    assert not naive.equals(itps)


def test_targets_are_the_favourite_and_the_last_item_taken() -> None:
    world, found = World.builtin(SPEC), context()
    truth, standard = arm("itps").evaluations[TRUE].frame, arm("itps").evaluations[STANDARD].frame
    for row in truth.iter_rows(named=True):
        gamma_V = world.relevance(np.array([row["user"]]), np.array([row["step"]]))[0]
        assert row["item"] == gamma_V.argmax()
        assert row["truth:Relevance@10"] == pytest.approx(float(gamma_V[row["top"]].mean()), abs=1e-6)
        assert row["truth:Regret@10"] == pytest.approx(
            float(np.sort(gamma_V)[-10:].mean() - gamma_V[row["top"]].mean()), abs=1e-6
        )
    whole = found.split.whole
    assert standard["item"].to_list() == [int(whole.history(user)[-1]) for user in standard["user"]]
    assert_frame_equal(truth.select("user", "step", "seen"), standard.select("user", "step", "seen"))


def test_the_weights_are_the_inverse_of_the_worlds_own_propensities() -> None:
    world, train = World.builtin(SPEC), context().split.train
    kept = train.recent(recipe().model.length)
    theta = world.exposure_of(kept.user_N, kept.item_N, kept.step_N)
    trainer = arm("itps").trainer
    assert trainer is not None
    assert trainer.weights is not None
    weight_N = weights_of(trainer.estimator, trainer.task.slots).numpy()
    np.testing.assert_allclose(np.sort(weight_N), np.sort(1 / theta), rtol=1e-5)
    assert trainer.weights.slots == len(theta)


def test_favourites_that_nobody_took_are_counted() -> None:
    found = context()
    target = arm("itps").evaluations[TRUE].frame["item"].to_numpy()
    assert found.unlearnable == np.mean(~np.isin(target, found.split.train.item_N))


def test_a_propensity_is_fitted_once_for_all_arms_that_ask_for_it() -> None:
    world = World.builtin(WorldSpec(users=30, items=20, steps=10), 0)
    bench = TrialContext.of(world, world.log(np.random.default_rng(0)), Recipe(), negatives=5)
    asked = Recipe().changed({"estimator.name": "itps", "propensity.name": "popularity-temporal"})
    found = bench.propensity(asked)
    assert found is bench.propensity(asked.changed({"estimator.name": "corrected"}))
    assert found is not bench.propensity(asked.changed({"propensity.add": 1.0}))
    assert bench.propensity(Recipe()) is None


@pytest.mark.parametrize("by_log", [False, True])
def test_validation_is_by_the_truth_unless_asked_for_by_the_log(by_log: bool) -> None:
    world = World.builtin(WorldSpec(users=30, items=20, steps=10), 0)
    bench = TrialContext.of(world, world.log(np.random.default_rng(0)), Recipe(), negatives=5, by_log=by_log)
    valid, asked = bench.split.valid, bench.validation.evaluator.cases
    best_C = world.ideal_target(valid.user_C, valid.step_C)
    assert (best_C != valid.item_C).any()
    np.testing.assert_array_equal(asked.item_C, valid.item_C if by_log else best_C)
    default = TrialContext.of(world, bench.log, Recipe(), negatives=5).validation.evaluator.cases
    np.testing.assert_array_equal(default.item_C, best_C)
