from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from unveil.errors import UnveilError
from unveil.evaluation import sampling
from unveil.evaluation.sampling import draw
from unveil.wording import quantity


def drawn(weight: list[float], n: int, barred: np.ndarray, n_cases: int, seed: int = 0) -> np.ndarray:
    barred_CV = np.broadcast_to(barred, (n_cases, len(weight)))
    return draw(np.array(weight), n, lambda part: barred_CV[part].copy(), n_cases, np.random.default_rng(seed))


def successive(weight: list[float], barred: list[int], n: int) -> dict[tuple[int, ...], float]:
    """The law of n draws one after the other, each ∝ weight among what is left, by enumeration."""
    law: dict[tuple[int, ...], float] = {}
    for order in permutations([i for i, w in enumerate(weight) if w > 0 and i not in barred], n):
        left, p = sum(w for i, w in enumerate(weight) if i not in barred), 1.0
        for item in order:
            p, left = p * weight[item] / left, left - weight[item]
        law[order] = p
    return law


@pytest.mark.parametrize(
    ("weight", "barred", "n"),
    [
        ([5.0, 3.0, 1.0, 1.0, 0.0], [], 2),  # mostly settled by rejection
        ([1.0, 1.0, 1.0, 1.0, 1.0], [2], 3),
        ([90.0, 5.0, 3.0, 2.0, 50.0], [4], 3),  # mostly left to the Gumbel keys
    ],
)
def test_follows_the_law_of_successive_draws(weight: list[float], barred: list[int], n: int) -> None:
    mask = np.isin(np.arange(len(weight)), barred)
    negative_CN = drawn(weight, n, mask, 40_000, seed=1)
    law = successive(weight, barred, n)
    found = dict.fromkeys(law, 0)
    for row in negative_CN.tolist():
        found[tuple(row)] += 1
    assert chisquare(list(found.values()), [40_000 * p for p in law.values()]).pvalue > 0.001


def test_first_draws_are_by_weight_over_a_catalogue() -> None:
    weight = [float(w) for w in np.random.default_rng(3).integers(0, 60, 200)]
    first_C = drawn(weight, 10, np.zeros(200, bool), 30_000, seed=2)[:, 0]
    count_V, expected_V = np.bincount(first_C, minlength=200), 30_000 * np.array(weight) / sum(weight)
    drawable = expected_V > 0
    assert not count_V[~drawable].any()
    assert chisquare(count_V[drawable], expected_V[drawable]).pvalue > 0.001


@given(seed=st.integers(0, 10_000), n=st.integers(1, 6))
def test_never_twice_never_barred_never_without_weight(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    weight_V, barred_CV = rng.integers(0, 4, 14).astype(float), rng.random((9, 14)) < 0.3
    left = int(((weight_V > 0) & ~barred_CV).sum(axis=1).min())
    if left < n:
        found = f"{quantity(n, 'negative')} asked for, {quantity(left, 'item')} to draw from"
        with pytest.raises(UnveilError, match=f"more negatives than items.*{found}"):
            draw(weight_V, n, lambda part: barred_CV[part], 9, rng)
        return
    negative_CN = draw(weight_V, n, lambda part: barred_CV[part], 9, rng)
    assert all(len(set(row)) == n for row in negative_CN.tolist())
    assert not np.take_along_axis(barred_CV, negative_CN, axis=1).any()
    assert (weight_V[negative_CN] > 0).all()


def test_everything_that_is_left_can_be_drawn() -> None:
    negative_CN = drawn([1.0, 1000.0, 1.0, 0.0, 1.0], 3, np.array([0, 1, 0, 0, 0], bool), 50)
    assert {tuple(sorted(row)) for row in negative_CN.tolist()} == {(0, 2, 4)}


def test_works_in_parts_of_bounded_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "CELLS", 3 * 7)
    asked: list[int] = []

    def barred(part: slice) -> np.ndarray:
        asked.append(part.stop - part.start)
        return np.zeros((part.stop - part.start, 7), bool)

    assert draw(np.ones(7), 2, barred, 10, np.random.default_rng(0)).shape == (10, 2)
    assert asked == [3, 3, 3, 1]


def test_the_case_with_too_few_items_is_named() -> None:
    barred_CV = np.zeros((5, 6), bool)
    barred_CV[3, :4] = True
    with pytest.raises(UnveilError, match=r"case 3: more negatives than items.*at most 2 negatives"):
        draw(np.ones(6), 3, lambda part: barred_CV[part], 5, np.random.default_rng(0))
