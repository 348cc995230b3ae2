"""What a study needs to know of what it tunes, and nothing else."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self

from unveil.experiment.tune.record import Replicate
from unveil.runs.announce import Tell


class Told(Protocol):
    """Whoever a bench tells how far it is. Either call raises where the rest is not wanted any more."""

    def part(self, share: float) -> None:
        """So much of the replicate is done."""

    def judged(self, epoch: int, value: float) -> None:
        """So good it is after an epoch."""


class Bench(Protocol):
    """Where settings are tried: it holds the training and validation parts, and no test case."""

    @property
    def fingerprint(self) -> str:
        """The log's."""

    @property
    def world(self) -> str | None:
        """The origin of the world that the log was drawn from, where one was named."""

    def announce(self, settings: Mapping[str, Any], tell: Tell) -> None:
        """Build what a trial needs, to find what is wrong before anything is learnt, and say what it is."""

    def replicate(self, settings: Mapping[str, Any], number: int, place: Path, told: Told) -> Replicate:
        """Try the settings once, or go on with it; what is kept meanwhile is kept in `place`."""


@dataclass(frozen=True)
class Words:
    """How pages and files speak of what is tuned."""

    several: str  # what a trial is, of several replicates
    once: str  # and of one
    unit: str  # what a replicate is: a training, a fit
    judging: str  # on what, and that the rest was not looked at
    chosen: str  # why the best figure is too good
    command: str  # that uses the winner; {config} is the file


class Subject(Protocol):
    """What is tuned: changed by settings, tried on a bench, written as a config."""

    @property
    def metric(self) -> str:
        """What trials are compared by, e.g. NDCG@10."""

    @property
    def lower(self) -> bool:
        """Whether less of it is better."""

    @property
    def seed(self) -> int:
        """Of the search, and of the first replicate."""

    @property
    def epochs(self) -> int | None:
        """How often a replicate is judged on its way; None: at its end only."""

    @property
    def words(self) -> Words:
        """How to speak of it."""

    def changed(self, settings: Mapping[str, Any]) -> Self:
        """With other settings; raises where they cannot be had together."""

    def identity(self) -> dict[str, Any]:
        """What decides the figures of a study, beside the data and the plan."""

    def bench(self, tried: Collection[str], tell: Tell) -> Bench:
        """Read the data. `tried`: names of the settings that vary."""

    def toml(self, head: str) -> str:
        """As a config for the command that uses it; `head` is a comment on top."""
