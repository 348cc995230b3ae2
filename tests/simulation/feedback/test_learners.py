"""Networks in the loop: tiny ones, on a log of the built-in world."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.run_folders import TINY
from unveil.data.interactions import Sequences
from unveil.errors import UnveilError
from unveil.simulation.builtin import WorldSpec
from unveil.simulation.feedback.responses import response_model
from unveil.simulation.feedback.rounds import Loop, Network, Retraining, State, grown, held, load, save
from unveil.simulation.world import World
from unveil.training.recipe import Recipe

WORLD = World.builtin(WorldSpec(users=30, items=25, steps=12), seed=1)
LOG = WORLD.log(np.random.default_rng(2))
BASE = Sequences.of(LOG)
ROUNDS = 2
TRUTH = held(WORLD, BASE.n_steps + ROUNDS + 1)


def recipe(estimator: str, changes: Mapping[str, Any] | None = None) -> Recipe:
    return Recipe.preset("quick").changed({**TINY, "estimator.name": estimator, **(changes or {})})


def loop_of(response: str = "relevant", retrain: str = "scratch", world: World | None = TRUTH) -> Loop:
    return Loop(BASE, response_model({"name": response}), Retraining.parse(retrain), ROUNDS, 4, world=world)


def states(loop: Loop, estimator: str = "naive") -> list[State]:
    return list(loop.go(Network(recipe(estimator), loop.world)))


@pytest.mark.parametrize("estimator", ["naive", "ips", "itps", "ideal"])
def test_every_estimator_goes_round(estimator: str) -> None:
    found = states(loop_of(), estimator)
    assert len(found) == ROUNDS + 1
    for state in found:
        record = state.records[-1]
        assert np.isfinite([value for value in record.values() if value is not None]).all()
        assert record["relevance"] == pytest.approx(0.5, abs=0.5)
        assert record["ess"] == (1.0 if estimator in ("naive", "ideal") else pytest.approx(0.5, abs=0.5))
    chosen_U, last = found[-1].chosen_RU[-1], found[-1].records[-1]
    users = np.flatnonzero(chosen_U >= 0)
    gamma = TRUTH.relevance_of(users, chosen_U[users], np.full(len(users), BASE.n_steps + ROUNDS - 1))
    assert last["taken"] == pytest.approx(len(users) / 30)
    assert last["taken_relevance"] == pytest.approx(gamma.mean())


def test_all_losses_start_from_the_same_weights_and_rounds_from_others() -> None:
    loop = loop_of("uniform")
    still = {"training.lr": 1e-30, "training.warmup": 0.0}
    for_naive, for_itps = (
        [state.learnt.weights for state in loop.go(Network(recipe(name, still), TRUTH))] for name in ("naive", "itps")
    )
    for name, first in for_naive[0].items():
        torch.testing.assert_close(first, for_itps[0][name])
    assert any(not torch.equal(first, for_naive[1][name]) for name, first in for_naive[0].items())


def test_a_warm_start_goes_on_from_the_weights_at_hand() -> None:
    still = recipe("naive", {"training.lr": 1e-30, "training.warmup": 0.0})
    first, *later = (state.learnt.weights for state in loop_of(retrain="warm").go(Network(still, TRUTH)))
    for weights in later:
        for name, tensor in weights.items():
            torch.testing.assert_close(tensor, first[name])


def test_a_warm_start_goes_on_at_the_rate_that_training_ended_with() -> None:
    """The rate is cut to 0 after the first of two epochs: had a warm start the full rate again, weights would move."""
    cut = {"training.epochs": 2, "training.schedule": "step", "training.step_epoch": 1, "training.step_factor": 0.0}
    network = Network(recipe("naive", {**cut, "training.warmup": 0.0}), TRUTH)
    first, *later = (state.learnt.weights for state in loop_of(retrain="warm:1").go(network))
    assert later
    for weights in later:
        for name, tensor in weights.items():
            torch.testing.assert_close(tensor, first[name], rtol=0, atol=0)


@pytest.mark.parametrize("how", ["scratch", "warm:1", "every:2"])
def test_a_saved_network_goes_on_to_the_same_bits(how: str, tmp_path: Path) -> None:
    loop, learner = loop_of(retrain=how), Network(recipe("itps"), TRUTH)
    whole = list(loop.go(learner))
    for stop in range(ROUNDS):
        save(whole[stop], tmp_path / "state")
        *_, resumed = loop.go(learner, state=load(tmp_path / "state", loop, learner))
        assert resumed.records == whole[-1].records
        assert all(torch.equal(w, whole[-1].learnt.weights[name]) for name, w in resumed.learnt.weights.items())


def test_popularity_stands_in_for_exposure_in_a_world_too() -> None:
    by_popularity = states(loop_of("uniform", world=None), "itps")
    in_a_world = states(loop_of("uniform"), "itps")
    assert by_popularity[-1].records[-1]["loss"] == in_a_world[-1].records[-1]["loss"]
    for name in ("known-temporal", "logged"):
        with pytest.raises(UnveilError, match="in a loop the recommender decides what is shown"):
            Network(recipe("itps", {"propensity.name": name}), TRUTH)


def test_a_world_stands_still_beyond_its_last_step() -> None:
    users, items = np.arange(5), np.arange(5)
    for step in (0, 7, 11):
        now = np.full(5, step)
        assert np.array_equal(TRUTH.relevance_of(users, items, now), WORLD.relevance_of(users, items, now))
    last = WORLD.relevance_of(users, items, np.full(5, WORLD.n_steps - 1))
    assert np.array_equal(TRUTH.relevance_of(users, items, np.full(5, TRUTH.n_steps - 1)), last)
    assert held(WORLD, 3).n_steps == WORLD.n_steps
    assert grown(BASE, np.zeros((ROUNDS, 30), np.int32)).n_steps < TRUTH.n_steps
