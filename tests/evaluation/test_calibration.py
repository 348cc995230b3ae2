"""Calibration against cases worked by hand, and against a plain loop over all cases and items."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from unveil.data.interactions import Sequences, offsets
from unveil.data.splits import EvalCases
from unveil.evaluation.calibration import calibration, of_first

ITEMS = 6


@dataclass(frozen=True)
class Table:
    """Scores by the last item of the history."""

    scores_VV: Tensor

    def scores(self, token_BL: Tensor) -> Tensor:
        return self.scores_VV[token_BL[:, -2]]


def histories(item_UN: np.ndarray) -> Sequences:
    users, length = item_UN.shape
    item_N = item_UN.ravel().astype(np.int32)
    step_N = np.tile(np.arange(length), users).astype(np.int32)
    offset_U1 = offsets(np.full(users, length))
    return Sequences(item_N, step_N, np.arange(len(item_N), dtype=np.int32), None, offset_U1, ITEMS, length)


def last_events(item_UN: np.ndarray) -> EvalCases:
    users, length = item_UN.shape
    seen_C, step_C = np.full(users, length - 1, np.int32), np.full(users, length - 1, np.int32)
    return EvalCases(np.arange(users, dtype=np.int32), item_UN[:, -1].astype(np.int32), step_C, seen_C)


def test_promises_by_hand() -> None:
    """Item 0 is followed by 1 in three of four cases, and 3/4 is promised: nothing is misplaced."""
    item_UN = np.array([[0, 1], [0, 1], [0, 1], [0, 2]])
    share = torch.full((ITEMS, ITEMS), 1e-9)
    share[0, 1], share[0, 2] = 0.75, 0.25
    found = calibration(Table(share.log()), last_events(item_UN), histories(item_UN), length=3, exclude_seen=False)
    assert found.cases == 4
    assert found.first.error == pytest.approx(_by_hand([0.75] * 4, [1, 1, 1, 0]), abs=1e-6)
    assert found.items.error == pytest.approx(0, abs=1e-5)
    assert found.log_loss == pytest.approx(-(3 * np.log(0.75) + np.log(0.25)) / 4, abs=1e-5)


def _by_hand(sure: list[float], hit: list[float]) -> float:
    """Three bins of two, one and one cases."""
    bins = [slice(0, 2), slice(2, 3), slice(3, 4)]
    off = [abs(np.mean(hit[part]) - np.mean(sure[part])) * len(hit[part]) for part in bins]
    return float(np.sum(off) / len(hit))


def test_a_run_that_promises_too_much_is_told_by_how_much() -> None:
    sure, hit = np.full(100, 0.9), np.repeat([1.0, 0.0], 50)
    found = of_first(sure, np.tile([1.0, 0.0], 50))
    assert found.error == pytest.approx(0.4)
    assert len(found.size) == 10
    assert sum(found.size) == 100
    assert of_first(sure, hit * 0).error == pytest.approx(0.9)
    assert len(of_first(sure, hit * 0).size) == 3


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.booleans())
def test_all_items_at_all_cases_against_a_plain_loop(seed: int, exclude_seen: bool) -> None:
    rng = np.random.default_rng(seed)
    item_UN = rng.integers(0, ITEMS, (12, 3))
    scores_VV = torch.from_numpy(rng.normal(0, 2, (ITEMS, ITEMS)))
    cases, sequences = last_events(item_UN), histories(item_UN)
    found = calibration(Table(scores_VV), cases, sequences, length=3, exclude_seen=exclude_seen)
    loss, promised, pairs = [], 0.0, 0
    for history in item_UN.tolist():
        *before, target = history
        competing = [i for i in range(ITEMS) if i == target or not (exclude_seen and i in before)]
        weight = {i: float(torch.exp(scores_VV[before[-1], i])) for i in competing}
        loss.append(-np.log(weight[target] / sum(weight.values())))
        promised += 1.0
        pairs += len(competing)
    assert found.log_loss == pytest.approx(np.mean(loss))
    assert sum(found.items.size) == pytest.approx(promised)
    each = zip(found.items.predicted, found.items.size, strict=True)
    assert sum(size / predicted for predicted, size in each) == pytest.approx(pairs)
    kept = zip(found.items.predicted, found.items.observed, found.items.size, strict=True)
    assert sum(o * size / p for p, o, size in kept) == pytest.approx(len(item_UN))
    assert 0 <= found.items.error <= 2


def test_of_many_cases_some_are_drawn() -> None:
    item_UN = np.random.default_rng(0).integers(0, ITEMS, (50, 3))
    table = Table(torch.zeros(ITEMS, ITEMS))
    found = calibration(table, last_events(item_UN), histories(item_UN), length=3, most=20)
    again = calibration(table, last_events(item_UN), histories(item_UN), length=3, most=20)
    assert found.cases == 20
    assert found == again
