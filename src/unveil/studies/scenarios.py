"""What is not known of a log, and therefore varied: how users choose, how rare exposure is, what is popular."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from itertools import product
from typing import Any, NamedTuple

from unveil.studies import shipped

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


#: How much is tried, unless options say otherwise; lists are tuples, which studies can be hashed with.
EFFORTS: Mapping[str, Mapping[str, Any]] = {
    effort: {name: tuple(value) if isinstance(value, list) else value for name, value in settings.items()}
    for effort, settings in shipped("defaults")["advise"].items()
}
