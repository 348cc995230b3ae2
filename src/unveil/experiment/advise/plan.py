"""Plan: what is tried, in which order, and what it will take."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from unveil.data.filters import LogSource
from unveil.errors import UnveilError, unknown
from unveil.estimators.base import estimator
from unveil.experiment.advise.candidates import Candidates, candidates, from_a_log
from unveil.experiment.advise.cell import AdviceCell, Probe
from unveil.experiment.advise.insisted import refuse_probed, refuse_unused
from unveil.experiment.advise.scenarios import Scenario
from unveil.experiment.advise.study import AdviceStudy
from unveil.experiment.advise.worlds import WorldsOfDraw
from unveil.experiment.outcome import BASE, BOUND
from unveil.simulation.choice import CHOICES
from unveil.studies.arms import check_changes, check_distinct, family


class Draw(NamedTuple):
    """A cell's place."""

    scenario: Scenario
    draw: int
    replicate: int
    arm: str


@dataclass(frozen=True)
class AdvicePlan:
    """A log, a study, and the scenarios and candidates that are tried. No propensities: all that can be had.

    Propensities that cannot be had are left out, unless one insists on them.
    """

    source: LogSource
    study: AdviceStudy
    scenarios: tuple[Scenario, ...]
    worlds: int
    replicates: int
    estimators: tuple[str, ...]
    clips: tuple[str, ...]
    propensities: tuple[str, ...] = ()
    insist: bool = False  # on each of the propensities, as somebody who named them does

    def __post_init__(self) -> None:
        for name in ("worlds", "replicates"):
            if getattr(self, name) < 1:
                raise UnveilError("out of range", where=name, found=getattr(self, name), expected="at least 1")
        if self.study.world not in (None, "builtin") and self.worlds > 1:
            raise UnveilError("a saved world is one world", found=f"{self.worlds} worlds", hint="Pass --worlds 1.")
        if not self.scenarios:
            raise UnveilError("there is no scenario to try", expected="at least one of --choices and of --severities")
        for scenario in self.scenarios:
            if scenario.choice not in list(CHOICES):
                raise unknown("choice model", scenario.choice, CHOICES)
            if not 0 < scenario.severity < float("inf"):
                raise UnveilError("the severity is out of range", found=scenario.severity, expected="above 0")
        check_distinct({scenario.severity for scenario in self.scenarios}, "--severities")
        for name in self.estimators:
            _refuse_arm(name)
            estimator(name)
        if set(self.estimators) <= {BASE, BOUND}:
            raise UnveilError("there is nothing to compare with the naive loss", expected="at least one estimator more")
        refuse_unused(self.insisted, self.estimators)
        check_changes((BASE, BOUND, *self.estimators), self.study.changes)
        told = [name for name in self.propensities if name in map(family, from_a_log())]
        for arm in candidates(self.estimators, told, self.clips).arms:
            self.study.recipe(arm, 0)

    @property
    def insisted(self) -> tuple[str, ...]:
        """The propensities without which nothing is to be tried."""
        return self.propensities if self.insist else ()

    def world_jobs(self, folder: Path) -> list[WorldsOfDraw]:
        """A job for each draw from the posterior."""
        return [WorldsOfDraw(self.study, self.source, folder, draw) for draw in range(self.worlds)]

    def probe(self, folder: Path) -> Probe:
        """What can be had, of what is wanted."""
        wanted = [name for name in from_a_log() if not self.propensities or family(name) in self.propensities]
        return Probe(self.study, self.source, folder, self.scenarios[0], tuple(wanted))

    def candidates(self, probed: dict[str, Any], *, rated: bool) -> Candidates:
        """The arms that can be had from the real log as well as from a drawn one, which always has ratings."""
        refuse_probed(self.insisted, probed["real"], probed["drawn"])
        refused = {name for part in ("real", "drawn") for name, why in probed[part].items() if why}
        able = dict.fromkeys(family(name) for name in probed["real"] if name not in refused)
        order = self.propensities or tuple(able)
        named = [name for name in self.estimators if rated or name not in self.by_ratings]
        found = candidates(named, sorted(able, key=order.index), self.clips)
        if found.usable == (BASE,):
            raise UnveilError(
                "of what is asked for, this log allows the naive loss alone",
                found=", ".join((*self.estimators, *self.propensities)),
                hint="Try more --estimators, or --propensities all.",
            )
        return found

    @property
    def by_ratings(self) -> tuple[str, ...]:
        """The estimators that need ratings."""
        return tuple(name for name in self.estimators if estimator(name).needs == "ratings")

    def cell_jobs(self, folder: Path, arms: tuple[str, ...], size: tuple[int, int, int]) -> dict[Draw, AdviceCell]:
        """Whole replicates first; within one log by log, so that a process draws few of them."""
        return {
            Draw(scenario, draw, replicate, arm): AdviceCell(self.study, folder, draw, scenario, replicate, arm, size)
            for draw in range(self.worlds)
            for replicate in range(self.replicates)
            for scenario in self.scenarios
            for arm in arms
        }


def _refuse_arm(name: str) -> None:
    """What other questions say in one word has options of its own here."""
    if "@" in name or "+" in name:
        raise UnveilError(
            "estimators are named alone here",
            where="--estimators",
            found=name,
            hint="Name propensities with --propensities, clips with --clips, and other options with "
            "--set ESTIMATOR:estimator.NAME=VALUE.",
        )
