"""Which estimator survives when its assumptions fail? Each assumption is broken by itself, from one base point."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import Any, ClassVar, Self

from pydantic import model_validator

from unveil.errors import UnveilError
from unveil.estimators.base import estimator
from unveil.evaluation.statistics import Paired
from unveil.report.charts import Along, Spot, panels
from unveil.report.names import named
from unveil.report.page import Block, Cell, Figure, KeyFigure, Table
from unveil.report.prose import percent, share, signed
from unveil.simulation.choice import users_do
from unveil.studies.arms import TRUE_THETA, check_gap, with_propensity
from unveil.studies.engine import Answer, Context, Study
from unveil.studies.engine import Cell as StudyCell
from unveil.studies.results import BASE, BOUND, TRUE, Estimate, paired_json, verdict
from unveil.studies.semisynthetic import SemiSynthetic, cell_key, csv_rows
from unveil.studies.tables import share_spot, table, worlds_table

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


@dataclass(frozen=True)
class Level:
    """A point of an axis, as it is called on it."""

    label: str
    point: Point

    @property
    def name(self) -> str:
        """On one line."""
        return self.label.replace("\n", " ")


@dataclass(frozen=True)
class Axis:
    """What is varied, which assumption that breaks, and its levels; those of a scale are joined by a line."""

    name: str
    title: str
    breaks: str
    levels: tuple[Level, ...]
    scale: bool


@dataclass(frozen=True)
class Standing:
    """One estimator at one level. `test` is against naive; its p is corrected over the estimators of the level."""

    estimator: str
    level: Level
    gap: Estimate | None
    test: Paired

    @property
    def above(self) -> bool:
        """Significantly better than naive."""
        return verdict(self.test) == "above"

    @property
    def below(self) -> bool:
        """Significantly worse than naive."""
        return verdict(self.test) == "below"

    @property
    def text(self) -> str:
        """62% [40%, 84%], or the difference from naive where there is no gap; marked where not above naive."""
        shown = f"{signed(self.test.difference)}, no gap" if self.gap is None else share(self.gap)
        return f"{shown}{' −' if self.below else '' if self.above else ' °'}"


@dataclass(frozen=True)
class Line:
    """One estimator along one axis."""

    estimator: str
    axis: Axis
    standings: tuple[Standing, ...]

    @property
    def verdict(self) -> str:
        """holds: above naive at every level it was tried at; breaks: below at some; fades: neither."""
        if any(each.below for each in self.standings):
            return "breaks"
        return "holds" if all(each.above for each in self.standings) else "fades"

    @property
    def untried(self) -> list[Level]:
        """The levels at which it has no arm."""
        known = [each.level for each in self.standings]
        return [level for level in self.axis.levels if level not in known]

    @property
    def not_above(self) -> list[Level]:
        """The levels at which it is not significantly above naive."""
        return [each.level for each in self.standings if not each.above]

    @property
    def lowest(self) -> tuple[float, Level] | None:
        """The lowest share of the gap, and where it is."""
        known = [(each.gap.mean, each.level) for each in self.standings if each.gap is not None]
        return min(known, key=lambda found: found[0]) if known else None

    def at(self, level: Level) -> Standing | None:
        """How it stands at a level."""
        return next((each for each in self.standings if each.level == level), None)


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
        """Both ends of the gap, something that is varied, and arms that can be trained at every point."""
        check_gap(self.estimators)
        if not self.axes:
            raise UnveilError("no assumption is broken", expected="two levels or more of at least one axis")
        for point in self.points:
            for arm in self.arms_at(point).values():
                self.moved(point).recipe(arm, 0)
        return self

    @property
    def base(self) -> Point:
        """The base point."""
        return Point(self.choice, self.foresight, self.severity, self.base_propensity)

    @property
    def axes(self) -> list[Axis]:
        """An axis for each field of the base point; the base's own value is always among its levels.

        On a scale the levels are in order, else the base is first; an axis with the base alone is left out.
        """
        given = (self.foresights, self.propensities, self.choices, self.severities)
        found = []
        for (name, (title, breaks, scale)), values in zip(AXES.items(), given, strict=True):
            every = list(dict.fromkeys([getattr(self.base, name), *values]))
            ordered = sorted(every) if scale else every
            levels = tuple(Level(_label(name, value), replace(self.base, **{name: value})) for value in ordered)
            found += [Axis(name, title, breaks, levels, scale)] if len(levels) > 1 else []
        return found

    @property
    def points(self) -> list[Point]:
        """All points, each once, the base first."""
        return list(dict.fromkeys([self.base, *(level.point for axis in self.axes for level in axis.levels)]))

    def moved(self, point: Point) -> Self:
        """The study with the choice model and the foresight of a point."""
        return self.model_copy(update={"choice": point.choice, "foresight": point.foresight})

    def arms_at(self, point: Point) -> dict[str, str]:
        """estimator → its arm at the point, for those that have one there."""
        found = {name: point.arm(name) for name in dict.fromkeys(self.estimators)}
        return {name: arm for name, arm in found.items() if arm is not None}

    def cells(self) -> Iterable[StudyCell]:
        """Every estimator at every point; estimators that do not use what a point changes share a cell."""
        for point in self.points:
            for name, arm in self.arms_at(point).items():
                for world, replicate in product(range(self.worlds), range(self.replicates)):
                    key = f"{point.choice}-f{point.foresight:g}-{cell_key(arm, point.severity, world, replicate)}"
                    place = {**asdict(point), "estimator": name, "world": world, "replicate": replicate}
                    yield StudyCell(key, place, self.cost(arm))

    def priority(self, cell: StudyCell) -> Any:
        """Whole replicates first; within one log by log, so that a process draws few of them; longest first."""
        log = [cell.at.get(name, "") for name in ("choice", "foresight", "severity")]
        return cell.at["world"], cell.at.get("replicate", 0), log, -cell.cost

    def other_keys(self, cell: StudyCell) -> Sequence[str]:
        """Other studies have the cells in which users choose and are shown items as at the base point."""
        prefix = f"{self.choice}-f{self.foresight:g}-"
        return [cell.key, cell.key.removeprefix(prefix)] if cell.key.startswith(prefix) else [cell.key]

    def run_cell(self, cell: StudyCell, context: Context) -> Mapping[str, Any]:
        """Train an arm on a log of its point, and evaluate it."""
        point = _point(cell.at)
        arm = self.arms_at(point)[cell.at["estimator"]]
        return self.moved(point).run_arm(cell.at, arm, context)

    def lines(self, answer: Answer) -> list[Line]:
        """Every estimator between naive and ideal along every axis; where it has no arm on an axis there is none."""
        at = {level: self.standings(answer, level) for axis in self.axes for level in axis.levels}
        between = [name for name in dict.fromkeys(self.estimators) if name not in (BASE, BOUND)]
        every = (
            Line(name, axis, tuple(at[level][name] for level in axis.levels if name in at[level]))
            for axis in self.axes
            for name in between
        )
        return [line for line in every if line.standings]

    def standings(self, answer: Answer, level: Level) -> dict[str, Standing]:
        """All estimators at one level. A share of a gap that may be none has no interval, and says nothing."""
        results = answer.results.at(**asdict(level.point))
        measure = self.headline(results)
        found = {}
        for name, test in results.against(measure).items():
            gap = results.gap_closed(name, measure)
            known = None if gap is None or (gap.low is None and gap.n > 1) else gap
            found[name] = Standing(name, level, known, test)
        return {name: each for name, each in found.items() if name != BOUND}

    def findings(self, answer: Answer) -> Mapping[str, Any]:
        """The base point, every standing along every axis, and the verdicts."""
        lines = self.lines(answer)
        verdicts = {a.name: {line.estimator: line.verdict for line in lines if line.axis == a} for a in self.axes}
        return {
            "preset": self.preset,
            "headline": self.headline(answer.results)._asdict(),
            "base": asdict(self.base),
            "axes": [self._axis_json(answer, axis) for axis in self.axes],
            "verdicts": verdicts,
            "world": [world["description"] for world in self.world_records(answer)],
        }

    def _axis_json(self, answer: Answer, axis: Axis) -> dict[str, Any]:
        levels = [
            {
                "level": level.name,
                **asdict(level.point),
                "standings": [_standing_json(each) for each in self.standings(answer, level).values()],
            }
            for level in axis.levels
        ]
        return {"name": axis.name, "title": axis.title, "assumption": axis.breaks, "levels": levels}

    def facts(self, answer: Answer) -> Mapping[str, Any]:
        """Who holds and who breaks everywhere, along each axis and at its end, and the base point."""
        lines = self.lines(answer)
        names = list(dict.fromkeys(line.estimator for line in lines))
        whole = {name: [line for line in lines if line.estimator == name and not line.untried] for name in names}
        everywhere = [name for name in names if len(whole[name]) == len(self.axes)]
        worst = {
            name: min(lows)
            for name in everywhere
            if (lows := [each.gap.mean for line in whole[name] for each in line.standings if each.gap is not None])
        }
        best = max(worst, key=lambda name: worst[name], default=None)
        every = [each for line in lines for each in line.standings]
        return {
            **super().facts(answer),
            "lines": {axis: [line for line in lines if line.axis == axis] for axis in self.axes},
            "hold": [name for name in everywhere if {line.verdict for line in whole[name]} == {"holds"}],
            "broken": [name for name in names if any(x.verdict == "breaks" for x in lines if x.estimator == name)],
            "best_worst": None if best is None else (best, worst[best]),
            "at_base": {s.estimator: s.gap for s in every if s.level.point == self.base and s.gap is not None},
            "last": {axis: _best_at_end([line for line in lines if line.axis == axis]) for axis in self.axes},
            "base_users": users_do(self.base.choice),
            "any_gap": any(each.gap is not None for each in every),
        }

    def tables(self, answer: Answer) -> Mapping[str, Any]:
        """Verdicts, and the shares along each axis, for the terminal with the two ends of the gap."""
        lines = self.lines(answer)
        worlds = worlds_table(self.world_records(answer))
        shares = [self._shares(lines, axis) for axis in self.axes]
        ends = [self._with_ends(answer, table, axis) for table, axis in zip(shares, self.axes, strict=True)]
        return {"worlds": worlds, "verdicts": self._verdicts(lines), "shares": shares, "with_ends": ends}

    def _verdicts(self, lines: Sequence[Line]) -> Table:
        found = {(line.estimator, line.axis.name): line for line in lines}
        rows = [
            [named(name), *(_verdict(found.get((name, axis.name))) for axis in self.axes)]
            for name in dict.fromkeys(name for name, _ in found)
        ]
        heads = ["estimator", *(f"{axis.title} | {axis.breaks}?" for axis in self.axes)]
        return table(heads, rows, text=len(heads), sortable=False)

    def _shares(self, lines: Sequence[Line], axis: Axis) -> Table:
        own = [(line, [line.at(level) for level in axis.levels]) for line in lines if line.axis == axis]
        rows = ([named(line.estimator), *("–" if each is None else each.text for each in at)] for line, at in own)
        return table(["estimator", *(level.name for level in axis.levels)], rows, f"Along {axis.title}")

    def _with_ends(self, answer: Answer, table: Table, axis: Axis) -> Table:
        measure = self.headline(answer.results)
        at = [answer.results.at(**asdict(level.point)) for level in axis.levels]
        ends: list[list[Cell | str]] = [
            [f"{named(end)}, {measure.name}", *(f"{here.mean(end, measure):.3f}" for here in at)]
            for end in (BASE, BOUND)
        ]
        return replace(table, rows=[*table.rows, *ends])

    def figures(self, answer: Answer) -> Mapping[str, Block]:
        """Estimators down, assumptions across; nothing where there is no gap anywhere."""
        axes, lines = self.axes, self.lines(answer)
        if all(each.gap is None for line in lines for each in line.standings):
            return {}
        names = list(dict.fromkeys(line.estimator for line in lines))
        columns = [Along(axis.title, [level.label for level in axis.levels], axis.scale) for axis in axes]
        spots = {
            (names.index(line.estimator), axes.index(line.axis)): [_spot(line, level) for level in line.axis.levels]
            for line in lines
        }
        alt = f"A row for each of {', '.join(map(named, names))}; a column for each assumption that is broken."
        drawing = panels([named(name) for name in names], columns, spots, "assumptions")
        return {"shares_figure": Figure("", drawing, f"{alt} The numbers are in the tables below.")}

    def key_figures(self, answer: Answer) -> Sequence[KeyFigure]:
        """At how many points each estimator is significantly above naive; the base point counts once."""
        counted: dict[str, dict[Point, bool]] = {}
        for line in self.lines(answer):
            for each in line.standings:
                counted.setdefault(line.estimator, {})[each.level.point] = each.above
        return [
            KeyFigure(f"{sum(own.values())} of {len(own)}", f"points where {named(name)} beats naive")
            for name, own in counted.items()
        ]

    def csv(self, answer: Answer) -> list[dict[str, Any]]:
        """The rows of the other studies, on true relevance at ten places, with where they are."""
        places = self.headline(answer.results).k
        return [
            {"axis": axis.name, "level": level.name, **asdict(level.point), **row}
            for axis in self.axes
            for level in axis.levels
            for row in csv_rows(answer.results.at(**asdict(level.point)), self.preset)
            if row["evaluation"] == TRUE and row["k"] == places
        ]

    def announcement(self) -> str:
        """None."""
        return ""


def _point(at: Mapping[str, Any]) -> Point:
    return Point(at["choice"], at["foresight"], at["severity"], at["propensity"])


def _label(name: str, value: Any) -> str:
    if name == "choice":
        who, _, among = str(value).partition("_")
        return f"{who}\n({among})"
    return str(value).replace(":", " ") if name == "propensity" else f"{value:g}"


def _best_at_end(lines: Sequence[Line]) -> Standing | None:
    """The estimator that closes most at the last level of an axis."""
    last = [each for line in lines if (each := line.at(line.axis.levels[-1])) is not None and each.gap is not None]
    return max(last, key=lambda each: each.gap.mean if each.gap else 0.0, default=None)


def _standing_json(each: Standing) -> dict[str, Any]:
    gap = each.gap and asdict(each.gap)
    return {"estimator": each.estimator, "gap_closed": gap, "against_naive": paired_json(each.test)}


def _verdict(line: Line | None) -> Cell | str:
    if line is None or line.lowest is None:
        return "–"
    lowest, level = line.lowest
    return Cell(f"{line.verdict}: {percent(lowest)} at {level.name}", lowest)


def _spot(line: Line, level: Level) -> Spot:
    found = line.at(level)
    return share_spot(None if found is None else found.gap, f"{named(line.estimator)}, {level.name}")
