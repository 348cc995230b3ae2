"""The figures of the runs as tables and dots, the tests between them, and who gains."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import polars as pl

from unveil.evaluation.result import Evaluation, label
from unveil.experiment.compared.run import Report
from unveil.experiment.compared.side import Side
from unveil.experiment.compared.slices import COLUMN, Slice
from unveil.report.charts import Dot, intervals
from unveil.report.names import signed
from unveil.report.page import Block, Cell, Column, Figure, Figures, Table, Text, count, number
from unveil.report.plots import Line, Scale, lines

LISTS = "lists"
_HEADLINES = ("NDCG@10", "Recall@10")
_FIRST = ("NDCG@10", "Recall@10", "MRR@10", "NDCG@5", "Recall@5", "MRR@5")
#: What the figures of lists are; which way is better is for the reader to say.
_MEANT = {
    "ARP": "training events of a listed item",
    "EFD": "surprise of a listed item, bits",
    "Coverage": "of all items",
    "Gini": "0: all items listed alike",
}
_LONGEST = 26
_BEST = "best"
_TESTED = (
    "Each user counts once in every pair of runs (paired t-test). The p-values are corrected by Holm's method for all "
    "{tests:,} tests between these runs, every protocol and metric together; those of the headlines are shown, and all "
    "of them are in {file}."
)
_SLICES = (
    "A mean can hide who pays for it. The test cases in thirds, by how often the item that was taken stands in the "
    "training part, and by how long the user's history is: NDCG@10 among all items."
)


def protocols(side: Side) -> list[str]:
    """Full ranking first; the lists have no target and stand apart."""
    found = side.evaluations[0].summary["protocol"].unique(maintain_order=True).to_list()
    return [name for name in found if name != LISTS]


def row_of(side: Side, run: int, protocol: str, name: str) -> dict[str, Any]:
    """One figure of a run's summary, by a label such as NDCG@10."""
    metric, _, k = name.partition("@")
    asked = (pl.col("protocol") == protocol) & (pl.col("metric") == metric) & (pl.col("k") == int(k or 0))
    return side.evaluations[run].summary.filter(asked).row(0, named=True)


def blocks(side: Side) -> list[Block]:
    """Dots, and a table for each protocol; of one run all protocols in one."""
    if side.comparison is None:
        return [_protocols_of_one(side), _table(side, LISTS)]
    drawn = [_dots(side, protocol) for protocol in protocols(side)]
    return [Figures(drawn), *(_table(side, protocol) for protocol in (*protocols(side), LISTS))]


def _protocols_of_one(side: Side) -> Table:
    names = [name for name in _FIRST if _has(side.evaluations[0], protocols(side)[0], name)]
    rows: list[list[Cell | str]] = [[kind, *(_cell(side, 0, kind, name) for name in names)] for kind in protocols(side)]
    columns = [Column("ranking"), *(Column(name, True) for name in names)]
    return Table(f"Accuracy; {_means(side)}", columns, rows)


def _has(evaluation: Evaluation, protocol: str, name: str) -> bool:
    return name in _names(evaluation, protocol)


def _names(evaluation: Evaluation, protocol: str) -> list[str]:
    summary = evaluation.summary.filter(pl.col("protocol") == protocol)
    return [label(metric, k) for metric, k in summary.select("metric", "k").iter_rows()]


def _means(side: Side) -> str:
    return f"means over {side.evaluations[0].summary['n'][0]:,} users with 95% intervals"


def _dots(side: Side, protocol: str) -> Figure:
    found = [row_of(side, place, protocol, "NDCG@10") for place in range(len(side.names))]
    dots = [
        Dot(
            name if len(name) <= _LONGEST else f"…{name[1 - _LONGEST :]}",
            row["mean"],
            row["low"],
            row["high"],
            place,
            f"{name}: {row['mean']:.4f}, {row['low']:.4f} to {row['high']:.4f}",
        )
        for place, (name, row) in enumerate(zip(side.names, found, strict=True))
    ]
    return Figure(
        f"{protocol.capitalize()}: NDCG@10",
        intervals(dots, "NDCG@10", max(dot.high for dot in dots) or 1.0, f"ndcg-{protocol}"),
        "; ".join(dot.title for dot in dots),
        f"{_asked(protocol)} Mean over {found[0]['n']:,} users, 95% interval.",
    )


def _asked(protocol: str) -> str:
    kind, _, size = protocol.partition("-")
    if kind == "full":
        return "The item that was taken, ranked among all items."
    how = "drawn uniformly" if kind == "uniform" else "drawn by popularity"
    return f"The same item among {size} that were {how}: an easier question, not to be compared with the others."


def _table(side: Side, protocol: str) -> Table:
    found = _names(side.evaluations[0], protocol)
    names = [name for name in found if all(_has(each, protocol, name) for each in side.evaluations)]
    names = sorted(names, key=lambda name: _FIRST.index(name) if name in _FIRST else len(_FIRST))
    columns = [Column(name, True, _MEANT.get(name.partition("@")[0], "")) for name in names]
    body: list[list[Cell | str]] = [
        [run, *(_cell(side, place, protocol, name) for name in names)] for place, run in enumerate(side.names)
    ]
    caption = "What is listed: ten items for each user" if protocol == LISTS else f"{protocol.capitalize()} ranking"
    return Table(f"{caption}; {_means(side)}", [Column("run"), *columns], body)


def _cell(side: Side, place: int, protocol: str, name: str) -> Cell:
    row = row_of(side, place, protocol, name)
    digits = 3 if row["mean"] < 10 else 1
    span = "" if row["low"] is None else f" [{row['low']:.{digits}f}, {row['high']:.{digits}f}]"
    mark = "" if protocol == LISTS else _mark(side, place, protocol, row)
    return Cell(f"{row['mean']:.{digits}f}{span}", row["mean"], mark, soft=mark == _BEST)


def _mark(side: Side, place: int, protocol: str, row: dict[str, Any]) -> str:
    if side.comparison is None:
        return ""
    asked = (pl.col("protocol") == protocol) & (pl.col("metric") == row["metric"]) & (pl.col("k") == row["k"])
    found = side.comparison.table.filter(asked & (pl.col("model") == side.names[place])).row(0, named=True)
    return "surely best" if found["significant"] else _BEST if found["place"] == 1 else ""


def tests(side: Side, file: str) -> list[Block]:
    """The pairs under the headlines of every protocol, and of the lists; all of them are in the file."""
    comparison = side.comparison
    assert comparison is not None
    headline = pl.concat_str("metric", pl.lit("@"), "k").is_in(_HEADLINES) | (pl.col("protocol") == LISTS)
    shown = comparison.tests.filter(headline).iter_rows(named=True)
    columns = [
        Column("figure"),
        Column("first run"),
        Column("second run"),
        Column("difference", True, "first − second, 95% interval"),
        Column("effect", True, "in standard deviations"),
        Column("p", True, "Holm-corrected"),
    ]
    caption = f"Pairs of runs over {comparison.tests['n'][0]:,} users"
    told = Text(_TESTED.format(tests=len(comparison.tests), file=file))
    return [told, Table(caption, columns, [_test(row) for row in shown])]


def _test(row: dict[str, Any]) -> list[Cell | str]:
    digits = 3 if abs(row["difference"]) < 10 else 1
    ends = ", ".join(signed(row[end], digits) for end in ("low", "high"))
    return [
        f"{row['protocol']}: {label(row['metric'], row['k'])}",
        row["a"],
        row["b"],
        Cell(f"{signed(row['difference'], digits)} [{ends}]", row["difference"]),
        number(row["effect"], 2),
        Cell("below 0.001" if row["p_holm"] < 0.001 else f"{row['p_holm']:.3f}", row["p_holm"]),
    ]


def gains(report: Report) -> list[Block]:
    """Slices of the cases: a plot and a table for each way to cut them."""
    ways = {of: list(found) for of, found in groupby(report.slices, key=lambda each: each.of)}
    drawn = [_slice_lines(report, of, found) for of, found in ways.items() if len(found) > 1]
    tables = [_slice_table(report, of, found) for of, found in ways.items()]
    return [Text(_SLICES), *([Figures(drawn)] if drawn else []), *tables]


def _slice_lines(report: Report, of: str, found: Sequence[Slice]) -> Figure:
    at = range(len(found))
    ticks = {float(place): each.name.partition(":")[0] for place, each in enumerate(found)}
    drawn = {}
    for place, run in enumerate(report.names):
        mean, low, high = zip(*(each.estimates[place] for each in found), strict=True)
        told = [f"{run}, {each.name}: {value:.3f}" for each, value in zip(found, mean, strict=True)]
        drawn[run] = Line(at, mean, told, place, low, high)
    return Figure(
        f"By {of}",
        lines(drawn, ("third of the cases", "NDCG@10"), f"by-{of.split()[0]}", Scale(ticks=ticks)),
        "; ".join(line for each in drawn.values() for line in each.told),
        f"{'; '.join(each.name for each in found)}. Bands are 95% intervals over users.",
    )


def _slice_table(report: Report, of: str, found: Sequence[Slice]) -> Table:
    columns = [Column(of), Column("cases", True), *(Column(name, True) for name in report.names)]
    rows: list[list[Cell | str]] = [
        [each.name, count(each.cases), *(_span(*estimate) for estimate in each.estimates)] for each in found
    ]
    return Table(f"{COLUMN.partition(':')[2]} by {of}", columns, rows)


def _span(mean: float, low: float, high: float) -> Cell:
    return Cell(f"{mean:.3f} [{low:.3f}, {high:.3f}]", mean)
