"""What weights do to a sample: by hand, and at both ends of degeneracy."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from unveil.propensity.weights import diagnose, diagnose_parts, inverse

weights = st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=30)


def test_by_hand() -> None:
    found = diagnose(torch.tensor([1.0, 1.0, 2.0]), ceiling=2.0)
    assert found.slots == 3
    assert found.effective_sample_size == pytest.approx(16 / 6)
    assert found.ess_share == pytest.approx(16 / 18)
    assert found.largest_share == pytest.approx(0.5)
    assert found.spread == pytest.approx(2)
    assert found.clipped == pytest.approx(1 / 3)
    assert str(found) == "3 targets, effective sample size 3 (88.9%), largest share 0.5, spread 2, clipped 33.3%"


def test_inverse_clip_and_exponent() -> None:
    theta_M = torch.tensor([0.01, 0.25, 1.0])
    assert inverse(theta_M).tolist() == pytest.approx([100, 4, 1])
    assert inverse(theta_M, clip=0.04, exponent=0.5).tolist() == pytest.approx([5, 2, 1])


@given(weights, st.floats(1e-2, 1e2))
def test_bounds_and_freedom_of_scale(weight: list[float], scale: float) -> None:
    w_M = torch.tensor(weight, dtype=torch.float64)
    found, scaled = diagnose(w_M), diagnose(scale * w_M)
    assert 1 - 1e-9 <= found.effective_sample_size <= len(weight) * (1 + 1e-9)
    assert 1 / len(weight) * (1 - 1e-9) <= found.largest_share <= 1
    assert found.spread >= 1
    assert found.clipped == 0
    assert scaled.effective_sample_size == pytest.approx(found.effective_sample_size)
    assert scaled.largest_share == pytest.approx(found.largest_share)


@given(weights, st.lists(st.integers(0, 30), max_size=5).map(sorted), st.booleans())
def test_in_parts_they_are_the_same(weight: list[float], cuts: list[int], clipped: bool) -> None:
    w_M, ceiling = torch.tensor(weight), max(weight) if clipped else float("inf")
    found = diagnose_parts(w_M.tensor_split([cut for cut in cuts if cut <= len(w_M)]), ceiling)
    assert vars(found) == pytest.approx(vars(diagnose(w_M, ceiling)), rel=1e-12)
    assert (found.clipped > 0) == clipped


def test_healthy_weights_raise_no_warning() -> None:
    assert diagnose(torch.linspace(1, 10, 1000)).warnings() == []


def test_weights_that_do_nothing() -> None:
    (told,) = diagnose(torch.linspace(1, 1.01, 1000)).warnings()
    assert "will hardly differ from naive" in told


def test_weights_that_leave_nothing() -> None:
    w_M = torch.full((1000,), 1e-3)
    w_M[0] = 100
    collapsed, dominated = diagnose(w_M).warnings()
    assert "1,000 targets have an effective sample size of only 1." in collapsed
    assert "One target of 1,000 holds 99% of all weight" in dominated


def test_few_slots_are_no_domination() -> None:
    assert diagnose(torch.tensor([1.0, 2.0])).warnings() == []


def test_weights_of_zero() -> None:
    found = diagnose(torch.zeros(4))
    assert (found.effective_sample_size, found.largest_share) == (0, 0)
    with pytest.raises(ValueError, match="no weights"):
        diagnose(torch.zeros(0))
