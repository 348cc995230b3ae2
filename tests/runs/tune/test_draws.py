import pytest
from hypothesis import given
from hypothesis import strategies as st

from unveil.errors import UnveilError
from unveil.runs.tune.space import Choice, Range, Settings, Space, grid_settings, random_settings

SMALL = Space("small", {"width": Choice((6, 8, 12)), "heads": Choice((1, 2, 4)), "tied": Choice((True, False))})
MIXED = Space("mixed", {"heads": Choice((1, 2, 4)), "lr": Range(1e-4, 1e-1, True)})


def valid(settings: Settings) -> bool:
    return int(settings.get("width", 8)) % int(settings["heads"]) == 0


@given(st.sampled_from([SMALL, MIXED]), st.integers(1, 12), st.integers(0, 12), st.integers(0, 100))
def test_more_trials_begin_with_the_same_settings(space: Space, few: int, more: int, seed: int) -> None:
    assert random_settings(space, few + more, seed, valid)[:few] == random_settings(space, few, seed, valid)


@given(st.integers(0, 100))
def test_no_combination_is_drawn_twice_and_all_can_be_had(seed: int) -> None:
    drawn = random_settings(SMALL, 100, seed, valid)
    assert all(map(valid, drawn))
    assert sorted(map(str, drawn)) == sorted(map(str, grid_settings(SMALL, None, valid)))
    assert len(drawn) == 16  # of 18: 6 has no quarter


def test_another_seed_draws_otherwise() -> None:
    assert random_settings(SMALL, 8, 0, valid) != random_settings(SMALL, 8, 1, valid)


def test_the_grid_goes_in_order() -> None:
    first, second, third, *_ = grid_settings(SMALL, None, valid)
    assert first == {"width": 6, "heads": 1, "tied": True}
    assert second == {"width": 6, "heads": 1, "tied": False}
    assert third == {"width": 6, "heads": 2, "tied": True}


def test_a_grid_has_no_ranges_and_is_done_whole() -> None:
    with pytest.raises(UnveilError, match="a grid needs lists of values: found 'lr'"):
        grid_settings(MIXED, None, valid)
    with pytest.raises(UnveilError, match=r"16 combinations.*--sampler random tries 4 of them"):
        grid_settings(SMALL, 4, valid)
    assert len(grid_settings(SMALL, 30, valid)) == 16


@pytest.mark.parametrize("space", [SMALL, MIXED])
def test_a_space_without_a_model(space: Space) -> None:
    with pytest.raises(UnveilError, match="no model can have any"):
        random_settings(space, 3, 0, lambda _: False)
