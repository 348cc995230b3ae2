"""The figures that the paper prints for its semi-synthetic data: ranked against 100 uniform negatives.

Tables of RQ1 (on true relevance) and RQ3 (standard evaluation), means over five replicates. RQ2 is a plot in the
paper, without numbers.
"""

from collections.abc import Mapping

from unveil.experiment.outcome import STANDARD, TRUE

#: The metrics of the paper's tables, in their order.
METRICS = (("Recall", 10), ("NDCG", 10), ("Recall", 5), ("NDCG", 5))

#: evaluation → estimator → the paper's row.
TABLES: Mapping[str, Mapping[str, tuple[float, float, float, float]]] = {
    TRUE: {
        "naive": (0.7992, 0.6065, 0.6917, 0.5716),
        "ips": (0.7890, 0.5961, 0.6868, 0.5628),
        "itps": (0.8027, 0.6110, 0.6997, 0.5777),
        "ideal": (0.8218, 0.6247, 0.7083, 0.5880),
    },
    STANDARD: {
        "naive": (0.7782, 0.5851, 0.6655, 0.5486),
        "ips": (0.7835, 0.5854, 0.6665, 0.5475),
        "itps": (0.7873, 0.5909, 0.6754, 0.5545),
        "ideal": (0.8000, 0.5983, 0.6795, 0.5593),
    },
}
#: Under which the tables were made.
PROTOCOL, SEVERITY = "uniform-100", 1.0


def comparable(protocol: str, severity: float) -> bool:
    """Whether the tables were made so: at other severities, or against other negatives, they say nothing."""
    return protocol == PROTOCOL and severity == SEVERITY


def published(
    estimator: str, evaluation: str, protocol: str, metric: str, k: int, severity: float = SEVERITY
) -> float | None:
    """The paper's figure, where it has one."""
    row = TABLES.get(evaluation, {}).get(estimator)
    if row is None or not comparable(protocol, severity) or (metric, k) not in METRICS:
        return None
    return row[METRICS.index((metric, k))]
