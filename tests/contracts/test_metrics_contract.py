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
    TruthMetric,
    metric,
    metrics_of,
)

seeds = st.integers(0, 10_000)


def drawn_lists(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.array([rng.permutation(12)[:5] for _ in range(int(rng.integers(1, 9)))], np.int32)


@pytest.mark.parametrize("name", list(METRICS))
def test_is_of_one_kind_and_gives_its_equation(name: str) -> None:
    found = metric(name)
    assert found.name == name
    assert sum(isinstance(found, kind) for kind in (RankMetric, ListMetric, CatalogueMetric, TruthMetric)) == 1
    assert "=" in (type(found).__doc__ or "")


@pytest.mark.parametrize("measure", metrics_of(RankMetric), ids=lambda m: m.name)
@given(rank=st.lists(st.integers(1, 200), min_size=1), k=st.integers(1, 20))
def test_rank_metrics_fall_with_the_rank_and_end_at_k(measure: RankMetric, rank: list[int], k: int) -> None:
    rank_C = np.sort(np.array(rank))
    value_C = measure(rank_C, k)
    assert value_C.shape == rank_C.shape
    assert (np.diff(value_C) <= 0).all()
    assert ((value_C > 0) == (rank_C <= k)).all()
    assert value_C.max() <= 1 == measure(np.array([1]), k)[0]


@pytest.mark.parametrize("measure", metrics_of(ListMetric), ids=lambda m: m.name)
@given(seed=seeds)
def test_list_metrics_see_one_list_at_a_time_in_any_order(measure: ListMetric, seed: int) -> None:
    top_CK, count_V = drawn_lists(seed), np.random.default_rng(seed).integers(0, 9, 12)
    value_C = measure(top_CK, count_V)
    assert value_C == pytest.approx([measure(row[None], count_V)[0] for row in top_CK])
    assert measure(top_CK[:, ::-1], count_V) == pytest.approx(value_C)
    assert np.isfinite(measure(np.full((2, 5), NOBODY, np.int32), count_V)).all()


@pytest.mark.parametrize("measure", metrics_of(CatalogueMetric), ids=lambda m: m.name)
@given(seed=seeds)
def test_catalogue_metrics_know_no_order_and_no_names(measure: CatalogueMetric, seed: int) -> None:
    top_CK = drawn_lists(seed)
    rng = np.random.default_rng(seed)
    value = measure(top_CK, 12)
    assert 0 <= value <= 1
    assert measure(rng.permutation(top_CK), 12) == pytest.approx(value)
    assert measure(rng.permutation(12).astype(np.int32)[top_CK], 12) == pytest.approx(value)


def top_of(scores_CV: np.ndarray, k: int) -> np.ndarray:
    return np.argsort(-scores_CV, axis=1, kind="stable")[:, :k]


@pytest.mark.parametrize("measure", metrics_of(TruthMetric), ids=lambda m: m.name)
@given(seed=seeds, k=st.integers(1, 12))
def test_truth_metrics_see_one_case_at_a_time_and_know_no_names(measure: TruthMetric, seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    gamma_CV, scores_CV = rng.random((6, 12)).astype(np.float32), rng.standard_normal((6, 12)).astype(np.float32)
    top_CK = top_of(scores_CV, k)
    value_C = measure(gamma_CV, scores_CV, top_CK)
    alone = [measure(gamma_CV[[c]], scores_CV[[c]], top_CK[[c]])[0] for c in range(6)]
    assert value_C == pytest.approx(alone)
    new_V = rng.permutation(12)  # item i is now called new_V[i]
    old_V = np.argsort(new_V)
    assert measure(gamma_CV[:, old_V], scores_CV[:, old_V], new_V[top_CK]) == pytest.approx(value_C, abs=1e-6)


@pytest.mark.parametrize("measure", metrics_of(TruthMetric), ids=lambda m: m.name)
@given(seed=seeds, k=st.integers(1, 12))
def test_nothing_beats_the_truth(measure: TruthMetric, seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    gamma_CV, scores_CV = rng.random((6, 12)).astype(np.float32), rng.standard_normal((6, 12)).astype(np.float32)
    best_C = measure(gamma_CV, gamma_CV, top_of(gamma_CV, k))
    sign = 1 if measure.higher_is_better else -1
    for scores in (scores_CV, -gamma_CV):
        assert (sign * best_C >= sign * measure(gamma_CV, scores, top_of(scores, k)) - 1e-6).all()
    empty_C = measure(gamma_CV, scores_CV, np.full((6, k), NOBODY))
    assert np.isfinite(empty_C).all()
