"""Tables and plots that studies share: arms by measures, tests, shares of a gap, and the paper's figures beside."""

from collections.abc import Callable, Sequence
from typing import Any

from unveil.evaluation.statistics import Paired
from unveil.report.charts import Dot, intervals
from unveil.report.names import COLOURS, named
from unveil.report.page import Cell, Column, Figure, Table
from unveil.report.plots import Line, Scale, lines
from unveil.report.prose import estimate, interval, number, p_value, percent, share, signed
from unveil.studies.paper import Comparison, Published
from unveil.studies.results import Estimate, Measure, Ranking, Results


def estimate_cell(found: Estimate, mark: str = "", digits: int = 3) -> Cell:
    """0.607* [0.601, 0.613]."""
    return Cell(f"{number(found.mean, digits)}{mark} {interval(found, digits)}".rstrip(), found.mean)


def share_cell(found: Estimate | None, mark: str = "") -> Cell | str:
    """25% [20%, 30%], or a dash where there is no gap."""
    return "–" if found is None else Cell(f"{share(found)}{mark}", found.mean)


def test_cell(found: Paired) -> Cell:
    """+0.012 [+0.003, +0.021]."""
    return Cell(f"{signed(found.difference)} [{signed(found.low)}, {signed(found.high)}]", found.difference)


def arms_table(
    results: Results, measures: Sequence[Measure], published: Published | None = None, *, digits: int = 4
) -> Table:
    """Arms down, measures across: mean with interval, * where significantly above the next best; the paper's below."""
    rankings = results.rankings(measures)
    rows: list[list[Cell | str]] = []
    for arm in results.arms:
        marks = ["*" if ranking.significant(arm) else "" for ranking in rankings]
        found = [results.estimate(arm, measure) for measure in measures]
        rows.append([named(arm), *(estimate_cell(*each, digits) for each in zip(found, marks, strict=True))])
        theirs = [None if published is None else published.figure(arm, measure) for measure in measures]
        if any(figure is not None for figure in theirs):
            pairs = zip(found, theirs, strict=True)
            rows.append(["  paper", *("–" if p is None else paper_cell(f.mean / p - 1, p) for f, p in pairs)])
    columns = [Column("estimator"), *(Column(measure.name, True) for measure in measures)]
    foot = f"Mean [95% interval over {results.units}] · * better than the next best, p < 0.05 after Holm’s correction"
    paper = " · paper: its figure, and how far ours is from it" if len(rows) > len(results.arms) else ""
    return Table("", columns, rows, sortable=not paper, foot=f"{foot}{paper}")


def paper_cell(deviation: float, figure: float) -> Cell:
    """0.6065 (+1.2%)."""
    return Cell(f"{figure:.4f} ({signed(100 * deviation, 1)}%)", figure)


def rankings_table(rankings: Sequence[Ranking]) -> Table:
    """Each arm against the next best."""
    rows: list[list[Cell | str]] = [
        [
            f"{named(step.arm)} over {named(step.below or '')}",
            ranking.measure.protocol,
            ranking.measure.name,
            test_cell(step.test),
            Cell(p_value(step.test.p), step.test.p),
        ]
        for ranking in rankings
        for step in ranking.steps
        if step.test is not None
    ]
    heads = [Column("pair"), Column("ranked against"), Column("metric"), Column("difference", True, "95% interval")]
    return Table("", [*heads, Column("p", True, "paired t, Holm over the table")], rows)


def paper_table(every: Sequence[Comparison]) -> Table:
    """Ours and the paper's, figure by figure."""
    rows: list[list[Cell | str]] = [
        [
            named(each.arm),
            each.measure.name,
            estimate_cell(each.ours),
            Cell(f"{each.paper:.4f}", each.paper),
            Cell(f"{signed(100 * each.deviation, 1)}%", each.deviation),
            "yes" if each.near else "no",
            "–" if each.covered is None else "yes" if each.covered else "no",
        ]
        for each in every
    ]
    numbers = [Column("ours", True, "mean, 95% interval"), Column("paper", True), Column("deviation", True)]
    heads = [Column("estimator"), Column("metric"), *numbers, Column("within 5%"), Column("paper in our interval")]
    return Table("", heads, rows)


def along_table(
    results: Results, condition: str, arms: Sequence[str], cell: Callable[[Results, str], Cell | str]
) -> Table:
    """Arms down, the values of a condition across; `cell` gives each entry."""
    values = results.along(condition)
    rows = [[named(arm), *(cell(results.at(**{condition: value}), arm) for value in values)] for arm in arms]
    return Table("", [Column("estimator"), *(Column(_value(condition, value), True) for value in values)], rows)


def _value(condition: str, value: Any) -> str:
    """p = 2, round 3."""
    return f"p = {value:g}" if condition == "severity" else f"{condition} {value}"


def dot(arm: str, found: Estimate, digits: int = 3, paper: float | None = None) -> Dot:
    """An arm's mean and interval as a dot of a plot."""
    low, high = (found.mean if end is None else end for end in (found.low, found.high))
    return Dot(named(arm), found.mean, low, high, COLOURS.get(arm), f"{named(arm)}: {estimate(found, digits)}", paper)


def dots_figure(results: Results, measure: Measure, published: Published) -> Figure:
    """One measure of all trained arms, the paper's figure beside each."""
    found = {arm: results.estimate(arm, measure) for arm in results.trained}
    dots = [dot(arm, each, 4, published.figure(arm, measure)) for arm, each in found.items()]
    diamonds = " Diamond: the paper." if any(dot.paper is not None for dot in dots) else ""
    slug = f"{measure.evaluation.split()[0]}-{measure.protocol}-{measure.metric.lower()}-{measure.k}"
    return Figure(
        f"{measure.name}, {measure.evaluation}",
        intervals(dots, measure.name, None, slug),
        f"Mean {measure.name} with its interval: {', '.join(f'{dot.label} {dot.mean:.3f}' for dot in dots)}.",
        f"Dot and line: our mean and 95% interval.{diamonds} The axis does not start at 0.",
    )


def along_figure(
    results: Results, condition: str, measure: Measure, *, level: float = 0.95, arms: Sequence[str] = ()
) -> Figure:
    """The means of a measure along a numeric condition, each with its interval as a band."""
    at = [float(value) for value in results.along(condition)]
    drawn = {}
    for arm in arms or results.trained:
        found = [results.at(**{condition: value}).estimate(arm, measure, level) for value in results.along(condition)]
        told = [f"{named(arm)} at {place:g}: {estimate(each)}" for place, each in zip(at, found, strict=True)]
        low, high = ([e.mean if end is None else end for e, end in ends] for ends in _ends(found))
        drawn[named(arm)] = Line(at, [each.mean for each in found], told, COLOURS.get(arm), low, high)
    said = "; ".join(f"{name} {', '.join(number(y) for y in line.y)}" for name, line in drawn.items())
    slug = f"band-{measure.protocol}-{measure.metric.lower()}-{measure.k}"
    scale = Scale(bottom=None, ticks={place: f"{place:g}" for place in at})
    return Figure(
        f"{measure.name}, {measure.protocol}",
        lines(drawn, (condition, measure.name), slug, scale),
        f"{measure.name} along {condition} = {', '.join(f'{place:g}' for place in at)}: {said}.",
        f"Means, and {percent(level)} intervals over {results.units}.",
    )


def _ends(found: Sequence[Estimate]) -> tuple[list[tuple[Estimate, float | None]], list[tuple[Estimate, float | None]]]:
    return [(each, each.low) for each in found], [(each, each.high) for each in found]
