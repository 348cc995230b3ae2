"""The report of runs as files: a page for people, its figures as JSON and CSV for programs."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from polars import selectors

from unveil.data.readers.database import shown
from unveil.evaluation.labelled import PROTOCOL
from unveil.evaluation.result import FIGURE, label
from unveil.files import versions, write_json, write_whole
from unveil.propensity.weights import WeightDiagnostics
from unveil.report.charts import Dot, intervals, reliability_figure
from unveil.report.names import in_order
from unveil.report.page import Cell, Code, Column, Entry, Figure, Lists, Table, write_page
from unveil.report.plots import Line, Scale, line_figure
from unveil.report.prose import Prose
from unveil.runs.report import LISTS, TOP, ComparedRuns, Example, Point, Report, ReportOptions, Slice
from unveil.runs.run_folder import Run
from unveil.wording import quantity

PAGE = "index.html"
DIAL = "dial.html"  # the page of the novelty setting in the folder of a run
#: What list metrics are; which way is better is for the reader to say.
_MEANING = {
    "ARP": "training interactions of a recommended item",
    "EFD": "surprise of a recommended item, bits",
    "Coverage": "of all items",
    "Gini": "0: all items recommended equally often",
}
_LONGEST = 26


def write_report(found: Report, folder: Path, command: Sequence[str]) -> None:
    """results.json, results.csv, tests.csv where there are several runs, index.html and figures/."""
    parts = [part for part in (found.labelled, found) if part is not None]
    evaluations = [pair for part in parts for pair in part.evaluations.items()]
    summaries = (each.summary.select(pl.lit(name).alias("run"), pl.all()) for name, each in evaluations)
    write_whole(folder / "results.csv", pl.concat(summaries).write_csv())
    if tests := [part.comparison.tests for part in parts if part.comparison is not None]:
        write_whole(folder / "tests.csv", pl.concat(tests).write_csv())
    write_json(folder / "results.json", results(found, shlex.join(map(shown, command))))
    _write(found, folder / PAGE, command, file="tests.csv")


def write_run_page(run: Run, command: Sequence[str]) -> Path:
    """The page of one run in its own folder; the dial is not measured for it."""
    return _write(Report([run], ReportOptions(dial=False)), run.folder / PAGE, command)


def _write(found: Report, path: Path, command: Sequence[str], file: str = "") -> Path:
    parts = _result_parts(found) | _report_parts(found) | {"command": Code(shlex.join(map(shown, command)))}
    write_page(Prose(["report.md.j2", "baselines.md.j2"], _facts(found, file) | {"parts": parts}).page(parts), path)
    return path


def write_comparison(found: ComparedRuns, page: Path, command: Sequence[str]) -> None:
    """Every test as CSV beside it, and the page; no model is evaluated again."""
    assert found.comparison is not None
    table = page.with_suffix(".csv")
    write_whole(table, found.comparison.tests.write_csv())
    parts = _result_parts(found) | {"command": Code(shlex.join(command))}
    write_page(Prose(["comparison.md.j2", "report.md.j2"], _facts(found, file=table.name)).page(parts), page)


def write_dial_page(name: str, points: Sequence[Point], path: Path, command: Sequence[str]) -> Path:
    """What each λ was measured to give, and what it costs; where the page is."""
    first, last = points[0], points[-1]
    lost = 1 - last["recall"] / first["recall"] if first["recall"] else 0.0
    facts = {"names": [name], "several": False, "top": TOP, "first": first, "last": last, "lost": lost}
    parts = {**_dial_figures({name: points}), "command": Code(shlex.join(command))}
    write_page(Prose(["dial.md.j2", "report.md.j2"], facts).page(parts), path)
    return path


def findings(found: Report) -> list[str]:
    """The conclusions and the caution, each a paragraph."""
    prose = Prose(["report.md.j2", "baselines.md.j2"], _facts(found))
    return [*prose.paragraphs("findings"), *prose.paragraphs("caution")]


def targets_caution() -> str:
    """What the targets of an evaluation cannot say."""
    return Prose(["report.md.j2"], {}).line("targets")


def results(found: Report, command: str) -> dict[str, Any]:
    """All that was found."""

    def named(item: int) -> dict[str, str]:
        return {"item_id": found.ids[item], "title": found.titles[item]}

    floats = selectors.float()
    finite = pl.when(floats.is_finite()).then(floats)  # an effect without spread is infinite, which JSON has not

    def tests(part: ComparedRuns) -> list[dict[str, Any]] | None:
        return None if part.comparison is None else part.comparison.tests.with_columns(finite).to_dicts()

    labelled = found.labelled and {
        "test": found.labelled.source,
        "skipped": found.labelled.test.skipped,
        "runs": {name: each.summary.to_dicts() for name, each in found.labelled.evaluations.items()},
        "calibration": {name: asdict(each) for name, each in found.labelled.curves.items()},
        "tests": tests(found.labelled),
    }
    return {
        **({"labelled": labelled} if labelled else {}),
        "report": 1,
        "command": command,
        "versions": versions(),
        "log": found.runs[0].about["log"],
        "cases": found.runs[0].evaluation.fingerprint,
        "runs": {
            run.name: {
                "settings": run.settings,
                **{name: run.about[name] for name in ("propensity", "by_proxy", "weights")},
                "epochs": [asdict(epoch) for epoch in run.fitted.epochs],
                "summary": run.evaluation.summary.to_dicts(),
                "calibration": asdict(found.calibrations[run.name]),
                "dial": list(found.dials[run.name]),
            }
            for run in found.runs
        },
        "differing": found.differing,
        "slices": [asdict(each) for each in found.slices],
        "shared": found.shared,
        "tests": tests(found),
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


def _facts(found: ComparedRuns, file: str = "") -> dict[str, Any]:
    orders, first = {protocol: found.order(protocol) for protocol in found.protocols}, found.protocols[0]
    ranked = [(name, found.row(name, first, "NDCG@10")) for name in orders[first]]
    labelled = found if found.protocols == [PROTOCOL] else None
    facts = {"labelled": labelled, **vars(found), "found": found, "names": found.names, "label": label, "file": file}
    facts |= {"orders": orders, "ranked": ranked, "users": ranked[0][1]["n"], "several": found.comparison is not None}
    facts["other_orders"] = [protocol for protocol, order in orders.items() if order != orders[first]]
    if found.comparison is not None:
        tests, name = found.comparison.tests, pl.concat_str("metric", pl.lit("@"), "k")
        headlines = tests.filter(name.is_in(("NDCG@10", "Recall@10")) | (pl.col("protocol") == LISTS))
        facts |= {"p": found.p(first), "tests": len(tests), "headlines": headlines.rows(named=True)}
    return facts | _report_facts(found) if isinstance(found, Report) else facts


def _report_facts(found: Report) -> dict[str, Any]:
    calibrations = found.calibrations
    order = sorted(calibrations, key=lambda name: calibrations[name].first.error)
    first = found.runs[0]
    return {
        "metrics": _metrics(found, found.protocols[0]),
        "baselines": {
            name: {
                (row["protocol"], label(row["metric"], row["k"])): row["mean"] for row in each.summary.rows(named=True)
            }
            for name, each in first.evaluation.baselines.items()
        },
        "evaluation": first.evaluation,
        "estimator": first.experiment.estimator["name"],
        "novelty": _novelty(found),
        "calibrated": list(dict.fromkeys((order[0], order[-1]))),
        "first_means": {
            name: [np.average(side, weights=each.first.size) for side in (each.first.predicted, each.first.observed)]
            for name, each in calibrations.items()
        },
        "weighted": [(run, WeightDiagnostics(**run.about["weights"])) for run in found.runs if run.about["weights"]],
    }


def _novelty(found: Report) -> dict[str, Any] | None:
    """Whether the most novel run beats the novelty setting of the most accurate one."""
    dials = {name: points for name, points in found.dials.items() if points}
    if len(dials) < 2:
        return None
    base, name = found.order("full")[0], max(dials, key=lambda name: dials[name][0]["surprise"])
    own = dials[name][0]
    return {"base": base, "name": name, "own": own, "there": at_novelty(dials[base], own["surprise"])}


def at_novelty(points: Sequence[Point], surprise: float) -> float | None:
    """NDCG of a run at this novelty, on straight lines between the measured points; None beyond them."""
    order = sorted(points, key=lambda point: point["surprise"])
    x, y = ([point[name] for point in order] for name in ("surprise", "ndcg"))
    return float(np.interp(surprise, x, y)) if x[0] <= surprise <= x[-1] else None


def _result_parts(found: ComparedRuns) -> dict[str, Any]:
    several = found.comparison is not None
    dots = {f"dots-{protocol}": _dots(found, protocol) for protocol in found.protocols if several}
    lists = (LISTS,) if _metrics(found, LISTS) else ()
    return {f"table-{of}": _table(found, of) for of in (*(found.protocols if several else ()), *lists)} | dots


def _metrics(found: ComparedRuns, protocol: str) -> list[str]:
    wanted = pl.col("protocol") == protocol
    each = [run.summary.filter(wanted).select("metric", "k").rows() for run in found.evaluations.values()]
    return in_order(label(*pair) for pair in each[0] if all(pair in other for other in each))


def _table(found: ComparedRuns, protocol: str) -> Table:
    names = _metrics(found, protocol)
    columns = [Column(name, True, _MEANING.get(name.partition("@")[0], "")) for name in names]
    rows: list[list[Cell | str]] = [
        [run, *(_mean(found, run, protocol, name) for name in names)] for run in found.names
    ]
    return Table("", [Column("run"), *columns], rows)


def _mean(found: ComparedRuns, run: str, protocol: str, name: str) -> Cell:
    row, mark = found.row(run, protocol, name), ""
    digits = 3 if row["mean"] < 10 else 1
    span = "" if row["low"] is None else f" [{row['low']:.{digits}f}, {row['high']:.{digits}f}]"
    if protocol != LISTS and found.comparison is not None:
        place = found.comparison.table.filter(**{name: row[name] for name in FIGURE}, model=run).row(0, named=True)
        mark = "best, significant" if place["significant"] else "best" if place["place"] == 1 else ""
    return Cell(f"{row['mean']:.{digits}f}{span}", row["mean"], mark, soft=mark == "best")


def _dots(found: ComparedRuns, protocol: str) -> Figure:
    dots = []
    for place, name in enumerate(found.names):
        row = found.row(name, protocol, "NDCG@10")
        short = name if len(name) <= _LONGEST else f"…{name[1 - _LONGEST :]}"
        title = f"{name}: {row['mean']:.4f}, {row['low']:.4f} to {row['high']:.4f}"
        dots.append(Dot(short, row["mean"], row["low"], row["high"], place, title))
    highest = max(dot.high for dot in dots) or 1.0
    return intervals(dots, "NDCG@10", highest, f"ndcg-{protocol}")


def _report_parts(found: Report) -> dict[str, Any]:
    parts: dict[str, Any] = _dial_figures(found.dials) if all(found.dials.values()) else {}
    curves = {
        ("first", "share that was right", "right"): {name: each.first for name, each in found.calibrations.items()},
        ("items", "share of next items", "observed"): {name: each.items for name, each in found.calibrations.items()},
    }
    if found.labelled is not None:
        parts |= _result_parts(found.labelled)
        curves["labelled", "share of the positives", "positive"] = dict(found.labelled.curves)
    for (way, observed, verb), drawn in curves.items():
        bins = {name: (each.predicted, each.observed) for name, each in drawn.items()}
        axes, slug = ("predicted probability, logarithmic", observed), f"calibration-{way}"
        parts[slug] = reliability_figure(bins, axes, verb, slug)
    for nth, of in enumerate(dict.fromkeys(each.of for each in found.slices), 1):
        group = [each for each in found.slices if each.of == of]
        if len(group) > 1:
            parts[f"slice-{nth}"] = _slice_lines(found.names, of, group)
    return parts | _curves(found.runs) | {"examples": [_lists(found, example) for example in found.examples]}


def _slice_lines(names: Sequence[str], of: str, group: Sequence[Slice]) -> Figure:
    ticks = {float(place): each.name.partition(":")[0] for place, each in enumerate(group)}
    drawn = {}
    for place, run in enumerate(names):
        mean, low, high = zip(*(each.estimates[place] for each in group), strict=True)
        hover = [f"{run}, {each.name}: {value:.4f}" for each, value in zip(group, mean, strict=True)]
        drawn[run] = Line(list(ticks), mean, place, low, high, hover)
    return line_figure(drawn, ("third of the cases", "NDCG@10"), f"by-{of.split()[0]}", Scale(ticks=ticks))


def _dial_figures(dials: Mapping[str, Sequence[Point]]) -> dict[str, Figure]:
    axes = {"surprise": f"EFD@{TOP}: surprise of a recommended item, bits", "coverage": "items recommended to anyone"}
    table = Prose(["report.md.j2"], {"dials": dials, "top": TOP}).table("dial_table")
    said = "{}, λ {novelty:g}: NDCG {ndcg:.3f}, {surprise:.2f} bits, {coverage:.0%} of the items"
    found = {}
    for figure, name in axes.items():
        drawn = {}
        for place, (run, points) in enumerate(dials.items()):
            x, y = ([point[of] for point in points] for of in (figure, "ndcg"))
            drawn[run] = Line(x, y, place, titles=[said.format(run, **point) for point in points])
        scale, data = Scale((figure == "coverage", False)), table if figure == "surprise" else None
        slug = f"dial-{figure}"
        found[slug] = line_figure(drawn, (name, f"NDCG@{TOP}, full ranking"), slug, scale, data)
    return found


def _curves(runs: Sequence[Run]) -> dict[str, Figure]:
    validation, loss = {}, {}
    for place, run in enumerate(runs):
        monitor, epochs = run.experiment.training.monitor, run.fitted.epochs
        values = {epoch.epoch: epoch.validation[monitor] for epoch in epochs if epoch.validation is not None}
        if values:
            validation[run.name] = Line(list(values), list(values.values()), place)
        loss[run.name] = Line([epoch.epoch for epoch in epochs], [epoch.loss for epoch in epochs], place)
    monitors = " or ".join(dict.fromkeys(run.experiment.training.monitor for run in runs))
    axes, loss = ("epoch", "mean training loss"), {name: line for name, line in loss.items() if len(line.x)}
    found = {"loss": line_figure(loss, axes, "loss", Scale(bottom=None, whole=True))} if loss else {}
    if validation:
        found["validation"] = line_figure(validation, ("epoch", monitors), "validation", Scale(whole=True))
    return found


def _lists(found: Report, example: Example) -> Lists:
    """The recommendations of each run for one user; beside an item, its rank in those of other runs."""

    def entry(run: str, item: int) -> Entry:
        places = {name: items.index(item) + 1 for name, items in lists.items() if name != run and item in items}
        also = f"; also {', '.join(f'{name} {place}' for name, place in places.items())}" if places else ""
        about = f"{quantity(int(found.count_V[item]), 'training interaction')}{also}"
        return Entry(found.titles[item], about, "target" if item == example.target else "")

    lists = dict(zip(found.names, example.lists, strict=True))
    facts = {
        "example": example,
        "history": [found.titles[item] for item in example.history],
        "target": found.titles[example.target],
        "names": found.names,
    }
    ranked = {name: [entry(name, item) for item in items] for name, items in lists.items()}
    return Lists(f"User {example.user}: {example.why}", Prose(["report.md.j2"], facts).line("example"), ranked)
