"""What every metric promises, those of other packages included."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unveil.evaluation.metrics import (
    METRICS,
    NOBODY,
    CatalogueMetric,
    ListMetric,
    RankMetric,
    catalogue_metrics,
    list_metrics,
    metric,
    rank_metrics,
)

seeds = st.integers(0, 10_000)


def drawn_lists(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.array([rng.permutation(12)[:5] for _ in range(int(rng.integers(1, 9)))], np.int32)


@pytest.mark.parametrize("name", list(METRICS))
def test_is_of_one_kind_and_gives_its_equation(name: str) -> None:
    found = metric(name)
    assert found.name == name
    assert sum(isinstance(found, kind) for kind in (RankMetric, ListMetric, CatalogueMetric)) == 1
    assert "=" in (type(found).__doc__ or "")


@pytest.mark.parametrize("measure", rank_metrics(), ids=lambda m: m.name)
@given(rank=st.lists(st.integers(1, 200), min_size=1), k=st.integers(1, 20))
def test_rank_metrics_fall_with_the_rank_and_end_at_k(measure: RankMetric, rank: list[int], k: int) -> None:
    rank_C = np.sort(np.array(rank))
    value_C = measure(rank_C, k)
    assert value_C.shape == rank_C.shape
    assert (np.diff(value_C) <= 0).all()
    assert ((value_C > 0) == (rank_C <= k)).all()
    assert value_C.max() <= 1 == measure(np.array([1]), k)[0]


@pytest.mark.parametrize("measure", list_metrics(), ids=lambda m: m.name)
@given(seed=seeds)
def test_list_metrics_see_one_list_at_a_time_in_any_order(measure: ListMetric, seed: int) -> None:
    top_CK, count_V = drawn_lists(seed), np.random.default_rng(seed).integers(0, 9, 12)
    value_C = measure(top_CK, count_V)
    assert value_C == pytest.approx([measure(row[None], count_V)[0] for row in top_CK])
    assert measure(top_CK[:, ::-1], count_V) == pytest.approx(value_C)
    assert np.isfinite(measure(np.full((2, 5), NOBODY, np.int32), count_V)).all()


@pytest.mark.parametrize("measure", catalogue_metrics(), ids=lambda m: m.name)
@given(seed=seeds)
def test_catalogue_metrics_know_no_order_and_no_names(measure: CatalogueMetric, seed: int) -> None:
    top_CK = drawn_lists(seed)
    rng = np.random.default_rng(seed)
    value = measure(top_CK, 12)
    assert 0 <= value <= 1
    assert measure(rng.permutation(top_CK), 12) == pytest.approx(value)
    assert measure(rng.permutation(12).astype(np.int32)[top_CK], 12) == pytest.approx(value)
