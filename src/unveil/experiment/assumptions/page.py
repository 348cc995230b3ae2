"""The page: one figure, who survives what, every share, and how it was made."""

from unveil.experiment.assumptions.axes import Axis
from unveil.experiment.assumptions.run import Survey
from unveil.experiment.assumptions.standing import Line, Standing, lines
from unveil.experiment.assumptions.words import TITLE, described, reading, remarks, said
from unveil.experiment.outcome import BASE, BOUND
from unveil.experiment.reproduce.blocks import worlds_table
from unveil.experiment.reproduce.question import Sheet
from unveil.experiment.reproduce.words import gap_text, headline
from unveil.report.charts import Along, Spot, panels
from unveil.report.names import named, share, signed
from unveil.report.page import Block, Cell, Code, Column, Figure, KeyFigure, Note, Page, Section, Table, Text

_SURE = (
    "− surely below naive, ° not to be told from it; where ideal is not surely above naive, the difference from naive"
)


def page(survey: Survey, command: str) -> Page:
    """The whole page."""
    first, *rest = reading(survey)
    return Page(
        title=TITLE,
        lede=first,
        key_figures=_key_figures(survey),
        sections=[
            Section("One assumption at a time", [figure(survey), _verdicts(survey)]),
            Section("What the figures say", [*(Text(paragraph) for paragraph in rest), Note(remarks(survey))]),
            Section("Every share", [_shares(survey, axis) for axis in survey.plan.axes]),
            Section("How it was made", _made(survey, command)),
        ],
    )


def _key_figures(survey: Survey) -> list[KeyFigure]:
    """At how many points each estimator is surely above naive."""
    every = lines(survey)
    names = dict.fromkeys(line.estimator for line in every)
    counted = {
        name: {each.level.point: each for line in every if line.estimator == name for each in line.standings}
        for name in names
    }  # the base point is on every axis, and counts once
    return [
        KeyFigure(
            f"{sum(each.above for each in own.values())} of {len(own)}", f"points where {named(name)} beats naive"
        )
        for name, own in counted.items()
    ]


def figure(survey: Survey) -> Block:
    """Estimators down, assumptions across; a note where there is no gap anywhere."""
    axes, every = survey.plan.axes, lines(survey)
    if all(each.gap is None for line in every for each in line.standings):
        return Note("The ideal loss is nowhere surely above the naive one: there is no gap to draw shares of.")
    names = list(dict.fromkeys(line.estimator for line in every))
    columns = [Along(axis.title, [level.label for level in axis.levels], axis.scale) for axis in axes]
    spots = {(names.index(line.estimator), axes.index(line.axis)): _spots(line) for line in every}
    return Figure(
        "Share of the gap from naive to ideal that is closed, as one assumption after another is broken",
        panels([named(name) for name in names], columns, spots, "assumptions"),
        f"A row for each of {', '.join(map(named, names))}; a column for each of "
        f"{'; '.join(map(said, axes))}. The numbers are in the tables below.",
        f"0 is the naive loss of the same logs, 100% the ideal one; bars are 95% intervals over "
        f"{survey.at(survey.plan.base).units}; an arrow at an edge stands for a share outside the panel. Base point: "
        f"{described(survey.plan.base)}.",
    )


def _spots(line: Line) -> list[Spot]:
    """One for each level of the axis; empty where the estimator has no arm or there is no gap."""
    found = {each.level: each for each in line.standings}
    return [_spot(found.get(level)) for level in line.axis.levels]


def _spot(each: Standing | None) -> Spot:
    if each is None or each.gap is None:
        return Spot(None, None, None, "")
    label = each.level.label.replace("\n", " ")
    return Spot(each.gap.mean, each.gap.low, each.gap.high, f"{named(each.estimator)}, {label}: {gap_text(each.gap)}")


def _verdicts(survey: Survey) -> Table:
    found = {(line.estimator, line.axis.name): line for line in lines(survey)}
    rows: list[list[Cell | str]] = [
        [named(name), *(_verdict(found.get((name, axis.name))) for axis in survey.plan.axes)]
        for name in dict.fromkeys(name for name, _ in found)
    ]
    return Table(
        "holds: surely above naive at every level it was tried at; breaks: surely below it at some; fades: neither. "
        "With the lowest share of the gap and where it is",
        [Column("estimator"), *(Column(axis.title, False, f"{axis.breaks}?") for axis in survey.plan.axes)],
        rows,
        sortable=False,
    )


def _verdict(line: Line | None) -> Cell | str:
    low = None if line is None else line.lowest
    if line is None or low is None or low.gap is None:
        return "–"
    return Cell(f"{line.verdict}: {share(low.gap.mean)} at {low.level.label.replace(chr(10), ' ')}", low.gap.mean)


def mark(each: Standing | None) -> str:
    """62% [40%, 84%], or the difference from naive where there is no gap; marked where it is not surely above naive."""
    if each is None:
        return "–"
    told = f"{signed(each.test.difference)}, no gap" if each.gap is None else gap_text(each.gap)
    return f"{told}{' −' if each.below else '' if each.above else ' °'}"


def _shares(survey: Survey, axis: Axis) -> Table:
    rows: list[list[Cell | str]] = []
    for line in lines(survey):
        if line.axis is axis:
            found = {each.level: each for each in line.standings}
            rows.append([named(line.estimator), *(mark(found.get(level)) for level in axis.levels)])
    heads = [Column(level.label.replace("\n", " "), True) for level in axis.levels]
    return Table(f"Along {axis.title}: share of the gap closed; {_SURE}", [Column("estimator"), *heads], rows)


def sheets(survey: Survey) -> list[Sheet]:
    """For the terminal and the README: a table for each axis, with the two ends of the gap."""
    return [_sheet(survey, axis) for axis in survey.plan.axes]


def _sheet(survey: Survey, axis: Axis) -> Sheet:
    table = _shares(survey, axis)
    ends = [
        [f"{named(end)}, {headline(survey.at(survey.plan.base)).name}", *(_mean(survey, axis, end))]
        for end in (BASE, BOUND)
    ]
    rows = [[cell if isinstance(cell, str) else cell.text for cell in row] for row in table.rows]
    return Sheet(f"Along {axis.title}", ["", *(column.title for column in table.columns[1:])], [*rows, *ends], _SURE)


def _mean(survey: Survey, axis: Axis, arm: str) -> list[str]:
    found = [(survey.at(level.point), level.point.severity) for level in axis.levels]
    return [f"{results.estimate(severity, arm, headline(results)).mean:.3f}" for results, severity in found]


def _made(survey: Survey, command: str) -> list[Block]:
    plan = survey.plan
    return [
        Text(
            "Each axis is varied by itself from the base point. All estimators of a point share its logs, split and "
            "negatives; under equal settings also the initial weights, batches and masks; and draws at different "
            "points share their luck. Judged on true relevance against uniformly drawn negatives, as in the paper."
        ),
        Text(f"Preset {plan.study.preset}: {plan.study.about}. Worlds come from {survey.source.about}."),
        worlds_table(survey.worlds),
        Code(command),
        Text(f"Fingerprint of the data: {survey.source.fingerprint[:16]}. Versions and times are in about.json."),
    ]
