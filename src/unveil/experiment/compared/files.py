"""A report as files: a page for people, and its figures as JSON and CSV for programs."""

import shlex
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl

from unveil.data.sources.database import shown
from unveil.experiment.compared.page import report_page
from unveil.experiment.compared.run import Asked, Report, report
from unveil.experiment.compared.words import caution, reading
from unveil.files import write_whole
from unveil.report.page import write_page
from unveil.runs.folder import versions, write_json

_BESIDE = "Every figure is in results.json{tests}, every plot in the folder figures as SVG and PNG."
_IN_THE_RUN = "The figures are in metrics.json, case by case in cases.parquet, the plots in the folder figures."


def write(found: Report, folder: Path, command: Sequence[str]) -> None:
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
