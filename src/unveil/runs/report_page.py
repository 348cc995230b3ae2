"""The figures of the runs as tables and dots, the tests between them, and who gains."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from unveil.data.readers.database import shown
from unveil.evaluation.calibration import Reliability
from unveil.evaluation.result import Evaluation, label
from unveil.files import versions, write_json, write_whole
from unveil.propensity.weights import WeightDiagnostics
from unveil.report.charts import Dot, intervals, reliability
from unveil.report.names import signed
from unveil.report.page import (
    Block,
    Cell,
    Code,
    Column,
    Entry,
    Figure,
    Figures,
    KeyFigure,
    Lists,
    Note,
    Page,
    Ranked,
    Section,
    Table,
    Text,
    count,
    number,
    percent,
    plain,
    write_page,
)
from unveil.report.plots import Line, Scale, lines
from unveil.runs import dial
from unveil.runs.card import WEIGHT_COLUMNS, weight_cells
from unveil.runs.dial import Point
from unveil.runs.report import COLUMN, Asked, Example, Judgements, Report, Side, Slice, report
from unveil.wording import quantity

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


_FULL = "full"
TARGETS = (
    "The targets are what users took, and to be taken an item had to be shown: a run that corrects for exposure may "
    "lose here and still be nearer to what users would like."
)
CAUTION = f"{TARGETS} Intervals are over users; another seed would give other models."


def reading(report: Report) -> list[str]:
    """The conclusions, each a paragraph."""
    paragraphs = [*standing(report), _novelty(report), _alike(report), _belief(report)]
    return [paragraph for paragraph in paragraphs if paragraph]


def standing(side: Side) -> list[str]:
    """Who is best among all items, and whether every protocol says so."""
    return [_accuracy(side), _protocols(side)]


def caution(report: Report) -> str:
    """What the figures do not say."""
    proxy = [run.name for run in report.runs if run.about["by_proxy"]]
    return f"{CAUTION} In {', '.join(proxy)} popularity stands in for exposure." if proxy else CAUTION


def _ranking(side: Side, protocol: str) -> list[int]:
    """Places of the runs, best NDCG@10 first."""
    return sorted(range(len(side.names)), key=lambda place: -row_of(side, place, protocol, "NDCG@10")["mean"])


def _accuracy(side: Side) -> str:
    best, *others = _ranking(side, _FULL)
    row = row_of(side, best, _FULL, "NDCG@10")
    span = f"{row['mean']:.3f} (95% interval {row['low']:.3f} to {row['high']:.3f}, {row['n']:,} users)"
    if not others:
        return f"Among all items, {side.names[best]} has an NDCG@10 of {span}."
    second = row_of(side, others[0], _FULL, "NDCG@10")
    return (
        f"Among all items, {side.names[best]} has the highest NDCG@10, {span}; {side.names[others[0]]} comes next "
        f"with {second['mean']:.3f}, and {_difference(side, best, others[0])}."
    )


def _difference(side: Side, one: int, other: int) -> str:
    assert side.comparison is not None
    pair = {side.names[one], side.names[other]}
    rows = side.comparison.tests.iter_rows(named=True)
    p = next(
        row["p_holm"]
        for row in rows
        if (row["protocol"], row["metric"], row["k"]) == (_FULL, "NDCG", 10) and {row["a"], row["b"]} == pair
    )
    size = "below 0.001" if p < 0.001 else f"{p:.3f}"
    return f"the difference is {'more than' if p < side.comparison.alpha else 'within'} chance (p {size}, corrected)"


def _protocols(side: Side) -> str:
    order = {protocol: _ranking(side, protocol) for protocol in protocols(side)}
    other = [protocol for protocol, found in order.items() if found != order[_FULL]]
    if len(side.names) < 2 or len(order) < 2:
        return ""
    if not other:
        return "Every protocol puts the runs in the same order."
    told = "; ".join(f"{name}: {', '.join(side.names[place] for place in order[name])}" for name in (_FULL, *other))
    return f"The order of the runs hangs on the protocol ({told}). Full ranking asks what a user would see."


def _novelty(report: Report) -> str:
    """Whether a more novel run beats the dial of the most accurate one."""
    dials = {name: found.dial for name, found in report.measured.items() if found.dial}
    if len(dials) < 2:
        return ""
    base = report.names[_ranking(report, _FULL)[0]]
    novel = max(dials, key=lambda name: dials[name][0]["surprise"])
    if novel == base:
        return f"The lists of {base} are also the most novel: {dials[base][0]['surprise']:.2f} bits an item."
    own, there = dials[novel][0], at_novelty(dials[base], dials[novel][0]["surprise"])
    said = (
        f"{novel} lists the least popular items, {own['surprise']:.2f} bits each, at an NDCG@10 of {own['ndcg']:.3f}."
    )
    if there is None:
        return f"{said} The dial of {base} does not reach that far."
    verdict = "more" if there > own["ndcg"] else "less" if there < own["ndcg"] else "as much"
    return f"{said} Turned to the same novelty, the dial of {base} gives {there:.3f}: {verdict}, without training anew."


def at_novelty(points: Sequence[Point], surprise: float) -> float | None:
    """NDCG of a dial where its lists are so surprising, on straight lines between the points; None beyond them."""
    order = sorted(points, key=lambda point: point["surprise"])
    x, y = ([point[name] for point in order] for name in ("surprise", "ndcg"))
    return float(np.interp(surprise, x, y)) if x[0] <= surprise <= x[-1] else None


def _alike(report: Report) -> str:
    if report.shared is None:
        return ""
    return f"Of ten listed items two runs have {10 * report.shared:.1f} in common, mean over users and pairs of runs."


def _belief(report: Report) -> str:
    found = {name: each.calibration for name, each in report.measured.items()}
    best, worst = (pick(found, key=lambda name: found[name].first.error) for pick in (min, max))
    if best == worst:
        return f"Of its first places {best} is off by {found[best].first.error:.1%} on average (ECE)."
    return (
        f"What is promised of the first place is off by {found[best].first.error:.1%} on average (ECE) in {best} and "
        f"by {found[worst].first.error:.1%} in {worst}."
    )


_CALIBRATION = (
    "Scores are trained to be log-probabilities of the next item. Where a run promises 10%, it should be right in one "
    "case out of ten. The loss that weights events aims at what users would like, not at what they will take, so that "
    "its promises about the log need not be kept; a ranking needs no probabilities either. Those who add up, threshold "
    "or mix scores do."
)
_RELIABILITIES = (
    (
        "first",
        "The first place: promised and kept",
        "share that was right",
        "right",
        "Three to ten bins of equally many cases, fewer where hits are few. On the dashed line promises are kept.",
    ),
    (
        "items",
        "Every item: promised and kept",
        "share that was taken",
        "taken",
        "All items at all cases, in bins that promise equally much. Below the dashed line less came than promised.",
    ),
)


def belief_blocks(report: Report) -> list[Block]:
    """Reliability of the first place and of all items, with the errors."""
    found = {name: report.measured[name].calibration for name in report.names}
    ways = {name: {"first": each.first, "items": each.items} for name, each in found.items()}
    drawn = [
        Figure(
            title,
            reliability(
                {name: (each[way].predicted, each[way].observed) for name, each in ways.items()},
                ("promised probability, logarithmic", kept),
                verb,
                f"calibration-{way}",
            ),
            "; ".join(_kept(name, each[way]) for name, each in ways.items()),
            caption,
        )
        for way, title, kept, verb, caption in _RELIABILITIES
    ]
    columns = [
        Column("run"),
        Column("promised", True, "first place, mean"),
        Column("right", True, "first place, mean"),
        Column("ECE", True, "first place"),
        Column("misplaced", True, "of all promised, all items"),
        Column("log-loss", True, "nats a case"),
    ]
    rows: list[list[Cell | str]] = [
        [
            name,
            *(percent(_mean(each.first.size, side)) for side in (each.first.predicted, each.first.observed)),
            percent(each.first.error),
            percent(each.items.error),
            number(each.log_loss, 3),
        ]
        for name, each in found.items()
    ]
    cases = next(iter(found.values())).cases
    return [Text(_CALIBRATION), Figures(drawn), Table(f"Calibration on {cases:,} test cases", columns, rows)]


def _kept(name: str, found: Reliability) -> str:
    each = zip(found.predicted, found.observed, strict=True)
    return f"{name}: {', '.join(f'{p:.2g} promised, {o:.2g} came' for p, o in each)}"


def _mean(size: tuple[float, ...], value: tuple[float, ...]) -> float:
    return sum(n * each for n, each in zip(size, value, strict=True)) / sum(size)


_WEIGHTS = (
    "How many equally weighted events a weighted sample is worth is its effective sample size, (Σ w)² / Σ w². Runs "
    "without weights by a propensity are not listed."
)


def training_blocks(report: Report) -> list[Block]:
    """Curves, weights, and the settings in which runs differ."""
    told: list[Block] = [Figures([figure for figure in (_validation(report), _loss(report)) if figure is not None])]
    weights = {run.name: run.about["weights"] for run in report.runs}
    weighted = {name: WeightDiagnostics(**each) for name, each in weights.items() if each is not None}
    if weighted:
        warnings = [Note(f"{name}: {line}", True) for name, each in weighted.items() for line in each.warnings()]
        told += [Text(_WEIGHTS), *warnings, _weights(report, weighted)]
    if len(report.runs) > 1:
        told.append(_settings(report) if report.differing else Note("The runs differ in none of their settings."))
    return told


def _validation(report: Report) -> Figure | None:
    drawn = {}
    for place, run in enumerate(report.runs):
        shown = [(epoch.epoch, epoch.validation) for epoch in run.fitted.epochs if epoch.validation is not None]
        monitor = run.experiment.training.monitor
        value = [found[monitor] for _, found in shown]
        told = [f"{run.name}, epoch {at}: {monitor} {each:.4f}" for (at, _), each in zip(shown, value, strict=True)]
        if shown:
            drawn[run.name] = Line([at for at, _ in shown], value, told, place)
    if not drawn:
        return None
    monitors = " or ".join(dict.fromkeys(run.experiment.training.monitor for run in report.runs))
    return Figure(
        f"Validation {monitors} by epoch",
        lines(drawn, ("epoch", f"validation {monitors}"), "validation", Scale(whole=True)),
        "; ".join(f"{name}: best {max(line.y):.4f} of {len(line.y)}" for name, line in drawn.items()),
        "The weights of the best epoch are the ones judged.",
    )


def _loss(report: Report) -> Figure:
    drawn = {}
    for place, run in enumerate(report.runs):
        at = [epoch.epoch for epoch in run.fitted.epochs]
        loss = [epoch.loss for epoch in run.fitted.epochs]
        told = [f"{run.name}, epoch {e}: {value:.4f}" for e, value in zip(at, loss, strict=True)]
        drawn[run.name] = Line(at, loss, told, place)
    return Figure(
        "Training loss by epoch",
        lines(drawn, ("epoch", "mean risk of the training slots"), "loss", Scale(bottom=None, whole=True)),
        "; ".join(f"{name}: from {line.y[0]:.4f} to {line.y[-1]:.4f}" for name, line in drawn.items()),
        "Each estimator weighs the slots its own way: heights of different estimators say nothing, shapes do.",
    )


def _weights(report: Report, weighted: Mapping[str, WeightDiagnostics]) -> Table:
    propensity = {run.name: f"{run.about['propensity']}{' (proxy)' * run.about['by_proxy']}" for run in report.runs}
    columns = [Column("run"), Column("propensity"), *WEIGHT_COLUMNS]
    rows: list[list[Cell | str]] = [[name, propensity[name], *weight_cells(each)] for name, each in weighted.items()]
    return Table("What weighting leaves of the sample: the training events", columns, rows)


def _settings(report: Report) -> Table:
    columns = [Column("setting"), *(Column(name) for name in report.names)]
    rows = [[name, *map(_value, values)] for name, values in report.differing.items()]
    return Table("Settings that differ; all others are the same", columns, rows)


def _value(value: Any) -> Cell | str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "–" if value is None else str(value)
    return plain(value)


_KEYS = 4
_EXAMPLES = (
    "What users would have been shown in the place of the last event that was held out. A few of them say nothing "
    "about the mean; they show what the figures are about. Beside an item: how often it stands in the "
    "training part{places}."
)
_PLACES = ", and its place in the lists of other runs"
_BARRED = " The user had met it before, and lists leave out what was met."
_MADE = (
    "Accuracy is on the events that were held out for the test; ties go against the target; a user counts once. "
    "Novelty, slices and calibration are of the same cases. Popularity is counted in the training part."
)


def report_page(report: Report, command: str, files: str) -> Page:
    """The whole page; `files` says what lies beside it."""
    first, *rest = reading(report)
    several = report.comparison is not None
    sections = [
        Section("What came out", [Note(first), *map(Text, rest), *blocks(report), Note(caution(report))]),
        *([Section("Which differences are more than chance", tests(report, "tests.csv"))] if several else []),
        Section("Who gains" if several else "Who is served", gains(report)),
        *([Section("Novelty against accuracy", dial.blocks(_dials(report)))] if all(_dials(report).values()) else []),
        Section("Can the scores be believed?", belief_blocks(report)),
        Section("How they were trained" if several else "How it was trained", training_blocks(report)),
        Section("Lists side by side" if several else "Lists", _lists(report)),
        Section("How it was made", [Text(f"{_MADE} {files}"), Code(command)]),
    ]
    return Page(_title(report), _lede(report), sections, _key_figures(report))


def _dials(report: Report) -> dial.Dials:
    return {name: found.dial for name, found in report.measured.items()}


def _title(report: Report) -> str:
    runs = report.runs
    return f"{quantity(len(runs), 'run')} side by side" if len(runs) > 1 else f"{runs[0].name}: what the run gave"


def _lede(report: Report) -> str:
    about, nouns = report.runs[0].about, {"interactions": "event", "users": "user", "items": "item"}
    counts = ", ".join(quantity(about["log"][name], noun) for name, noun in nouns.items())
    told = [f"{run.name} ({run.settings['estimator.name']}, {run.settings['model.name']})" for run in report.runs]
    return f"{', '.join(told)}. Learnt from {counts}; judged by {about['split'].partition(';')[0]}."


def _key_figures(report: Report) -> list[KeyFigure]:
    found = [row_of(report, place, "full", "NDCG@10") for place in range(len(report.runs))]
    best = sorted(zip(report.names, found, strict=True), key=lambda pair: -pair[1]["mean"])[:_KEYS]
    told = [KeyFigure(f"{row['mean']:.3f}", f"{name}: NDCG@10 among all items") for name, row in best]
    same = ", the same for all runs" if len(report.runs) > 1 else ""
    return [*told, KeyFigure(f"{found[0]['n']:,}", f"users in the test{same}")]


def _lists(report: Report) -> list[Block]:
    told = _EXAMPLES.format(places=_PLACES if len(report.runs) > 1 else "")
    return [Text(told), *(_side_by_side(report, example) for example in report.examples)]


def _side_by_side(report: Report, example: Example) -> Lists:
    titles = report.titles
    earlier = f"{example.earlier:,} earlier, then " if example.earlier else ""
    history = "; ".join(titles[item] for item in example.history) or "nothing"
    places = ", ".join(f"{name} {rank:,}" for name, rank in zip(report.names, example.ranks, strict=True))
    return Lists(
        f"User {example.user}: {example.why}",
        f"History, newest last: {earlier}{history}. Taken next: {titles[example.target]}; its place among all items: "
        f"{places}.{_BARRED if example.barred else ''}",
        [
            Ranked(name, [_entry(report, example, place, item) for item in example.lists[place]])
            for place, name in enumerate(report.names)
        ],
    )


def _entry(report: Report, example: Example, place: int, item: int) -> Entry:
    others = [
        f"{name} {found.index(item) + 1}"
        for other, (name, found) in enumerate(zip(report.names, example.lists, strict=True))
        if other != place and item in found
    ]
    also = f"; also {', '.join(others)}" if others else ""
    mark = "taken next" if item == example.target else ""
    return Entry(report.titles[item], f"taken {quantity(int(report.count_V[item]), 'time')}{also}", mark)


_COMPARISON_MADE = (
    "Accuracy is on the events that were held out for the test; ties go against the target; a user counts once. "
    "Novelty against accuracy, calibration and lists side by side: see the page of unveil report."
)


def beside(page: Path) -> Path:
    """compare.csv beside compare.html."""
    return page.with_suffix(".csv")


def write_comparison(found: Judgements, page: Path, command: Sequence[str]) -> None:
    """Every test as CSV, and the page."""
    write_whole(beside(page), found.comparison.tests.write_csv())
    write_page(judgements_page(found, shlex.join(command), beside(page).name), page)


def judgements_page(found: Judgements, command: str, file: str) -> Page:
    """The whole page; every test is in the file beside it."""
    first, *rest = [paragraph for paragraph in standing(found) if paragraph]
    users = found.evaluations[0].summary["n"][0]
    return Page(
        f"{quantity(len(found.names), 'run')} compared",
        f"{', '.join(found.names)}: on the same cases and negatives of {quantity(users, 'user')}.",
        [
            Section("What came out", [Note(first), *map(Text, rest), *blocks(found), Note(CAUTION)]),
            Section("Which differences are more than chance", tests(found, file)),
            Section("How it was made", [Text(_COMPARISON_MADE), Code(command)]),
        ],
        [*_comparison_key_figures(found), KeyFigure(f"{users:,}", "users in the test, the same for all runs")],
    )


def _comparison_key_figures(found: Judgements) -> list[KeyFigure]:
    means = {name: each.value("full", "NDCG", 10) for name, each in found.judged.items()}
    best = sorted(means, key=lambda name: -means[name])[:_KEYS]
    return [KeyFigure(f"{means[name]:.3f}", f"{name}: NDCG@10 among all items") for name in best]


_BESIDE = "Every figure is in results.json{tests}, every plot in the folder figures as SVG and PNG."
_IN_THE_RUN = "The figures are in metrics.json, case by case in cases.parquet, the plots in the folder figures."


def write_report(found: Report, folder: Path, command: Sequence[str]) -> None:
    """results.json, results.csv, tests.csv where there are several runs, index.html and figures/."""
    told = shlex.join(map(shown, command))
    write_whole(folder / "results.csv", table(found).write_csv())
    if found.comparison is not None:
        write_whole(folder / "tests.csv", found.comparison.tests.write_csv())
    write_json(folder / "results.json", results(found, told))
    beside = _BESIDE.format(tests="" if found.comparison is None else ", every test in tests.csv")
    write_page(report_page(found, told, beside), folder / "index.html")


def write_run_page(run: Path, command: Sequence[str]) -> Path:
    """The page of one run in its own folder, with all that its files tell; the dial is not measured for it."""
    page = run / "index.html"
    write_page(report_page(report([run], Asked(dial=False)), shlex.join(map(shown, command)), _IN_THE_RUN), page)
    return page


def table(found: Report) -> pl.DataFrame:
    """A row for each run and figure."""
    return pl.concat(run.evaluation.summary.select(pl.lit(run.name).alias("run"), pl.all()) for run in found.runs)


def results(found: Report, command: str) -> dict[str, Any]:
    """All that was found."""

    def named(item: int) -> dict[str, str]:
        return {"item_id": found.ids[item], "title": found.titles[item]}

    return {
        "report": 1,
        "command": command,
        "versions": versions(),
        "log": found.runs[0].about["log"],
        "cases": found.runs[0].evaluation.fingerprint,
        "runs": {run.name: _run(found, nth) for nth, run in enumerate(found.runs)},
        "differing": found.differing,
        "slices": [asdict(each) for each in found.slices],
        "shared": found.shared,
        "tests": None if found.comparison is None else _finite(found.comparison.tests).to_dicts(),
        "examples": [
            {
                **asdict(each),
                "history": [named(item) for item in each.history],
                "target": named(each.target),
                "lists": {name: list(map(named, items)) for name, items in zip(found.names, each.lists, strict=True)},
            }
            for each in found.examples
        ],
        "reading": [*reading(found), caution(found)],
    }


def _finite(frame: pl.DataFrame) -> pl.DataFrame:
    """With nothing where JSON has no number: an effect without spread is infinite."""
    numbers = [name for name, kind in frame.schema.items() if kind.is_float()]
    return frame.with_columns(pl.when(pl.col(name).is_finite()).then(pl.col(name)) for name in numbers)


def _run(found: Report, nth: int) -> dict[str, Any]:
    run = found.runs[nth]
    measured = found.measured[run.name]
    return {
        "settings": run.settings,
        "propensity": run.about["propensity"],
        "by_proxy": run.about["by_proxy"],
        "weights": run.about["weights"],
        "epochs": [asdict(epoch) for epoch in run.fitted.epochs],
        "summary": run.evaluation.summary.to_dicts(),
        "calibration": asdict(measured.calibration),
        "dial": list(measured.dial),
    }
