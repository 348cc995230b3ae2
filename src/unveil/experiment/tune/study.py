"""A study as a whole: what was planned, and what came of it."""

from collections.abc import Sequence
from dataclasses import dataclass

from unveil.errors import UnveilError
from unveil.experiment.tune.plan import Plan
from unveil.experiment.tune.record import Record, best_of
from unveil.experiment.tune.subjects.base import Subject


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
