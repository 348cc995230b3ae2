"""What every recipe owes, whoever wrote it."""

from typing import Any

import numpy as np
import pytest

from tests.models.factorization.tiny import from_factors
from unveil.errors import UnveilError
from unveil.models.factorization.negatives import Negatives
from unveil.models.factorization.recipes import RECIPES, Learnt
from unveil.models.factorization.task import Task
from unveil.models.factorization.tuples import split

SMALL: dict[str, dict[str, Any]] = {
    "paper": {"width": 4, "epochs": 5, "batch": 64, "lr": 0.01},
    "regularised": {"width": 4, "epochs": 5},
    "posterior": {"width": 3, "sweeps": 6, "burn_in": 3},
}
TUPLES, _ = from_factors(1500, (30, 25, 8), seed=0)


def task(name: str, *, redraw: bool = True) -> Task:
    parts = split(TUPLES, np.random.default_rng(0))
    if name == "relevance":
        return Task.of_ratings(parts)
    return Task.of_exposure(parts, Negatives(TUPLES), np.random.default_rng(1), redraw=redraw)


def learn(recipe: str, of: Task, seed: int = 0) -> tuple[Learnt, int]:
    done: list[int] = []
    learnt = RECIPES.build(recipe, SMALL.get(recipe, {})).learn(of, np.random.default_rng(seed), done.append)
    return learnt, sum(done)


@pytest.mark.parametrize("of", ["relevance", "exposure"])
@pytest.mark.parametrize("recipe", list(RECIPES))
class TestEveryRecipe:
    def test_it_does_the_work_it_announced(self, recipe: str, of: str) -> None:
        assert learn(recipe, task(of))[1] == RECIPES.build(recipe, SMALL.get(recipe, {})).work(task(of))

    def test_it_gives_finite_factors_of_the_right_size_and_all_its_predictions(self, recipe: str, of: str) -> None:
        asked = task(of)
        learnt, _ = learn(recipe, asked)
        assert learnt.factors.shape == TUPLES.shape
        assert all(np.isfinite(table).all() for table in vars(learnt.factors).values())
        assert len(learnt.valid_N) == len(asked.parts.valid)
        assert len(learnt.test_N) == len(asked.parts.test)
        if of == "exposure":
            assert ((learnt.test_N >= 0) & (learnt.test_N <= 1)).all()

    def test_every_side_matters(self, recipe: str, of: str) -> None:
        factors = learn(recipe, task(of))[0].factors
        for side in range(3):
            two = [np.zeros(2, int), np.zeros(2, int), np.zeros(2, int)]
            two[side] = np.array([0, 1])
            one, other = factors.logits_of(*two)
            assert one != other

    def test_it_is_the_seed_s(self, recipe: str, of: str) -> None:
        one, same, other = (learn(recipe, task(of), seed)[0] for seed in (0, 0, 1))
        np.testing.assert_array_equal(one.factors.Q_VK, same.factors.Q_VK)
        np.testing.assert_array_equal(one.test_N, same.test_N)
        assert (one.test_N != other.test_N).any()


def test_negatives_are_drawn_anew_for_each_epoch_unless_fixed() -> None:
    rng = np.random.default_rng(0)
    anew, fixed = task("exposure"), task("exposure", redraw=False)
    assert (anew.epoch(rng).key_N != anew.epoch(rng).key_N).any()
    np.testing.assert_array_equal(fixed.epoch(rng).key_N, fixed.epoch(rng).key_N)
    assert len(anew.epoch(rng)) == len(fixed.epoch(rng)) == anew.size == fixed.size == 4 * 1200
    for asked in (anew, fixed):
        assert not set(asked.epoch(rng).key_N[1200:].tolist()) & set(TUPLES.key_N.tolist())


def test_the_best_epoch_is_kept_where_asked() -> None:
    of = task("relevance")
    options = {"width": 4, "epochs": 60, "lr": 0.03}
    last, best = (
        RECIPES.build("paper", {**options, "keep_best": keep}).learn(of, np.random.default_rng(0), lambda n: None)
        for keep in (False, True)
    )
    assert of.loss(best.valid_N, of.parts.valid) < of.loss(last.valid_N, of.parts.valid)


@pytest.mark.parametrize(
    ("recipe", "options", "says"),
    [
        ("posterior", {"width": 0}, r"posterior\.width: .*found 0, expected at least 1"),
        ("posterior", {"sweeps": 10, "burn_in": 10}, r"posterior\.burn_in: .*found 10, expected 0 to 9"),
        ("posterior", {"persistence": 1.0}, r"posterior\.persistence: .*expected 0 to 0\.999"),
        ("paper", {"batch": 0}, r"paper\.batch"),
        ("paper", {"epochs": 0}, r"paper\.epochs"),
        ("regularised", {"lr": float("nan")}, r"regularised\.lr"),
        ("regularised", {"penalty": -1.0}, r"regularised\.penalty"),
    ],
)
def test_options_out_of_range_are_refused(recipe: str, options: dict[str, Any], says: str) -> None:
    with pytest.raises(UnveilError, match=says):
        RECIPES.build(recipe, options)
