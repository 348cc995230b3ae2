"""Plan: the cells of all axes. Points that axes share are made once, and logs are shared by all arms of a point."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from unveil.errors import UnveilError
from unveil.experiment.assumptions.axes import Axis, Point
from unveil.experiment.reproduce.cell import CellJob
from unveil.experiment.reproduce.study import Study
from unveil.experiment.reproduce.worlds import WorldJob
from unveil.runs.workers import OnProgress
from unveil.studies.arms import TRUE_THETA, check_changes, check_gap, estimators_of


class Spot(NamedTuple):
    """A cell's place: a point of the space of assumptions, a world, a replicate, an estimator."""

    point: Point
    world: int
    replicate: int
    estimator: str


@dataclass(frozen=True)
class PointCell:
    """A cell of a question, at a point whose choice model and foresight are its own."""

    cell: CellJob

    @property
    def key(self) -> str:
        """rational_exposed-f0-w0-p1-r0-itps."""
        study = self.cell.study
        return f"{study.choice}-f{study.foresight:g}-{self.cell.key}"

    @property
    def cost(self) -> float:
        """As any cell's."""
        return self.cell.cost

    def run(self, tell: OnProgress) -> Mapping[str, Any]:
        """As any cell."""
        return self.cell.run(tell)


@dataclass(frozen=True)
class Assumptions:
    """A study at its base point, the axes, and how often everything is repeated."""

    study: Study
    base: Point
    axes: tuple[Axis, ...]
    worlds: int
    replicates: int
    estimators: tuple[str, ...]

    def __post_init__(self) -> None:
        for name in ("worlds", "replicates"):
            if getattr(self, name) < 1:
                raise UnveilError("out of range", where=name, found=getattr(self, name), expected="at least 1")
        check_changes(estimators_of(self.estimators), self.study.changes)
        check_gap(self.estimators)
        for point in self.points:
            for name in self.arms(point).values():
                self.at(point).recipe(name, 0)

    @property
    def points(self) -> tuple[Point, ...]:
        """All points, each once, the base first."""
        return tuple(dict.fromkeys([self.base, *(level.point for axis in self.axes for level in axis.levels)]))

    def at(self, point: Point) -> Study:
        """The study as it is at a point; what estimators are told is said by their arms, so that all share a log."""
        return replace(self.study, choice=point.choice, foresight=point.foresight, propensity=TRUE_THETA)

    def arms(self, point: Point) -> dict[str, str]:
        """estimator → its arm at the point, for those that have one there."""
        found = {name: point.arm(name) for name in dict.fromkeys(self.estimators)}
        return {name: arm for name, arm in found.items() if arm is not None}

    def world_jobs(self, folder: Path) -> list[WorldJob]:
        """A job for each world."""
        return [WorldJob(self.study, folder, number) for number in range(self.worlds)]

    def cell_jobs(self, folder: Path) -> dict[Spot, PointCell]:
        """Whole replicates first; within one log by log, so that a process draws few of them; longest first."""
        jobs = {
            Spot(point, world, replicate, name): PointCell(
                CellJob(self.at(point), folder, world, point.severity, replicate, arm)
            )
            for world in range(self.worlds)
            for replicate in range(self.replicates)
            for point in self.points
            for name, arm in self.arms(point).items()
        }
        cost = {spot: job.cost for spot, job in jobs.items()}
        order = sorted(jobs, key=lambda at: (at.world, at.replicate, _log(at.point), -cost[at]))
        return {spot: jobs[spot] for spot in order}

    def elsewhere(self, folder: Path) -> dict[str, str]:
        """Cells → what other questions call them, in which choice and foresight are those of the base throughout."""
        drawn_as_the_base = (self.base.choice, self.base.foresight)
        return {
            job.key: job.cell.key
            for spot, job in self.cell_jobs(folder).items()
            if (spot.point.choice, spot.point.foresight) == drawn_as_the_base
        }


def _log(point: Point) -> tuple[str, float, float]:
    """What the log of a point depends on."""
    return point.choice, point.foresight, point.severity
