"""Which estimator survives when its assumptions fail? Each assumption is broken by itself, from one base point."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import Any, ClassVar, Self

from pydantic import model_validator

from unveil.errors import UnveilError
from unveil.estimators.base import estimator
from unveil.evaluation.statistics import Paired
from unveil.report.charts import shares_figure
from unveil.report.page import Block
from unveil.simulation.choice import users_do
from unveil.studies.arms import TRUE_THETA, check_gap, with_propensity
from unveil.studies.engine import Answer, Cell, Context, Study
from unveil.studies.results import BASE, BOUND, TRUE, Estimate, paired_json, verdict
from unveil.studies.semisynthetic import SemiSynthetic, cell_key, csv_rows

#: An axis: its title, the assumption that it breaks, and whether its levels are points of a scale.
AXES = {
    "foresight": ("foresight", "exposure does not depend on relevance", True),
    "propensity": ("propensities", "propensities are known", False),
    "choice": ("choice", "the user takes the best of what is exposed", False),
    "severity": ("severity p", "exposure is not too rare", True),
}


@dataclass(frozen=True)
class Point:
    """How logs are drawn, and which propensities estimators are given."""

    choice: str = "rational_exposed"
    foresight: float = 0.0
    severity: float = 1.0
    propensity: str = TRUE_THETA

    def arm(self, name: str) -> str | None:
        """The arm of an estimator here; None where there is no such propensity of the kind it needs."""
        if self.propensity == TRUE_THETA or estimator(name).needs not in ("static", "temporal"):
            return name
        return with_propensity(name, self.propensity)


@dataclass(frozen=True, eq=False)
class Axis:
    """What is varied, which assumption that breaks, and its levels by name; those of a scale are joined by a line."""

    name: str
    title: str
    breaks: str
    levels: Mapping[str, Point]
    scale: bool


@dataclass(frozen=True)
class Standing:
    """One estimator at one point. `test` is against naive; its p is corrected over the estimators of the point."""

    gap: Estimate | None
    test: Paired

    @property
    def verdict(self) -> str:
        return verdict(self.test)

    def as_json(self) -> dict[str, Any]:
        return {"gap_closed": self.gap and asdict(self.gap), "against_naive": paired_json(self.test)}


@dataclass(frozen=True)
class Line:
    """One estimator along one axis, at the levels where it has an arm."""

    estimator: str
    axis: Axis
    standings: Mapping[str, Standing]

    @property
    def verdict(self) -> str:
        """holds: above naive at every level it was tried at; breaks: below at some; fades: neither."""
        found = {each.verdict for each in self.standings.values()}
        return "breaks" if "below" in found else "holds" if found == {"above"} else "fades"

    @property
    def untried(self) -> list[str]:
        return [level for level in self.axis.levels if level not in self.standings]

    @property
    def gaps(self) -> dict[str, Estimate]:
        return {level: each.gap for level, each in self.standings.items() if each.gap is not None}

    @property
    def lowest(self) -> str | None:
        return min(self.gaps, key=lambda level: self.gaps[level].mean, default=None)


class Assumptions(SemiSynthetic):
    """A study at its base point, and the levels of each axis. Estimators are given propensities by their arms."""

    name: ClassVar[str] = "assumptions"
    title: ClassVar[str] = "Which estimator survives when its assumptions fail?"
    template: ClassVar[str] = "assumptions.md.j2"
    extent = Study.extent | {"severity", "base_propensity", "foresights", "choices", "propensities"}

    severity: float = 1.0
    base_propensity: str = TRUE_THETA
    foresights: tuple[float, ...] = ()
    choices: tuple[str, ...] = ()
    propensities: tuple[str, ...] = ()

    @model_validator(mode="after")
    def check_points(self) -> Self:
        check_gap(self.estimators)
        if not self.axes:
            raise UnveilError("no assumption is broken", expected="two levels or more of at least one axis")
        for point in self.points:
            for arm in self.arms_at(point).values():
                self.moved(point).recipe(arm, 0)
        return self

    @property
    def base(self) -> Point:
        return Point(self.choice, self.foresight, self.severity, self.base_propensity)

    @property
    def axes(self) -> list[Axis]:
        """Those with another level than the base's; on a scale the levels are in order, else the base is first."""
        given = (self.foresights, self.propensities, self.choices, self.severities)
        found = []
        for (name, (title, breaks, scale)), values in zip(AXES.items(), given, strict=True):
            every = list(dict.fromkeys([getattr(self.base, name), *values]))
            ordered = sorted(every) if scale else every
            levels = {_called(name, value): replace(self.base, **{name: value}) for value in ordered}
            found += [Axis(name, title, breaks, levels, scale)] if len(levels) > 1 else []
        return found

    @property
    def points(self) -> list[Point]:
        return list(dict.fromkeys([self.base, *(point for axis in self.axes for point in axis.levels.values())]))

    def moved(self, point: Point) -> Self:
        return self.model_copy(update={"choice": point.choice, "foresight": point.foresight})

    def arms_at(self, point: Point) -> dict[str, str]:
        return {name: arm for name in dict.fromkeys(self.estimators) if (arm := point.arm(name)) is not None}

    def cells(self) -> Iterable[Cell]:
        """Every estimator at every point; estimators that do not use what a point changes share a cell."""
        for point in self.points:
            for name, arm in self.arms_at(point).items():
                for world, replicate in product(range(self.worlds), range(self.replicates)):
                    key = f"{point.choice}-f{point.foresight:g}-{cell_key(arm, point.severity, world, replicate)}"
                    place = {**asdict(point), "estimator": name, "world": world, "replicate": replicate}
                    yield Cell(key, place, self.cost(arm))

    def other_keys(self, cell: Cell) -> Sequence[str]:
        """Other studies have the cells in which users choose and are shown items as at the base point."""
        prefix = f"{self.choice}-f{self.foresight:g}-"
        return [cell.key, cell.key.removeprefix(prefix)] if cell.key.startswith(prefix) else [cell.key]

    def run_cell(self, cell: Cell, context: Context) -> Mapping[str, Any]:
        point = Point(**{name: cell.at[name] for name in AXES})
        return self.moved(point).run_arm(cell.at, self.arms_at(point)[cell.at["estimator"]], context)

    def lines(self, answer: Answer) -> dict[Axis, dict[str, Line]]:
        at, names = {point: self.standings(answer, point) for point in self.points}, dict.fromkeys(self.estimators)
        found = {}
        for axis in self.axes:
            own = {name: {x: at[p][name] for x, p in axis.levels.items() if name in at[p]} for name in names}
            found[axis] = {name: Line(name, axis, standings) for name, standings in own.items() if standings}
        return found

    def standings(self, answer: Answer, point: Point) -> dict[str, Standing]:
        """All estimators at one point. A share of a gap that may be none has no interval, and says nothing."""
        results, found = answer.results.at(**asdict(point)), {}
        measure = self.headline(results)
        for name, test in results.against(measure).items():
            gap = results.gap_closed(name, measure)
            found[name] = Standing(None if gap is None or (gap.low is None and gap.n > 1) else gap, test)
        return {name: each for name, each in found.items() if name != BOUND}

    def findings(self, answer: Answer) -> Mapping[str, Any]:
        lines, axes = self.lines(answer), []
        for axis, own in lines.items():
            levels = []
            for level, point in axis.levels.items():
                at = [(name, line.standings[level]) for name, line in own.items() if level in line.standings]
                standings = [{"estimator": name, **each.as_json()} for name, each in at]
                levels.append({"level": level, **asdict(point), "standings": standings})
            axes.append({"name": axis.name, "title": axis.title, "assumption": axis.breaks, "levels": levels})
        return {
            "preset": self.preset,
            "headline": self.headline(answer.results)._asdict(),
            "base": asdict(self.base),
            "axes": axes,
            "verdicts": {a.name: {name: line.verdict for name, line in own.items()} for a, own in lines.items()},
            "world": [world["description"] for world in self.world_records(answer)],
        }

    def facts(self, answer: Answer) -> Mapping[str, Any]:
        lines, measure = self.lines(answer), self.headline(answer.results)
        of = {n: [own[n] for own in lines.values() if n in own] for n in dict.fromkeys(self.estimators)}
        of = {name: own for name, own in of.items() if own}
        whole = {n: own for n, own in of.items() if len(own) == len(lines) and not any(line.untried for line in own)}
        worst = {n: min(m) for n, own in whole.items() if (m := [g.mean for x in own for g in x.gaps.values()])}
        at = {n: {x.axis.levels[k]: s for x in own for k, s in x.standings.items()} for n, own in of.items()}
        results = {point: answer.results.at(**asdict(point)) for point in self.points}
        return {
            "measure": measure,
            "lines": {axis: list(own.values()) for axis, own in lines.items()},
            "of": of,
            "at": at,  # the base point counts once
            "hold": [name for name, own in whole.items() if {line.verdict for line in own} == {"holds"}],
            "best_worst": max(worst.items(), key=lambda found: found[1], default=None),
            "at_base": {name: own[self.base].gap for name, own in at.items() if self.base in own},
            "base_users": users_do(self.base.choice),
            "ends": {end: {point: here.mean(end, measure) for point, here in results.items()} for end in (BASE, BOUND)},
        }

    def figures(self, answer: Answer) -> Mapping[str, Block]:
        lines = self.lines(answer)
        if not any(line.gaps for own in lines.values() for line in own.values()):
            return {}
        gaps = {
            (name, axis.title): {level: line.gaps.get(level) for level in axis.levels}
            for axis, own in lines.items()
            for name, line in own.items()
        }
        return {"shares_figure": shares_figure(gaps, "assumptions", {axis.title: axis.scale for axis in lines})}

    def csv(self, answer: Answer) -> list[dict[str, Any]]:
        return [
            {"axis": axis.name, "level": level, **asdict(point), **row}
            for axis in self.axes
            for level, point in axis.levels.items()
            for row in csv_rows(answer.results.at(**asdict(point)), self.preset)
            if row["evaluation"] == TRUE and row["k"] == self.headline(answer.results).k
        ]


def _called(name: str, value: Any) -> str:
    if name == "choice":
        who, _, among = str(value).partition("_")
        return f"{who} ({among})"
    return str(value).replace(":", " ") if name == "propensity" else f"{value:g}"
