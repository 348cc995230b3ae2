"""What the paper prints for real data: sizes, and the table of RQ4 (100 popularity-drawn negatives, 5 replicates)."""

from collections.abc import Mapping
from dataclasses import dataclass

from unveil.data.interactions import Interactions
from unveil.experiment.reproduce.results import Figure

#: The metrics of the paper's table, in its order.
METRICS = (("NDCG", 5), ("Recall", 5), ("NDCG", 10), ("Recall", 10))
#: The ranking it was made under.
PROTOCOL = "popular-100"


@dataclass(frozen=True)
class Published:
    """One data set of the paper: users, items and interactions, and a row for each estimator."""

    size: tuple[int, int, int]
    rows: Mapping[str, tuple[float, float, float, float]]


PUBLISHED: Mapping[str, Published] = {
    "ml-1m": Published(
        (6_040, 3_416, 999_611),
        {
            "naive": (0.2820, 0.4086, 0.3262, 0.5454),
            "ips": (0.3416, 0.4751, 0.3801, 0.5940),
            "itps": (0.3451, 0.4796, 0.3844, 0.6007),
        },
    ),
    "ml-20m": Published(
        (138_493, 18_345, 19_984_024),
        {
            "naive": (0.4205, 0.5583, 0.4624, 0.6876),
            "ips": (0.4004, 0.5389, 0.4434, 0.6715),
            "itps": (0.4295, 0.5674, 0.4709, 0.6952),
        },
    ),
    "beauty": Published(
        (40_226, 54_542, 353_962),
        {
            "naive": (0.1056, 0.1516, 0.1260, 0.2148),
            "ips": (0.1053, 0.1528, 0.1268, 0.2195),
            "itps": (0.1197, 0.1745, 0.1444, 0.2510),
        },
    ),
}


def recognised(log: Interactions) -> str | None:
    """The data set of the paper that has exactly this many users, items and interactions."""
    taken = log.interacted()
    size = (len(taken.users), len(taken.items), len(taken))
    return next((name for name, each in PUBLISHED.items() if each.size == size), None)


def published(data: str | None, arm: str, figure: Figure) -> float | None:
    """The paper's figure, where it has one."""
    row = None if data is None else PUBLISHED[data].rows.get(arm)
    if row is None or figure.protocol != PROTOCOL or (figure.metric, figure.k) not in METRICS:
        return None
    return row[METRICS.index((figure.metric, figure.k))]
