"""The engine that needs nothing: one job after another, in this process."""

from collections.abc import Iterator, Sequence

from unveil.experiment.grid.attempt import attempt
from unveil.experiment.grid.job import Begun, Event, Job


class Inline:
    """For small grids and for debugging. It does not tell how far the job at hand has come."""

    def workers(self) -> int:
        """One."""
        return 1

    def run(self, jobs: Sequence[Job]) -> Iterator[Event]:
        """One after another."""
        for job in jobs:
            yield Begun(job.key)
            yield attempt(job, lambda share: None)
