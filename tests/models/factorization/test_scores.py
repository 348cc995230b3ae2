import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unveil.models.factorization.scores import auc, mse


@given(st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=2, max_size=40))
def test_the_area_is_the_share_of_pairs_in_order(rows: list[tuple[int, bool]]) -> None:
    positives = [score for score, positive in rows if positive]
    negatives = [score for score, positive in rows if not positive]
    if not positives or not negatives:
        return
    pairs = [(p > n) + (p == n) / 2 for p in positives for n in negatives]
    scores, values = (np.array(column, float) for column in zip(*rows, strict=True))
    assert auc(scores, values) == pytest.approx(np.mean(pairs))


def test_the_squared_error_worked_by_hand() -> None:
    assert mse(np.array([1.0, 2.0, 5.0]), np.array([1.0, 4.0, 4.0])) == pytest.approx(5 / 3)
