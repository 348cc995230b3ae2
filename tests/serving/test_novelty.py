import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.evaluation.small import histories_of
from unveil.errors import UnveilError
from unveil.models.baselines import LessPopular
from unveil.serving.recommender import shift


def test_by_hand() -> None:
    count_V = histories_of([0, 1, 0], [0], n_items=3).count_V
    assert count_V.tolist() == [3, 1, 0]
    expected = [-0.5 * math.log(share / 7) for share in (4, 2, 1)]
    assert shift(count_V, 0.5).tolist() == pytest.approx(expected)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=8), st.floats(0, 1))
def test_it_is_the_control_of_the_experiments(counts: list[int], novelty: float) -> None:
    """One rule: the dial shifts scores as `LessPopular` does."""
    count_V = np.array(counts)
    control = LessPopular(lambda token_BL: torch.zeros(1, len(counts)), torch.from_numpy(count_V), novelty)
    torch.testing.assert_close(shift(count_V, novelty), control.scores(torch.zeros(1, 1))[0])


@given(st.lists(st.integers(0, 50), min_size=2, max_size=8))
def test_turned_up_it_lifts_what_is_less_popular(counts: list[int]) -> None:
    shift_V = shift(np.array(counts), 1.0).numpy()
    assert counts[int(shift_V.argmax())] == min(counts)
    assert counts[int(shift_V.argmin())] == max(counts)


@pytest.mark.parametrize("novelty", [-4.1, 1.1, float("nan")])
def test_beyond_its_ends(novelty: float) -> None:
    with pytest.raises(UnveilError, match="novelty is out of range"):
        shift(np.array([1]), novelty)
