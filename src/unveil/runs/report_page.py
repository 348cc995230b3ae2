"""The report of runs as files: a page for people, its figures as JSON and CSV for programs."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Any

import polars as pl

from unveil.data.readers.database import shown
from unveil.evaluation.calibration import Calibration, Reliability
from unveil.evaluation.result import label
from unveil.files import versions, write_json, write_whole
from unveil.propensity.weights import WeightDiagnostics
from unveil.report.charts import Dot, intervals, reliability_figure
from unveil.report.page import (
    Cell,
    Code,
    Column,
    Entry,
    Figure,
    Lists,
    Ranked,
    Table,
    count,
    number,
    percent,
    plain,
    write_page,
)
from unveil.report.plots import Line, Scale, line_figure
from unveil.report.prose import Prose, signed
from unveil.runs.card import WEIGHT_COLUMNS, weight_cells
from unveil.runs.dial import at_novelty, dial_figures
from unveil.runs.report import LISTS, ComparedRuns, Example, Report, ReportOptions, Slice, report
from unveil.runs.run_folder import Run
from unveil.wording import quantity

_HEADLINES = ("NDCG@10", "Recall@10")
_FIRST = ("NDCG@10", "Recall@10", "MRR@10", "NDCG@5", "Recall@5", "MRR@5")
#: What list metrics are; which way is better is for the reader to say.
_MEANING = {
    "ARP": "training interactions of a recommended item",
    "EFD": "surprise of a recommended item, bits",
    "Coverage": "of all items",
    "Gini": "0: all items recommended equally often",
}
_LONGEST = 26
_BEST = "best"


def write_report(found: Report, folder: Path, command: Sequence[str]) -> None:
    """results.json, results.csv, tests.csv where there are several runs, index.html and figures/."""
    line = shlex.join(map(shown, command))
    summaries = (each.summary.select(pl.lit(name).alias("run"), pl.all()) for name, each in found.evaluations.items())
    write_whole(folder / "results.csv", pl.concat(summaries).write_csv())
    if found.comparison is not None:
        write_whole(folder / "tests.csv", found.comparison.tests.write_csv())
    write_json(folder / "results.json", results(found, line))
    parts = _report_parts(found) | {"command": Code(line)}
    write_page(_prose(found, file="tests.csv", parts=parts).page(parts), folder / "index.html")


def write_run_page(run: Run, command: Sequence[str]) -> Path:
    """The page of one run in its own folder; the dial is not measured for it."""
    found = report([run], ReportOptions(dial=False))
    parts = _report_parts(found) | {"command": Code(shlex.join(map(shown, command)))}
    write_page(_prose(found, file="", parts=parts).page(parts), run.folder / "index.html")
    return run.folder / "index.html"


def beside(page: Path) -> Path:
    """compare.csv beside compare.html."""
    return page.with_suffix(".csv")


def write_comparison(found: ComparedRuns, page: Path, command: Sequence[str]) -> None:
    """Every test as CSV, and the page; no model is evaluated again."""
    assert found.comparison is not None
    write_whole(beside(page), found.comparison.tests.write_csv())
    parts = _result_parts(found) | {"command": Code(shlex.join(command))}
    write_page(Prose(["comparison.md.j2", "report.md.j2"], _facts(found, file=beside(page).name)).page(parts), page)


def findings(found: Report) -> list[str]:
    """The conclusions and the caution, each a paragraph."""
    prose = _prose(found)
    return [*prose.paragraphs("findings"), *prose.paragraphs("caution")]


def targets_caution() -> str:
    """What the targets of an evaluation cannot say."""
    return Prose(["report.md.j2"], {}).line("targets")


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
        "runs": {run.name: _run(found, run) for run in found.runs},
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
        "reading": findings(found),
    }


def _finite(frame: pl.DataFrame) -> pl.DataFrame:
    """With nothing where JSON has no number: an effect without spread is infinite."""
    numbers = [name for name, kind in frame.schema.items() if kind.is_float()]
    return frame.with_columns(pl.when(pl.col(name).is_finite()).then(pl.col(name)) for name in numbers)


def _run(found: Report, run: Run) -> dict[str, Any]:
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


def _facts(found: ComparedRuns, file: str = "") -> dict[str, Any]:
    """What the sentences are chosen by."""
    orders = {protocol: found.order(protocol) for protocol in found.protocols}
    ranked = [(name, found.row(name, "full", "NDCG@10")) for name in orders["full"]]
    p = None if found.comparison is None else _p_of_pair(found.comparison.tests, *orders["full"][:2])
    return {
        "names": found.names,
        "several": found.comparison is not None,
        "users": ranked[0][1]["n"],
        "ranked": ranked,
        "orders": orders,
        "other_orders": [protocol for protocol, order in orders.items() if order != orders["full"]],
        "p": p,
        "significant": p is not None and found.comparison is not None and p < found.comparison.alpha,
        "tests": 0 if found.comparison is None else len(found.comparison.tests),
        "file": file,
        **dict.fromkeys(("novelty", "shared", "calibration", "proxies")),
    }


def _p_of_pair(tests: pl.DataFrame, one: str, other: str) -> float:
    wanted = (pl.col("protocol") == "full") & (pl.col("metric") == "NDCG") & (pl.col("k") == 10)
    pair = pl.col("a").is_in([one, other]) & pl.col("b").is_in([one, other])
    return float(tests.filter(wanted & pair)["p_holm"][0])


def _prose(found: Report, file: str = "", parts: Mapping[str, Any] | None = None) -> Prose:
    calibrations = {name: each.calibration for name, each in found.measured.items()}
    order = sorted(calibrations, key=lambda name: calibrations[name].first.error)
    facts = {
        "runs": found.runs,
        "log": found.runs[0].about["log"],
        "split": found.runs[0].about["split"].partition(";")[0],
        "novelty": _novelty(found),
        "shared": found.shared,
        "calibration": calibrations,
        "calibrated": list(dict.fromkeys((order[0], order[-1]))),
        "proxies": [run.name for run in found.runs if run.about["by_proxy"]],
        "slices": list(dict.fromkeys(each.of for each in found.slices)),
        "monitors": " or ".join(dict.fromkeys(run.experiment.training.monitor for run in found.runs)),
        "warnings": [f"{name}: {line}" for name, each in _weighted(found).items() for line in each.warnings()],
        "parts": parts or {},
    }
    return Prose(["report.md.j2"], _facts(found, file) | facts)


def _novelty(found: Report) -> dict[str, Any] | None:
    """Whether the most novel run beats the novelty setting of the most accurate one."""
    dials = {name: each.dial for name, each in found.measured.items() if each.dial}
    if len(dials) < 2:
        return None
    base, name = found.order("full")[0], max(dials, key=lambda name: dials[name][0]["surprise"])
    own = dials[name][0]
    return {"base": base, "name": name, "own": own, "there": at_novelty(dials[base], own["surprise"])}


def _result_parts(found: ComparedRuns) -> dict[str, Any]:
    """Tables and dots of every protocol, list metrics, and the tests."""
    lists = {f"table-{LISTS}": _table(found, LISTS)}
    if found.comparison is None:
        return {"accuracy": _protocols_of_one(found), **lists}
    tables = {f"table-{protocol}": _table(found, protocol) for protocol in found.protocols}
    dots = {f"dots-{protocol}": _dots(found, protocol) for protocol in found.protocols}
    return {**tables, **dots, **lists, "tests": _tests(found.comparison.tests)}


def _report_parts(found: Report) -> dict[str, Any]:
    dials = {name: each.dial for name, each in found.measured.items()}
    calibrations = {name: each.calibration for name, each in found.measured.items()}
    parts = {
        **_result_parts(found),
        **_slice_parts(found),
        **(dial_figures(dials) if all(dials.values()) else {}),
        **_calibration_parts(calibrations),
        **_training_parts(found),
        "examples": [_lists(found, example) for example in found.examples],
    }
    return {name: part for name, part in parts.items() if part is not None}


def _metrics(found: ComparedRuns, protocol: str) -> list[str]:
    """Those that all runs have, the usual ones first."""
    wanted = pl.col("protocol") == protocol
    each = [run.summary.filter(wanted).select("metric", "k").rows() for run in found.evaluations.values()]
    names = [label(*pair) for pair in each[0] if all(pair in other for other in each)]
    return sorted(names, key=lambda name: _FIRST.index(name) if name in _FIRST else len(_FIRST))


def _protocols_of_one(found: ComparedRuns) -> Table:
    names = [name for name in _FIRST if name in _metrics(found, found.protocols[0])]
    rows: list[list[Cell | str]] = [
        [protocol, *(_mean(found, found.names[0], protocol, name) for name in names)] for protocol in found.protocols
    ]
    baseline = found.evaluations[found.names[0]].popularity
    if baseline is not None:
        cells = {(row["protocol"], label(row["metric"], row["k"])): row for row in baseline.iter_rows(named=True)}
        for protocol in found.protocols:
            means = (cells[protocol, name]["mean"] for name in names)
            rows.append([f"{protocol}, popularity baseline", *(number(mean, 3) for mean in means)])
    return Table("", [Column("protocol"), *(Column(name, True) for name in names)], rows)


def _table(found: ComparedRuns, protocol: str) -> Table:
    names = _metrics(found, protocol)
    columns = [Column(name, True, _MEANING.get(name.partition("@")[0], "")) for name in names]
    rows: list[list[Cell | str]] = [
        [run, *(_mean(found, run, protocol, name) for name in names)] for run in found.names
    ]
    return Table("", [Column("run"), *columns], rows)


def _mean(found: ComparedRuns, run: str, protocol: str, name: str) -> Cell:
    row = found.row(run, protocol, name)
    digits = 3 if row["mean"] < 10 else 1
    span = "" if row["low"] is None else f" [{row['low']:.{digits}f}, {row['high']:.{digits}f}]"
    mark = "" if protocol == LISTS else _mark(found, run, protocol, row)
    return Cell(f"{row['mean']:.{digits}f}{span}", row["mean"], mark, soft=mark == _BEST)


def _mark(found: ComparedRuns, run: str, protocol: str, row: Mapping[str, Any]) -> str:
    if found.comparison is None:
        return ""
    wanted = (pl.col("protocol") == protocol) & (pl.col("metric") == row["metric"]) & (pl.col("k") == row["k"])
    place = found.comparison.table.filter(wanted & (pl.col("model") == run)).row(0, named=True)
    return "best, significant" if place["significant"] else _BEST if place["place"] == 1 else ""


def _dots(found: ComparedRuns, protocol: str) -> Figure:
    rows = {name: found.row(name, protocol, "NDCG@10") for name in found.names}
    dots = [
        Dot(
            name if len(name) <= _LONGEST else f"…{name[1 - _LONGEST :]}",
            row["mean"],
            row["low"],
            row["high"],
            place,
            f"{name}: {row['mean']:.4f}, {row['low']:.4f} to {row['high']:.4f}",
        )
        for place, (name, row) in enumerate(rows.items())
    ]
    highest = max(dot.high for dot in dots) or 1.0
    return Figure("", intervals(dots, "NDCG@10", highest, f"ndcg-{protocol}"), "; ".join(dot.title for dot in dots))


def _tests(tests: pl.DataFrame) -> Table:
    """The pairs under the headlines of every protocol, and of list metrics."""
    headline = pl.concat_str("metric", pl.lit("@"), "k").is_in(_HEADLINES) | (pl.col("protocol") == LISTS)
    columns = [
        Column("metric"),
        Column("first run"),
        Column("second run"),
        Column("difference", True, "first − second, 95% interval"),
        Column("effect size", True, "in standard deviations"),
        Column("p", True, "Holm-corrected"),
    ]
    return Table("", columns, [_test(row) for row in tests.filter(headline).iter_rows(named=True)])


def _test(row: Mapping[str, Any]) -> list[Cell | str]:
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


def _slice_parts(found: Report) -> dict[str, Any]:
    """A plot and a table for each way to cut the cases."""
    ways = [(of, list(group)) for of, group in groupby(found.slices, key=lambda each: each.of)]
    parts: dict[str, Any] = {}
    for nth, (of, group) in enumerate(ways, 1):
        parts[f"slice-{nth}"] = _slice_lines(found.names, of, group) if len(group) > 1 else None
        columns = [Column(of), Column("cases", True), *(Column(name, True) for name in found.names)]
        rows: list[list[Cell | str]] = [
            [
                each.name,
                count(each.cases),
                *(Cell(f"{mean:.3f} [{low:.3f}, {high:.3f}]", mean) for mean, low, high in each.estimates),
            ]
            for each in group
        ]
        parts[f"slice-table-{nth}"] = Table("", columns, rows)
    return parts


def _slice_lines(names: Sequence[str], of: str, group: Sequence[Slice]) -> Figure:
    ticks = {float(place): each.name.partition(":")[0] for place, each in enumerate(group)}
    drawn = {}
    for place, run in enumerate(names):
        mean, low, high = zip(*(each.estimates[place] for each in group), strict=True)
        hover = [f"{run}, {each.name}: {value:.3f}" for each, value in zip(group, mean, strict=True)]
        drawn[run] = Line(list(ticks), mean, hover, place, low, high)
    return line_figure(drawn, ("third of the cases", "NDCG@10"), f"by-{of.split()[0]}", Scale(ticks=ticks))


def _calibration_parts(found: Mapping[str, Calibration]) -> dict[str, Any]:
    """Reliability of the first place and of all items, with the errors."""
    first = {name: each.first for name, each in found.items()}
    items = {name: each.items for name, each in found.items()}
    columns = [
        Column("run"),
        Column("predicted", True, "top-ranked item, mean"),
        Column("right", True, "top-ranked item, mean"),
        Column("ECE", True, "top-ranked item"),
        Column("ECE", True, "all items, of the predicted mass"),
        Column("log-loss", True, "nats per case"),
    ]
    rows: list[list[Cell | str]] = [
        [
            name,
            *(percent(_weighted_mean(each.first.size, side)) for side in (each.first.predicted, each.first.observed)),
            percent(each.first.error),
            percent(each.items.error),
            number(each.log_loss, 3),
        ]
        for name, each in found.items()
    ]
    return {
        "calibration-first": _reliability(first, "first", "share that was right", "right"),
        "calibration-items": _reliability(items, "items", "share of next items", "observed"),
        "calibration": Table("", columns, rows),
    }


def _reliability(found: Mapping[str, Reliability], way: str, observed: str, verb: str) -> Figure:
    bins = {name: (each.predicted, each.observed) for name, each in found.items()}
    return reliability_figure(bins, ("predicted probability, logarithmic", observed), verb, f"calibration-{way}")


def _weighted_mean(size: Sequence[float], value: Sequence[float]) -> float:
    return sum(n * each for n, each in zip(size, value, strict=True)) / sum(size)


def _training_parts(found: Report) -> dict[str, Any]:
    """Curves, weights, and the settings in which runs differ."""
    weighted = _weighted(found)
    return {
        "validation": _validation(found.runs),
        "loss": _loss(found.runs),
        "weights": _weights(found.runs, weighted) if weighted else None,
        "settings": _settings(found) if found.differing else None,
    }


def _validation(runs: Sequence[Run]) -> Figure | None:
    drawn = {}
    for place, run in enumerate(runs):
        monitor = run.experiment.training.monitor
        value = {e.epoch: e.validation[monitor] for e in run.fitted.epochs if e.validation is not None}
        if value:
            hover = [f"{run.name}, epoch {at}: {monitor} {each:.4f}" for at, each in value.items()]
            drawn[run.name] = Line(list(value), list(value.values()), hover, place)
    axes = ("epoch", " or ".join(dict.fromkeys(run.experiment.training.monitor for run in runs)))
    return line_figure(drawn, axes, "validation", Scale(whole=True)) if drawn else None


def _loss(runs: Sequence[Run]) -> Figure:
    drawn = {}
    for place, run in enumerate(runs):
        hover = [f"{run.name}, epoch {epoch.epoch}: {epoch.loss:.4f}" for epoch in run.fitted.epochs]
        at, loss = [epoch.epoch for epoch in run.fitted.epochs], [epoch.loss for epoch in run.fitted.epochs]
        drawn[run.name] = Line(at, loss, hover, place)
    return line_figure(drawn, ("epoch", "mean training loss"), "loss", Scale(bottom=None, whole=True))


def _weighted(found: Report) -> dict[str, WeightDiagnostics]:
    weights = {run.name: run.about["weights"] for run in found.runs}
    return {name: WeightDiagnostics(**each) for name, each in weights.items() if each is not None}


def _weights(runs: Sequence[Run], weighted: Mapping[str, WeightDiagnostics]) -> Table:
    propensity = {run.name: f"{run.about['propensity']}{' (proxy)' * run.about['by_proxy']}" for run in runs}
    rows: list[list[Cell | str]] = [[name, propensity[name], *weight_cells(each)] for name, each in weighted.items()]
    return Table("", [Column("run"), Column("propensity"), *WEIGHT_COLUMNS], rows)


def _settings(found: Report) -> Table:
    columns = [Column("setting"), *(Column(name) for name in found.names)]
    return Table("", columns, [[name, *map(_value, values)] for name, values in found.differing.items()])


def _value(value: Any) -> Cell | str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "–" if value is None else str(value)
    return plain(value)


def _lists(found: Report, example: Example) -> Lists:
    titles = found.titles
    facts = {
        "example": example,
        "history": [titles[item] for item in example.history],
        "target": titles[example.target],
        "names": found.names,
    }
    lists = [
        Ranked(name, [_entry(found, example, place, item) for item in example.lists[place]])
        for place, name in enumerate(found.names)
    ]
    return Lists(f"User {example.user}: {example.why}", Prose(["report.md.j2"], facts).line("example"), lists)


def _entry(found: Report, example: Example, place: int, item: int) -> Entry:
    others = [
        f"{name} {listed.index(item) + 1}"
        for other, (name, listed) in enumerate(zip(found.names, example.lists, strict=True))
        if other != place and item in listed
    ]
    also = f"; also {', '.join(others)}" if others else ""
    about = f"{quantity(int(found.count_V[item]), 'training interaction')}{also}"
    return Entry(found.titles[item], about, "target" if item == example.target else "")
