"""The page of the question: one figure of all shares, the tables, and each world by itself."""

from typing import Any

from unveil.evaluation.protocols import FULL
from unveil.experiment.beyond.shares import Share, published, shares
from unveil.experiment.beyond.words import (
    AIM,
    AIM_ESTIMATED,
    STUDY,
    comparable,
    everywhere_judged,
    figures,
    is_estimated,
    judged,
    source_of,
)
from unveil.experiment.outcome import Estimate
from unveil.experiment.reproduce import blocks
from unveil.experiment.reproduce.question import Sheet
from unveil.experiment.reproduce.results import Figure as Judged
from unveil.experiment.reproduce.results import Results
from unveil.experiment.reproduce.words import gap_text, learnable
from unveil.report.charts import Along, Spot, panels
from unveil.report.names import against, named, share
from unveil.report.page import Block, Cell, Column, Figure, Section, Table, Text


def sections(results: Results) -> list[Section]:
    """Everything that is the question's own."""
    if not comparable(results):
        return []
    both: list[Block] = [_table(results, figure) for figure in figures(results)]
    full: list[Block] = [_table(results, figure) for figure in everywhere_judged(results) if figure.protocol == FULL]
    return [
        Section("Share of the gap closed", [_figure(results), *both]),
        Section("Ranked among all items", [Text("The same shares when every item competes."), *full]),
        Section("World by world", [_worlds(results, figure) for figure in figures(results)]),
    ]


def made_of(results: Results, worlds: list[dict[str, Any]]) -> list[Section]:
    """Trainings, weights, worlds and logs, as all questions show them; curves of so many arms could not be read."""
    training: list[Block] = [*blocks.warnings(results), blocks.epochs_table(results, results.severities[0])]
    return [
        Section("How they were trained", [*training, blocks.weights_table(results)]),
        Section("The worlds and their logs", [blocks.worlds_table(worlds), blocks.logs_table(results, paper=False)]),
    ]


def sheet(results: Results, figure: Judged) -> Sheet:
    """Arms down, severities across; the paper's share of ITPS at the foot."""
    found = shares(results, figure)
    rows = [
        [named(arm), *(_text(each) for each in found if each.arm == arm)]
        for arm in dict.fromkeys(each.arm for each in found)
    ]
    return Sheet(
        f"Share of the gap from naive to ideal closed in {judged(figure)}",
        ["", *(f"p = {severity:g}" for severity in results.severities)],
        rows,
        f"[95% interval over {results.units}, of each share by itself] · − surely below naive (p < 0.05 after Holm’s "
        f"correction over the table){_beside(results, figure)}",
    )


def _beside(results: Results, figure: Judged) -> str:
    """The paper's share, under the paper's ranking."""
    if figure.protocol != results.sampled:
        return ""
    return f" · the paper’s ITPS, p = 1: {share(published((figure.metric, figure.k)))}"


def _text(each: Share) -> str:
    mark = " −" if each.below and each.surely else ""
    return "–" if each.gap is None else f"{gap_text(each.gap)}{mark}"


def _figure(results: Results) -> Figure:
    """A row for each arm, those that are told the same of exposure together; a column for each figure."""
    sources = list(dict.fromkeys(map(source_of, learnable(results))))
    arms = sorted(learnable(results), key=lambda arm: sources.index(source_of(arm)))
    ticks = [f"p = {p:g}" if place == 0 else f"{p:g}" for place, p in enumerate(results.severities)]
    every = everywhere_judged(results)
    columns = [Along(f"{figure.name}\n{against(figure.protocol)}", ticks, joined=True) for figure in every]
    spots: dict[tuple[int, int], list[Spot]] = {}
    for column, figure in enumerate(every):
        found = {(each.arm, each.severity): each for each in shares(results, figure)}
        spots |= {(row, column): [_spot(found[arm, p]) for p in results.severities] for row, arm in enumerate(arms)}
    aims = {row: AIM_ESTIMATED if is_estimated(arm) else AIM for row, arm in enumerate(arms) if _is_aimed(arm)}
    return Figure(
        "Which estimator closes how much of the gap",
        panels([named(arm).replace(" · ", "\n") for arm in arms], columns, spots, "gap-closed", aims),
        f"Share of the gap from naive to ideal that each estimator closes along p: {', '.join(map(named, arms))}. "
        f"The numbers are in the tables below.",
        f"0 is the naive loss, 100% the ideal one; bars are 95% intervals over {results.units}. Dashed: the aim, "
        f"{share(AIM)} with the study’s propensities and {share(AIM_ESTIMATED)} with estimated ones or none. An arrow "
        f"at an edge stands for a share outside the panel.",
    )


def _is_aimed(arm: str) -> bool:
    return source_of(arm) == STUDY or is_estimated(arm)


def _spot(each: Share) -> Spot:
    if each.gap is None:
        return Spot(None, None, None, "no gap")
    told = f"{named(each.arm)}, p = {each.severity:g}: {gap_text(each.gap)}"
    return Spot(each.gap.mean, each.gap.low, each.gap.high, told)


def _table(results: Results, figure: Judged) -> Table:
    found = shares(results, figure)
    rows: list[list[Cell | str]] = [
        [
            named(arm),
            source_of(arm),
            *(_gap(each) for each in found if each.arm == arm),
        ]
        for arm in dict.fromkeys(each.arm for each in found)
    ]
    return Table(
        f"Share of the gap closed in {judged(figure)}; − surely below naive{_beside(results, figure)}",
        [Column("estimator"), Column("propensities"), *(Column(f"p = {p:g}", True) for p in results.severities)],
        rows,
    )


def _gap(each: Share) -> Cell | str:
    return "–" if each.gap is None else Cell(_text(each), each.gap.mean)


def _worlds(results: Results, figure: Judged) -> Table:
    columns = [
        Column("estimator"),
        Column("severity p", True),
        *(Column(f"world {number}", True, "over its replicates") for number in range(results.worlds)),
        Column("lowest", True),
    ]
    rows: list[list[Cell | str]] = [
        [
            named(each.arm),
            Cell(f"{each.severity:g}", each.severity),
            *(_world(one) for one in each.worlds),
            "–" if each.lowest is None else Cell(share(each.lowest), each.lowest),
        ]
        for each in shares(results, figure)
    ]
    return Table(f"Share of the gap closed in {figure.name}, each world by itself", columns, rows)


def _world(found: Estimate | None) -> Cell | str:
    return blocks.gap_cell(found)
