"""What an engine is asked to do, and what it tells while doing it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

#: A result: what JSON can hold.
Result = Mapping[str, Any]
#: Told how much of a job is done, from 0 to 1.
Tell = Callable[[float], None]


class Job(Protocol):
    """One cell of a grid. It is sent to other processes, so it is small and knows where to find what is large."""

    @property
    def key(self) -> str:
        """Its name, the same in every run: the name of the file that keeps its result."""

    @property
    def cost(self) -> float:
        """How long it takes, in any unit that all jobs of a grid share."""

    def run(self, tell: Tell) -> Result:
        """Do the work. The result depends on nothing but the job."""


@dataclass(frozen=True)
class Begun:
    """A job has been taken up."""

    key: str


@dataclass(frozen=True)
class Advanced:
    """A share of a job is done."""

    key: str
    share: float


@dataclass(frozen=True)
class Done:
    """A job is done."""

    key: str
    result: Result
    seconds: float


@dataclass(frozen=True)
class Failed:
    """A job could not be done: why, in a sentence, and what a programmer wants to know."""

    key: str
    why: str
    detail: str = ""


Event = Begun | Advanced | Done | Failed


class Engine(Protocol):
    """Whatever does jobs: processes of this machine, or a cluster. Closing the iterator stops all work at once."""

    def workers(self) -> int:
        """How many jobs are done at the same time."""

    def run(self, jobs: Sequence[Job]) -> Iterator[Event]:
        """Do all jobs, in about the order given, and tell how it goes. Every job ends as `Done` or `Failed`."""
