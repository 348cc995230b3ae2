import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unveil.errors import UnveilError
from unveil.evaluation.metrics import (
    ARP,
    EFD,
    MRR,
    NDCG,
    NOBODY,
    CatalogueMetric,
    Coverage,
    Gini,
    ListMetric,
    RankMetric,
    Recall,
    metric,
    metrics_of,
)

lists = st.integers(2, 9).flatmap(
    lambda v: st.tuples(
        st.lists(st.lists(st.integers(0, v - 1), min_size=2, max_size=2, unique=True), min_size=1, max_size=8),
        st.lists(st.integers(0, 50), min_size=v, max_size=v),
    )
)


def test_of_ranks_by_hand() -> None:
    rank_C = np.array([1, 2, 3, 10, 11])
    assert NDCG()(rank_C, 10) == pytest.approx([1, 1 / math.log2(3), 0.5, 1 / math.log2(11), 0])
    assert Recall()(rank_C, 10).tolist() == [1, 1, 1, 1, 0]
    assert MRR()(rank_C, 10) == pytest.approx([1, 1 / 2, 1 / 3, 1 / 10, 0])
    assert Recall()(rank_C, 2).tolist() == [1, 1, 0, 0, 0]


@given(st.integers(1, 30), st.integers(1, 30))
def test_ndcg_is_dcg_over_ideal_dcg(rank: int, k: int) -> None:
    relevance = [1.0 if place == rank else 0.0 for place in range(1, 31)]
    gain = sum(rel / math.log2(place + 1) for place, rel in enumerate(relevance[:k], start=1))
    ideal = sum(rel / math.log2(place + 1) for place, rel in enumerate(sorted(relevance, reverse=True)[:k], start=1))
    assert NDCG()(np.array([rank]), k)[0] == pytest.approx(gain / ideal)


def test_of_lists_by_hand() -> None:
    top_CK = np.array([[0, 1], [0, 2]], np.int32)
    count_V = np.array([5, 2, 0, 0])  # 7 interactions, 4 items: θ̂ = (6, 3, 1, 1) / 11
    assert ARP()(top_CK, count_V).tolist() == [3.5, 2.5]
    bits = [-math.log2(6 / 11), -math.log2(3 / 11), -math.log2(1 / 11)]
    assert EFD()(top_CK, count_V) == pytest.approx([(bits[0] + bits[1]) / 2, (bits[0] + bits[2]) / 2])
    assert Coverage()(top_CK, 4) == 0.75
    # counts 0, 1, 1, 2 in order: (−3·0 − 1·1 + 1·1 + 3·2) / (4 · 4)
    assert Gini()(top_CK, 4) == pytest.approx(6 / 16)


def test_an_unseen_item_costs_an_honest_number_of_bits() -> None:
    count_V = np.array([999_000, 0])
    assert EFD()(np.array([[1]], np.int32), count_V)[0] == pytest.approx(math.log2(999_002))


def test_gini_at_its_ends() -> None:
    assert Gini()(np.array([[0], [1], [2]], np.int32), 3) == pytest.approx(0)
    assert Gini()(np.array([[1], [1], [1]], np.int32), 3) == pytest.approx(1 - 1 / 3)


@given(lists)
def test_lists_against_plain_loops(drawn: tuple[list[list[int]], list[int]]) -> None:
    rows, counts = drawn
    top_CK, count_V, n_items = np.array(rows, np.int32), np.array(counts), len(counts)
    times = [sum(row.count(item) for row in rows) for item in range(n_items)]
    pairs = sum(abs(a - b) for a in times for b in times)
    assert Gini()(top_CK, n_items) == pytest.approx(pairs / (2 * n_items * sum(times)))
    assert Coverage()(top_CK, n_items) == len({item for row in rows for item in row}) / n_items
    assert ARP()(top_CK, count_V) == pytest.approx([sum(counts[i] for i in row) / len(row) for row in rows])
    bits = [-math.log2((c + 1) / (sum(counts) + n_items)) for c in counts]
    assert EFD()(top_CK, count_V) == pytest.approx([sum(bits[i] for i in row) / len(row) for row in rows])


def test_empty_places_count_for_nothing() -> None:
    short_CK, count_V = np.array([[2, NOBODY], [1, 0], [NOBODY, NOBODY]], np.int32), np.array([4, 2, 6])
    assert ARP()(short_CK, count_V).tolist() == [6, 3, 0]
    assert Coverage()(short_CK, 3) == 1
    assert Gini()(short_CK, 3) == pytest.approx(0)


def test_the_registry_finds_every_metric_and_suggests_the_nearest_name() -> None:
    assert [m.name for m in metrics_of(RankMetric)] == ["MRR", "NDCG", "Recall"]
    assert [m.name for m in metrics_of(ListMetric)] == ["ARP", "EFD"]
    assert [m.name for m in metrics_of(CatalogueMetric)] == ["Coverage", "Gini"]
    assert isinstance(metric("NDCG"), NDCG)
    with pytest.raises(UnveilError, match="Did you mean 'Recall'"):
        metric("Recal")
