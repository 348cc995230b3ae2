"""The page: one figure, who survives what, every share, and how it was made."""

from unveil.experiment.assumptions.axes import Axis
from unveil.experiment.assumptions.run import Tested
from unveil.experiment.assumptions.standing import Line, Standing, lines
from unveil.experiment.assumptions.words import TITLE, described, reading, remarks, said
from unveil.experiment.names import named, share
from unveil.experiment.outcome import BASE, BOUND
from unveil.experiment.panels import Along, Spot, panels
from unveil.experiment.report import Block, Cell, Code, Column, Figure, KeyFigure, Note, Page, Section, Table, Text
from unveil.experiment.reproduce.blocks import worlds_table
from unveil.experiment.reproduce.question import Sheet
from unveil.experiment.reproduce.words import gap_text, headline

_SURE = "− surely below naive, ° not to be told from it"


def page(tested: Tested, command: str) -> Page:
    """The whole page."""
    first, *rest = reading(tested)
    return Page(
        title=TITLE,
        lede=first,
        key_figures=_key_figures(tested),
        sections=[
            Section("One assumption at a time", [figure(tested), _verdicts(tested)]),
            Section("What the figures say", [*(Text(paragraph) for paragraph in rest), Note(remarks(tested))]),
            Section("Every share", [_shares(tested, axis) for axis in tested.plan.axes]),
            Section("How it was made", _made(tested, command)),
        ],
    )


def _key_figures(tested: Tested) -> list[KeyFigure]:
    """How many levels each estimator is surely above naive at."""
    every = lines(tested)
    names = dict.fromkeys(line.estimator for line in every)
    counted = {name: [each for line in every if line.estimator == name for each in line.standings] for name in names}
    return [
        KeyFigure(f"{sum(each.above for each in own)} of {len(own)}", f"levels at which {named(name)} beats naive")
        for name, own in counted.items()
    ]


def figure(tested: Tested) -> Figure:
    """Estimators down, assumptions across."""
    axes, every = tested.plan.axes, lines(tested)
    names = list(dict.fromkeys(line.estimator for line in every))
    columns = [Along(axis.title, [level.label for level in axis.levels], axis.scale) for axis in axes]
    spots = {(names.index(line.estimator), axes.index(line.axis)): _spots(line) for line in every}
    return Figure(
        "Share of the gap from naive to ideal that is closed, as one assumption after another is broken",
        panels([named(name) for name in names], columns, spots, NAME_OF_FIGURE),
        f"A row for each of {', '.join(map(named, names))}; a column for each of "
        f"{'; '.join(map(said, axes))}. The numbers are in the tables below.",
        f"0 is the naive loss of the same logs, 100% the ideal one; bars are 95% intervals over "
        f"{tested.at(tested.plan.base).units}; an arrow at an edge stands for a share outside the panel. Base point: "
        f"{described(tested.plan.base)}.",
    )


NAME_OF_FIGURE = "assumptions"


def _spots(line: Line) -> list[Spot]:
    """One for each level of the axis; empty where the estimator has no arm or there is no gap."""
    found = {each.level: each for each in line.standings}
    return [_spot(found.get(level)) for level in line.axis.levels]


def _spot(each: Standing | None) -> Spot:
    if each is None or each.gap is None:
        return Spot(None, None, None, "")
    label = each.level.label.replace("\n", " ")
    return Spot(each.gap.mean, each.gap.low, each.gap.high, f"{named(each.estimator)}, {label}: {gap_text(each.gap)}")


def _verdicts(tested: Tested) -> Table:
    every = lines(tested)
    rows: list[list[Cell | str]] = [
        [named(name), *(_verdict(line) for line in every if line.estimator == name)]
        for name in dict.fromkeys(line.estimator for line in every)
    ]
    return Table(
        "holds: surely above naive at every level; breaks: surely below it at some; fades: neither. With the lowest "
        "share of the gap and where it is",
        [Column("estimator"), *(Column(axis.title, False, f"{axis.breaks}?") for axis in tested.plan.axes)],
        rows,
        sortable=False,
    )


def _verdict(line: Line) -> Cell | str:
    low = line.lowest
    if low is None or low.gap is None:
        return "–"
    return Cell(f"{line.verdict}: {share(low.gap.mean)} at {low.level.label.replace(chr(10), ' ')}", low.gap.mean)


def mark(each: Standing | None) -> str:
    """62% [40%, 84%], with a mark where it is not surely above naive."""
    if each is None or each.gap is None:
        return "–"
    return f"{gap_text(each.gap)}{' −' if each.below else '' if each.above else ' °'}"


def _shares(tested: Tested, axis: Axis) -> Table:
    rows: list[list[Cell | str]] = []
    for line in lines(tested):
        if line.axis is axis:
            found = {each.level: each for each in line.standings}
            rows.append([named(line.estimator), *(mark(found.get(level)) for level in axis.levels)])
    heads = [Column(level.label.replace("\n", " "), True) for level in axis.levels]
    return Table(f"Along {axis.title}: share of the gap closed; {_SURE}", [Column("estimator"), *heads], rows)


def sheets(tested: Tested) -> list[Sheet]:
    """For the terminal and the README: a table for each axis, with the two ends of the gap."""
    return [_sheet(tested, axis) for axis in tested.plan.axes]


def _sheet(tested: Tested, axis: Axis) -> Sheet:
    table = _shares(tested, axis)
    ends = [
        [f"{named(end)}, {headline(tested.at(tested.plan.base)).name}", *(_mean(tested, axis, end))]
        for end in (BASE, BOUND)
    ]
    rows = [[cell if isinstance(cell, str) else cell.text for cell in row] for row in table.rows]
    return Sheet(f"Along {axis.title}", ["", *(column.title for column in table.columns[1:])], [*rows, *ends], _SURE)


def _mean(tested: Tested, axis: Axis, arm: str) -> list[str]:
    found = [(tested.at(level.point), level.point.severity) for level in axis.levels]
    return [f"{results.estimate(severity, arm, headline(results)).mean:.3f}" for results, severity in found]


def _made(tested: Tested, command: str) -> list[Block]:
    plan = tested.plan
    return [
        Text(
            "Each axis is varied by itself from the base point. All estimators of a point share its logs, split and "
            "negatives; under equal settings also the initial weights, batches and masks; and draws at different "
            "points share their luck. Judged on true relevance against uniformly drawn negatives, as in the paper."
        ),
        Text(f"Preset {plan.study.preset}: {plan.study.training.about}. Worlds come from {tested.source.about}."),
        worlds_table(tested.worlds),
        Code(command),
        Text(f"Fingerprint of the data: {tested.source.fingerprint[:16]}. Versions and times are in about.json."),
    ]
