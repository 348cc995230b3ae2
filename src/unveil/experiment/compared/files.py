"""A report as files: a page for people, and its figures as JSON and CSV for programs."""

import shlex
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl

from unveil.data.sources.database import shown
from unveil.experiment.compared.page import report_page
from unveil.experiment.compared.run import Report
from unveil.experiment.compared.words import caution, reading
from unveil.experiment.folder import versions, write_json
from unveil.experiment.report import write_page
from unveil.files import write_whole


def write(report: Report, folder: Path, command: Sequence[str]) -> None:
    """results.json, results.csv, tests.csv where there are several runs, index.html and figures/."""
    told = shlex.join(map(shown, command))
    write_whole(folder / "results.csv", table(report).write_csv())
    if report.comparison is not None:
        write_whole(folder / "tests.csv", report.comparison.tests.write_csv())
    write_json(folder / "results.json", results(report, told))
    write_page(report_page(report, told), folder / "index.html")


def table(report: Report) -> pl.DataFrame:
    """A row for each run and figure."""
    return pl.concat(run.evaluation.summary.select(pl.lit(run.name).alias("run"), pl.all()) for run in report.runs)


def results(report: Report, command: str) -> dict[str, Any]:
    """All that was found."""
    ids = report.titles
    return {
        "report": 1,
        "command": command,
        "versions": versions(),
        "log": report.runs[0].about["log"],
        "cases": report.runs[0].evaluation.fingerprint,
        "runs": {run.name: _run(report, nth) for nth, run in enumerate(report.runs)},
        "differing": report.differing,
        "slices": [asdict(each) for each in report.slices],
        "shared": report.shared,
        "tests": None if report.comparison is None else report.comparison.tests.to_dicts(),
        "examples": [
            {
                **asdict(each),
                "history": [ids[item] for item in each.history],
                "target": ids[each.target],
                "lists": {name: [ids[i] for i in found] for name, found in zip(report.names, each.lists, strict=True)},
            }
            for each in report.examples
        ],
        "reading": [*reading(report), caution(report)],
    }


def _run(report: Report, nth: int) -> dict[str, Any]:
    run = report.runs[nth]
    found = report.measured[run.name]
    return {
        "settings": run.settings,
        "propensity": run.about["propensity"],
        "by_proxy": run.about["by_proxy"],
        "weights": run.about["weights"],
        "epochs": [asdict(epoch) for epoch in run.fitted.epochs],
        "summary": run.evaluation.summary.to_dicts(),
        "calibration": asdict(found.calibration),
        "dial": list(found.dial),
    }
