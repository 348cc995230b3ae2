"""What the figure says, chosen by the figures."""

from collections.abc import Iterable, Sequence

from unveil.experiment.assumptions.axes import Axis, Level, Point
from unveil.experiment.assumptions.run import Survey
from unveil.experiment.assumptions.standing import Line, Standing, lines
from unveil.experiment.outcome import Estimate
from unveil.experiment.reproduce.words import caution, gap_text
from unveil.report.names import listed, named, share
from unveil.simulation.choice import told

TITLE = "Which estimator survives when its assumptions fail?"
_JUDGE = {"truth": "true relevance, which a real log does not have", "taken": "what was taken, as on a real log"}
_HOLDS = {"holds": "surely above naive at every level", "breaks": "surely below naive at some level"}


def reading(survey: Survey) -> list[str]:
    """The base point, each axis, and who holds everywhere."""
    found = lines(survey)
    return [_overall(found, len(survey.plan.axes)), _base(survey), *(_axis(axis, found) for axis in survey.plan.axes)]


def remarks(survey: Survey) -> str:
    """What intervals and tests are over."""
    return (
        f"{caution(survey.at(survey.plan.base))} A test is against the naive loss of the same logs; p-values are "
        f"corrected (Holm) over the estimators of a level, not over levels. Which epoch is kept is decided on the "
        f"validation cases by {_JUDGE[survey.plan.study.epoch_by]}."
    )


def described(point: Point) -> str:
    """A point in words."""
    return (
        f"users who {told(point.choice)}, foresight {point.foresight:g}, severity {point.severity:g}, "
        f"{point.propensity} propensities"
    )


def _overall(found: Sequence[Line], axes: int) -> str:
    """Nothing holds everywhere, or has the best worst case, that was not tried everywhere."""
    names = list(dict.fromkeys(line.estimator for line in found))
    verdicts = {name: [line.verdict for line in found if line.estimator == name] for name in names}
    whole = {name: [line for line in found if line.estimator == name and not line.untried] for name in names}
    everywhere = [name for name in names if len(whole[name]) == axes]
    hold = [name for name in everywhere if set(verdicts[name]) == {"holds"}]
    broken = [name for name in names if "breaks" in verdicts[name]]
    best, worst = _best_worst_case([line for line in found if line.estimator in everywhere])
    told = [
        f"Surely above naive at every level of every axis: {listed(hold)}."
        if hold
        else ("No estimator is surely above naive at every level of every axis."),
        f"Surely below it somewhere: {listed(broken)}." if broken else "None is surely below it anywhere.",
        f"The best worst case is that of {named(best)}: {share(worst)} of the gap." if best else "",
    ]
    return " ".join(filter(None, told))


def _best_worst_case(found: Sequence[Line]) -> tuple[str, float]:
    worst: dict[str, float] = {}
    for line in found:
        for gap in _gaps(line.standings):
            worst[line.estimator] = min(worst.get(line.estimator, gap.mean), gap.mean)
    best = max(worst, key=lambda name: worst[name], default="")
    return best, worst.get(best, 0.0)


def _gaps(standings: Sequence[Standing]) -> list[Estimate]:
    return [each.gap for each in standings if each.gap is not None]


def _base(survey: Survey) -> str:
    base = survey.plan.base
    found = next((axis, level) for axis in survey.plan.axes for level in axis.levels if level.point == base)
    rows = [line for line in lines(survey) if line.axis is found[0]]
    shares = [
        f"{named(line.estimator)} {gap_text(each.gap)}"
        for line in rows
        for each in line.standings
        if each.level.point == base and each.gap is not None
    ]
    if not shares:
        return f"At the base point ({described(base)}) the ideal loss is not above the naive one: there is no gap."
    return f"At the base point ({described(base)}) the shares of the gap closed are: {', '.join(shares)}."


def _axis(axis: Axis, found: Sequence[Line]) -> str:
    """Who holds, fades and breaks along the axis, and the best at its last level."""
    rows = [line for line in found if line.axis is axis]
    told = [
        f"{words}: {', '.join(_tried(line) for line in rows if line.verdict == verdict)}"
        for verdict, words in _HOLDS.items()
        if any(line.verdict == verdict for line in rows)
    ]
    fading = [line for line in rows if line.verdict == "fades"]
    told += [f"not to be told from naive somewhere: {', '.join(map(_fades, fading))}"] if fading else []
    last = [line.standings[-1] for line in rows if line.standings and line.standings[-1].level == axis.levels[-1]]
    known = [each for each in last if each.gap is not None]
    end = ""
    if known:
        best = max(known, key=lambda each: each.gap.mean if each.gap else 0.0)
        assert best.gap is not None
        most = "closes most" if best.gap.mean > 0 else "does least harm, and none closes any of the gap"
        end = f" At the last level {named(best.estimator)} {most}: {gap_text(best.gap)}."
    told = [f"{words[0].upper()}{words[1:]}." for words in told]
    return f"Along {said(axis)} (some assume that {axis.breaks}). {' '.join(told)}{end}"


def said(axis: Axis) -> str:
    """severity p: 1, 2, 4."""
    return f"{axis.title}: {_levels(axis.levels)}"


def _fades(line: Line) -> str:
    """ITPS (at noisy 1, popularity)."""
    return f"{_tried(line)} (at {_levels(each.level for each in line.standings if not each.above)})"


def _tried(line: Line) -> str:
    """IPS, or IPS (not tried at timing)."""
    return f"{named(line.estimator)} (not tried at {_levels(line.untried)})" if line.untried else named(line.estimator)


def _levels(levels: Iterable[Level]) -> str:
    return ", ".join(level.label.replace("\n", " ") for level in levels)
