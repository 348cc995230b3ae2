"""What a study needs to know of what it tunes, and nothing else."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, Self

from unveil.errors import UnveilError
from unveil.runs.announce import Tell
from unveil.runs.tune.claims import Record, Replicate, best_of
from unveil.runs.tune.space import Settings, Space, Valid, grid_settings, random_settings


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


Sampler = Literal["random", "tpe", "grid"]

#: Trials where nobody says how many; the paper's number.
USUAL = 30


@dataclass(frozen=True)
class Plan:
    """The space, how it is searched, and how often each combination is trained."""

    space: Space
    trials: int | None = None  # None: 30, or the whole grid
    replicates: int = 3
    sampler: Sampler = "random"
    prune: bool = False  # stop trials early whose first replicate falls behind; the paper does not

    def __post_init__(self) -> None:
        for name in ("trials", "replicates"):
            found = getattr(self, name)
            if found is not None and found < 1:
                raise UnveilError("out of range", where=f"--{name}", found=found, expected="at least 1")

    def settings(self, seed: int, valid: Valid) -> list[Settings]:
        """The settings of every trial; those of `tpe` hold until it has seen enough to guess better."""
        if self.sampler == "grid":
            return grid_settings(self.space, self.trials, valid)
        return random_settings(self.space, self.trials or USUAL, seed, valid)

    def identity(self, subject: Subject, bench: Bench) -> dict[str, Any]:
        """What decides the figures of a study; the number of trials does not: a study may grow.

        The log is told by its fingerprint, the world by its origin.
        """
        how = {name: getattr(self, name) for name in ("replicates", "sampler", "prune")}
        data = {"log": bench.fingerprint, "world": bench.world}
        return {**data, **subject.identity(), "space": self.space.plain(), **how}


def is_valid(subject: Subject, settings: Mapping[str, Any]) -> bool:
    """Whether a subject can have these settings together, e.g. a width that is a multiple of the heads."""
    try:
        subject.changed(settings)
    except UnveilError:
        return False
    return True


@dataclass(frozen=True, eq=False)
class Study:
    """The trials of a plan on a subject; `fingerprint` is the log's, `storage` names no password.

    Of `size` trials there may be fewer, where the study was stopped.
    """

    name: str
    plan: Plan
    subject: Subject
    fingerprint: str
    storage: str
    records: Sequence[Record]
    size: int | None = None  # None: as many as there are

    @property
    def metric(self) -> str:
        """What trials are compared by, e.g. NDCG@10."""
        return self.subject.metric

    @property
    def best(self) -> Record:
        """The trial of the best mean over its replicates; the first of equals."""
        found = best_of(self.records)
        if found is None:
            why = next((each.why for each in self.records if each.why), None)
            raise UnveilError(f"all trials failed; the first: {why}", where=f"study {self.name}")
        return found

    @property
    def winner(self) -> Subject:
        """The subject with the settings of the best trial."""
        return self.subject.changed(self.best.settings)

    def count(self, state: str) -> int:
        """How many trials ended so."""
        return sum(each.state == state for each in self.records)

    @property
    def left(self) -> int:
        """Trials that are not over."""
        return 0 if self.size is None else self.size - len(self.records)

    def ranked(self) -> list[Record]:
        """The best first; those without a value last, in order."""
        return sorted(self.records, key=lambda each: (each.score is None, -(each.score or 0.0), each.entry))
