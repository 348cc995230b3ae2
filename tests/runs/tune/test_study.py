import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from unveil.errors import UnveilError
from unveil.runs.tune.study import Plan, Settings, Space, draw, grid, random_search
from unveil.training.recipe import Recipe


def space(tmp_path: Path, content: str) -> Space:
    path = tmp_path / "space.toml"
    path.write_text(content)
    return Space.read(str(path))


def refused(tmp_path: Path, content: str) -> str:
    with pytest.raises(UnveilError) as error:
        space(tmp_path, content).check(Recipe().changed)
    return str(error.value)


def test_the_papers_space_ships() -> None:
    found = Space.read("paper")
    assert found.plain() == {
        "model.width": [8, 16, 32, 64],
        "model.blocks": [1, 2],
        "model.heads": [1, 2],
        "model.dropout": [0.0, 0.1, 0.2, 0.4],
        "task.batch_size": [8, 16, 32],
        "task.mask_probability": [0.1, 0.15, 0.2, 0.4, 0.6],
    }
    assert found.size == 960
    assert Space.read("paper-ml-20m").size == 3 * 3 * 4 * 4 * 3 * 5


@pytest.mark.parametrize("name", ["paper", "paper-ml-20m"])
def test_every_value_of_a_shipped_space_can_be_trained(name: str) -> None:
    Space.read(name).check(Recipe.preset("paper").changed)


def test_groups_and_dotted_names_say_the_same(tmp_path: Path) -> None:
    dotted = space(tmp_path, '"model.width" = [8, 16]\n"training.lr" = {low = 1e-4, high = 1e-2, log = true}\n')
    nested = space(tmp_path, "[model]\nwidth = [8, 16]\n[training]\nlr = {low = 1e-4, high = 1e-2, log = true}\n")
    assert dotted == nested
    assert dotted.dimensions == {
        "model.width": CategoricalDistribution((8, 16)),
        "training.lr": FloatDistribution(1e-4, 1e-2, True),
    }
    assert dotted.size is None


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ('"model.widht" = [8]', "Did you mean 'model.width'?"),
        ('"evaluation.seed" = [8]', "unknown setting"),
        ('"model.width" = []', "the list is empty"),
        ('"model.width" = [8, 8]', "a value is there twice"),
        ('"model.width" = [[8]]', "not a plain value"),
        ('"model.width" = ["wide"]', "found 'wide', expected a whole number"),
        ('"model.width" = 8', "expected a list of values"),
        ('"model.width" = {low = 8}', "expected low and high"),
        ('"model.width" = {low = 8, high = 4}', "expected low and high with low < high"),
        ('"training.lr" = {low = 0.0, high = 1.0, log = true}', "log = true only above 0"),
        ('"training.lr" = {low = 0.1, high = 1.0, steps = 3}', "not a range"),
        ('"training.seed" = [1, 2]', "Replicates set it"),
        ('"training.threads" = [1, 2]', "changes nothing that is learnt"),
        ('"estimator.name" = ["naive", "itpz"]', "Did you mean 'itps'?"),
        ('"model.width" = [7]\n"model.heads" = [2]', "width must be a multiple of heads"),
        ("", "the space is empty"),
        ("width = = 3", "not TOML"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, content: str, told: str) -> None:
    assert told in refused(tmp_path, content)


def test_a_space_that_is_not_there() -> None:
    with pytest.raises(UnveilError, match="Did you mean 'paper'"):
        Space.read("papr")
    with pytest.raises(UnveilError, match="no such space"):
        Space.read("nowhere/space.toml")


def test_a_value_that_fits_with_some_others_is_fine(tmp_path: Path) -> None:
    space(tmp_path, '"model.width" = [6, 8]\n"model.heads" = [1, 4]').check(Recipe().changed)


@given(st.floats(1e-6, 1e3), st.floats(1.001, 1e3), st.booleans(), st.integers(0, 9))
def test_a_range_is_drawn_from_inside(low: float, ratio: float, log: bool, seed: int) -> None:
    drawn = draw(FloatDistribution(low, low * ratio, log), np.random.default_rng(seed))
    assert isinstance(drawn, float)
    assert low * (1 - 1e-12) <= drawn <= low * ratio * (1 + 1e-12)


@pytest.mark.parametrize("log", [False, True])
def test_whole_ranges_reach_both_ends(log: bool) -> None:
    rng = np.random.default_rng(0)
    drawn = [draw(IntDistribution(1, 4, log), rng) for _ in range(2000)]
    assert {type(value) for value in drawn} == {int}
    share = np.bincount(drawn, minlength=5)[1:] / 2000
    ends = np.array([0.5, 1.5, 2.5, 3.5, 4.5])
    expected = np.diff(np.log(ends) if log else ends) / (math.log(9) if log else 4)
    assert share == pytest.approx(expected, abs=0.05)


SMALL = Space(
    "small",
    {
        "width": CategoricalDistribution((6, 8, 12)),
        "heads": CategoricalDistribution((1, 2, 4)),
        "tied": CategoricalDistribution((True, False)),
    },
)
MIXED = Space("mixed", {"heads": CategoricalDistribution((1, 2, 4)), "lr": FloatDistribution(1e-4, 1e-1, True)})


def valid(settings: Settings) -> bool:
    return int(settings.get("width", 8)) % int(settings["heads"]) == 0


@given(st.sampled_from([SMALL, MIXED]), st.integers(1, 12), st.integers(0, 12), st.integers(0, 100))
def test_more_trials_begin_with_the_same_settings(space: Space, few: int, more: int, seed: int) -> None:
    assert random_search(space, few + more, seed, valid)[:few] == random_search(space, few, seed, valid)


@given(st.integers(0, 100))
def test_no_combination_is_drawn_twice_and_all_can_be_had(seed: int) -> None:
    drawn = random_search(SMALL, 100, seed, valid)
    assert all(map(valid, drawn))
    assert sorted(map(str, drawn)) == sorted(map(str, grid(SMALL, None, valid)))
    assert len(drawn) == 16  # of 18: 6 has no quarter


def test_another_seed_draws_otherwise() -> None:
    assert random_search(SMALL, 8, 0, valid) != random_search(SMALL, 8, 1, valid)


def test_the_grid_goes_in_order() -> None:
    first, second, third, *_ = grid(SMALL, None, valid)
    assert first == {"width": 6, "heads": 1, "tied": True}
    assert second == {"width": 6, "heads": 1, "tied": False}
    assert third == {"width": 6, "heads": 2, "tied": True}


def test_a_grid_has_no_ranges_and_is_done_whole() -> None:
    with pytest.raises(UnveilError, match="a grid needs lists of values: found 'lr'"):
        grid(MIXED, None, valid)
    with pytest.raises(UnveilError, match=r"16 combinations.*--sampler random tries 4 of them"):
        grid(SMALL, 4, valid)
    assert len(grid(SMALL, 30, valid)) == 16


@pytest.mark.parametrize("space", [SMALL, MIXED])
def test_a_space_without_a_model(space: Space) -> None:
    with pytest.raises(UnveilError, match="no model can have any"):
        Plan(space, 3).configurations(0, lambda _: False)
