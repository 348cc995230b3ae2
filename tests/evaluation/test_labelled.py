"""Labelled tests against a case by hand, a brute force over random tests, and bad input."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from unveil.data.interactions import Interactions, Sequences
from unveil.errors import UnveilError, UnveilWarning
from unveil.evaluation.labelled import Block, LabelledTest, evaluate, metrics, reliability


class Fixed:
    """The same scores after every history."""

    def __init__(self, score_V: Sequence[float]) -> None:
        self.score_V = torch.tensor(score_V)

    def scores(self, token_BL: Tensor) -> Tensor:
        return self.score_V.expand(len(token_BL), -1)


LOG = Interactions.from_frame(
    pl.DataFrame(
        {"user": ["a", "a", "b", "c"], "item": ["1", "2", "1", "5"], "time": [0, 1, 0, 0]},
        schema={"user": pl.String, "item": pl.String, "time": pl.Int64},
    )
)
# Items 3 and 4 are known to the log through user d.
LOG = Interactions.from_frame(
    pl.concat([LOG.to_frame(), pl.DataFrame({"user": ["d", "d"], "item": ["3", "4"], "time": [0, 1]})])
)
SEQUENCES = Sequences.of(LOG)


def labelled(rows: dict[str, list[Any]], **options: Any) -> LabelledTest:
    frame = pl.DataFrame(rows).rename({"user_id": "user", "item_id": "item", "label": "clicked"}, strict=False)
    frame = frame.with_columns(pl.col("clicked").cast(pl.Boolean)) if "clicked" in frame.columns else frame
    return LabelledTest.of(Interactions.from_frame(frame), LOG.users, LOG.items, SEQUENCES, **options)


def test_a_case_by_hand() -> None:
    """User b has seen 1; likes 2 and 4 among 2, 3, 4, 5. Scores 2: .1, 3: .4, 4: .3, 5: .2 → ranks 2 (item 4), 4."""
    test = labelled({"user_id": ["b", "b"], "item_id": ["2", "4"]})
    found = evaluate(Fixed([0.9, 0.1, 0.4, 0.3, 0.2]), SEQUENCES, test, 4, ks=(2, 4))
    ideal = 1 + 1 / np.log2(3)
    expected = {
        ("NDCG", 2): (1 / np.log2(3)) / ideal,
        ("NDCG", 4): (1 / np.log2(3) + 1 / np.log2(5)) / ideal,
        ("Recall", 2): 0.5,
        ("Recall", 4): 1.0,
        ("MAP", 2): 0.25,
        ("MAP", 4): (1 / 2 + 2 / 4) / 2,
        ("AUC", 0): (1 / 2 + 0) / 2,
    }
    for (metric, k), value in expected.items():
        assert found.value("labelled", metric, k) == pytest.approx(value), (metric, k)


def test_labels_make_the_labelled_items_compete_alone() -> None:
    test = labelled({"user_id": ["b", "b"], "item_id": ["2", "4"], "label": [1, 0]})
    assert evaluate(Fixed([9, 1, 9, 0.5, 9]), SEQUENCES, test, 4).value("labelled", "AUC", 0) == 1


def test_labels_of_1_alone_are_positives_without_labels() -> None:
    rows: dict[str, list[Any]] = {"user_id": ["b", "b"], "item_id": ["2", "4"]}
    with pytest.warns(UnveilWarning, match="all labels are 1: read as positives alone"):
        found = labelled(rows | {"label": [1, 1]})
    assert found.fingerprint == labelled(rows).fingerprint
    score_V = [0.9, 0.1, 0.4, 0.3, 0.2]
    assert evaluate(Fixed(score_V), SEQUENCES, found, 4).value("labelled", "AUC", 0) == 1 / 4


def brute_force(scores: np.ndarray, positive: np.ndarray, negative: np.ndarray, k: int) -> dict[str, float]:
    """The list in full, ties against the positives, read from the top."""
    places = np.flatnonzero(positive | negative)
    ranked = sorted(places, key=lambda place: (-scores[place], positive[place]))
    hits = [bool(positive[place]) for place in ranked]
    n = sum(hits)
    gains = sum(1 / np.log2(2 + place) for place, hit in enumerate(hits[:k]) if hit)
    precision = [sum(hits[: place + 1]) / (place + 1) for place, hit in enumerate(hits[:k]) if hit]
    pairs = [
        (scores[p] > scores[q]) + (scores[p] == scores[q]) / 2
        for p in places
        for q in places
        if positive[p] > positive[q]
    ]
    return {
        f"NDCG@{k}": gains / sum(1 / np.log2(2 + place) for place in range(min(n, k))),
        f"Recall@{k}": sum(hits[:k]) / n,
        f"MAP@{k}": sum(precision) / min(n, k),
        "AUC": float(np.mean(pairs)),
    }


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), k=st.integers(1, 12), levels=st.integers(1, 20))
def test_metrics_are_those_of_the_list_in_full(seed: int, k: int, levels: int) -> None:
    rng = np.random.default_rng(seed)
    kind = rng.integers(3, size=(7, 15))  # 0: no candidate, 1: negative, 2: positive
    scores = rng.integers(levels, size=kind.shape).astype(np.float32)
    parts = (torch.from_numpy(part) for part in (scores, kind == 2, kind == 1))
    valid, found = metrics(Block(np.arange(7, dtype=np.int32), np.arange(15, dtype=np.int32), *parts), [k])
    assert valid.tolist() == [bool((row == 2).any() and (row == 1).any()) for row in kind]
    for place, row in enumerate(np.flatnonzero(valid)):
        for name, value in brute_force(scores[row], kind[row] == 2, kind[row] == 1, k).items():
            assert found[name][place] == pytest.approx(value), name


def test_what_is_unknown_is_counted_and_skipped() -> None:
    test = labelled({"user_id": ["b", "b", "nobody"], "item_id": ["2", "nothing", "2"]})
    assert test.skipped == {"unknown user": 1, "unknown item": 1}
    assert len(test.user_R) == 1


def test_what_is_no_candidate_is_counted() -> None:
    test = labelled({"user_id": ["b", "b"], "item_id": ["2", "5"]}, candidates=["2", "3"])
    assert test.skipped == {"not a candidate": 1}
    assert evaluate(Fixed([0, 1, 2, 3, 4]), SEQUENCES, test, 4).value("labelled", "AUC", 0) == 0


def test_a_positive_of_the_history_is_a_leak() -> None:
    rows = {"user_id": ["a", "a"], "item_id": ["2", "3"]}
    with pytest.raises(UnveilError, match="own histories"):
        labelled(rows)
    assert labelled(rows, keep_seen=False).skipped == {"in the user's history": 1}
    assert len(labelled(rows, keep_seen=True).item_R) == 2


@pytest.mark.parametrize(
    ("rows", "options", "problem"),
    [
        ({"user_id": ["b", "b"], "item_id": ["2", "4"], "label": [0, 0]}, {}, "all labels are alike"),
        ({"user_id": ["b"], "item_id": ["2"]}, {"candidates": ["3", "4"]}, "no positive is left"),
        ({"user_id": ["nobody"], "item_id": ["2"]}, {}, "no positive is left"),
    ],
)
def test_a_test_without_information_is_an_error(
    rows: dict[str, list[Any]], options: dict[str, Any], problem: str
) -> None:
    with pytest.raises(UnveilError, match=problem):
        labelled(rows, **options)


def test_a_user_needs_both_a_positive_and_a_negative() -> None:
    test = labelled({"user_id": ["b"], "item_id": ["2"]}, candidates=["2"])
    with pytest.raises(UnveilError, match="both a positive and a negative"):
        evaluate(Fixed([0, 1, 2, 3, 4]), SEQUENCES, test, 4)


def test_rows_of_some_users() -> None:
    test = labelled({"user_id": ["b", "c"], "item_id": ["2", "2"]})
    part = test.some(LOG.users.index(["c"]))
    assert part.user_R.tolist() == LOG.users.index(["c"]).tolist()
    assert part.fingerprint != test.fingerprint


def test_repeated_rows_are_one_liked_if_it_was_liked_once() -> None:
    rows: dict[str, list[Any]] = {"user_id": ["a", "a", "a"], "item_id": ["3", "3", "4"], "label": [0, 1, 0]}
    found = labelled(rows)
    assert found.label_R.tolist() == [True, False]
    assert len(found.item_R) == 2


def test_reliability_by_hand() -> None:
    """Two users, candidates with p = .5, .25, .25: the first likes the likeliest, the second both others."""
    scores = torch.tensor([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.9, 0.05, 0.05]]).log()
    positive = torch.tensor([[1, 0, 0], [1, 0, 1], [1, 1, 1]]).bool()
    block = Block(np.arange(3, dtype=np.int32), np.arange(3, dtype=np.int32), scores, positive, ~positive)
    found = reliability([block])  # the third has no negative
    assert found.predicted == pytest.approx((0.25, 0.5))
    assert found.observed == pytest.approx((2 * 0.5 / 4, 1 / 2))
    assert found.size == pytest.approx((1, 1))
    assert found.error == pytest.approx(0)
    other = torch.tensor([[0, 1, 0], [1, 0, 0], [1, 1, 1]]).bool()
    wrong = Block(block.user_B, block.column_C, scores, other, ~other)
    assert reliability([wrong]).error == pytest.approx((abs(2 - 1) + abs(0 - 1)) / 2)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_labels_drawn_from_the_softmax_are_calibrated(seed: int) -> None:
    """One positive of each of 40,000 users, drawn with the probabilities that the scores promise."""
    rng = np.random.default_rng(seed)
    scores = rng.standard_normal((40_000, 6)).astype(np.float32)
    share = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    chosen = (share.cumsum(1) > rng.random((40_000, 1))).argmax(1)
    positive = torch.nn.functional.one_hot(torch.from_numpy(chosen), 6).bool()
    rows = np.arange(40_000, dtype=np.int32)
    good = reliability([Block(rows, np.arange(6, dtype=np.int32), torch.from_numpy(scores), positive, ~positive)])
    flat = reliability([Block(rows, np.arange(6, dtype=np.int32), 3 * torch.from_numpy(scores), positive, ~positive)])
    assert good.error < 0.06 < flat.error
