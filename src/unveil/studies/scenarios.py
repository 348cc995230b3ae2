"""What is not known of a log, and therefore varied: how users choose, how rare exposure is, what is popular."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from itertools import product
from typing import Any, NamedTuple

Numbers = tuple[float, ...]


@dataclass(frozen=True)
class Scenario:
    """How logs are drawn. `liked` is the declared share of popularity that is relevance; None: by the ratings."""

    choice: str
    severity: float
    liked: float | None = None

    @property
    def key(self) -> str:
        """rational_exposed-p1."""
        declared = "" if self.liked is None else f"-l{self.liked:g}"
        return f"{self.choice}-p{self.severity:g}{declared}"

    @property
    def seed(self) -> int:
        """Of its draws: scenarios have random numbers of their own."""
        return int.from_bytes(sha256(self.key.encode()).digest()[:4])

    @property
    def users(self) -> str:
        declared = "" if self.liked is None else f", {self.liked:.0%} liked"
        return f"{self.choice.replace('_', ', ')}{declared}"

    def __str__(self) -> str:
        return f"{self.users}, p = {self.severity:g}"


class Draw(NamedTuple):
    """Which log is drawn: of which draw of the worlds, in which scenario, and the how manieth."""

    world: int
    scenario: Scenario
    replicate: int


def scenarios(choices: tuple[str, ...], severities: Numbers, liked: Numbers = ()) -> tuple[Scenario, ...]:
    """Every combination."""
    return tuple(Scenario(*each) for each in product(choices, severities, liked or (None,)))


#: How much is tried, unless options say otherwise: users of the log, drawn at random where there are more; propensities
#: as far as the log can give them, none: all that it can; clips of the weights as shares of the events, '': no clip.
EFFORTS: Mapping[str, Mapping[str, Any]] = {
    "quick": {
        "users": 500,
        "worlds": 1,
        "replicates": 3,
        "choices": ("rational_exposed", "categorical_exposed"),
        "severities": (1.0, 3.0),
        "estimators": ("itps", "corrected", "corrected-tempered", "wmf-distilled", "wmf-distilled-rated"),
        "propensities": ("logged", "recorded", "popularity", "damped", "timing", "joint", "joint-rated"),
        "clips": ("5%",),
    },
    "thorough": {
        "users": 2000,
        "worlds": 6,  # the units: with three, corrected for a hundred candidates, nothing could be significant
        "replicates": 1,
        "choices": ("rational_exposed", "categorical_exposed", "rational_all"),
        "severities": (1.0, 2.0, 4.0),
        "estimators": (
            *("ips", "itps", "itps-shrunk", "doubly-robust", "corrected", "corrected-distilled", "rational"),
            *("corrected-tempered", "logit-adjustment", "wmf-distilled", "wmf-distilled-rated"),
        ),
        "propensities": (),
        "clips": ("", "2%", "10%"),
    },
}
