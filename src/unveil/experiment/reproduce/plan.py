"""Plan: which cells answer a question."""

from dataclasses import dataclass, field
from pathlib import Path

from unveil.errors import UnveilError
from unveil.experiment.reproduce.cell import CellJob
from unveil.experiment.reproduce.results import Place
from unveil.experiment.reproduce.study import Study
from unveil.experiment.reproduce.worlds import WorldJob
from unveil.studies.arms import check_changes, check_distinct, check_duplicates, estimators_of
from unveil.studies.results import BASELINES
from unveil.wording import quantity

#: The paper's arms.
ESTIMATORS = ("naive", "ips", "itps", "ideal")


@dataclass(frozen=True)
class Plan:
    """A study, and the worlds, severities, replicates and estimators of it that are asked for."""

    study: Study = field(default_factory=Study)
    severities: tuple[float, ...] = (1.0,)
    worlds: int = 1
    replicates: int = 5
    estimators: tuple[str, ...] = ESTIMATORS

    def __post_init__(self) -> None:
        for name in ("worlds", "replicates"):
            if getattr(self, name) < 1:
                raise UnveilError("out of range", where=name, found=getattr(self, name), expected="at least 1")
        for severity in self.severities:
            if not 0 < severity < float("inf"):
                raise UnveilError("the severity is out of range", found=severity, expected="a number above 0")
        check_distinct(self.severities, "--severity")
        if not self.estimators or not self.severities:
            raise UnveilError("nothing to compare", expected="at least one estimator and one severity")
        check_duplicates(self.estimators)
        check_changes(estimators_of(self.estimators), self.study.changes)
        for name in self.estimators:
            self.study.recipe(name, 0)

    @property
    def arms(self) -> tuple[str, ...]:
        """The baselines, then the estimators, each once."""
        return (*BASELINES, *dict.fromkeys(self.estimators))

    def in_words(self) -> str:
        """How much there is to do: 60 trainings in all: naive, itps, ideal, each at 4 severities, …"""
        arms = list(dict.fromkeys(self.estimators))
        total = len(arms) * len(self.severities) * self.worlds * self.replicates
        return (
            f"{quantity(total, 'training')} in all: {', '.join(arms)}, each at "
            f"{quantity(len(self.severities), 'severity', 'severities')}, in {quantity(self.worlds, 'world')}, "
            f"{quantity(self.replicates, 'replicate')} of each."
        )

    def world_jobs(self, folder: Path) -> list[WorldJob]:
        """A job for each world."""
        return [WorldJob(self.study, folder, number) for number in range(self.worlds)]

    def cell_jobs(self, folder: Path) -> dict[Place, CellJob]:
        """Whole replicates first, at all severities; within one the longest jobs first, so that none ends alone."""
        jobs = {
            Place(world, severity, replicate, arm): CellJob(self.study, folder, world, severity, replicate, arm)
            for world in range(self.worlds)
            for replicate in range(self.replicates)
            for severity in self.severities
            for arm in self.arms
        }
        cost = {place: job.cost for place, job in jobs.items()}
        ordered = sorted(jobs, key=lambda at: (at.world, at.replicate, at.severity, -cost[at]))
        return {place: jobs[place] for place in ordered}
