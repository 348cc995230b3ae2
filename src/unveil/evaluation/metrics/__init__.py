"""Metrics, one a file, found by themselves."""

from unveil.evaluation.metrics.base import (
    METRICS,
    NOBODY,
    CatalogueMetric,
    ListMetric,
    Metric,
    RankMetric,
    TruthMetric,
    catalogue_metrics,
    list_metrics,
    metric,
    rank_metrics,
    truth_metrics,
)

__all__ = [
    "METRICS",
    "NOBODY",
    "CatalogueMetric",
    "ListMetric",
    "Metric",
    "RankMetric",
    "TruthMetric",
    "catalogue_metrics",
    "list_metrics",
    "metric",
    "rank_metrics",
    "truth_metrics",
]
