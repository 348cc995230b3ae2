"""Results as tables for people and files for programs."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from unveil.errors import UnveilError

if TYPE_CHECKING:
    import polars as pl

    from unveil.evaluation.compare import Comparison
    from unveil.evaluation.result import Evaluation
    from unveil.experiment.run import Run


def print_run(run: "Run") -> None:
    """How training ended, and how good the model is."""
    fitted = run.fitted
    best = "" if fitted.best is None else f", best at epoch {fitted.best.epoch} (validation {fitted.best.value:.4f})"
    typer.echo(f"{len(fitted.epochs)} epochs{' (stopped early)' if fitted.stopped_early else ''}{best}")
    print_evaluation(str(run.folder), run.evaluation)
    typer.echo(f"next: unveil recommend {run.folder}, or unveil compare with another run")


def print_evaluation(title: str, evaluation: "Evaluation") -> None:
    """A row for each metric, a column for each protocol; every mean with its 95% interval."""
    from unveil.evaluation.result import RULES

    summary = evaluation.summary
    protocols = summary["protocol"].unique(maintain_order=True).to_list()
    ranked = [protocol for protocol in protocols if protocol != "lists"]
    names = [f"{row['metric']}@{row['k']}" for row in summary.iter_rows(named=True) if row["protocol"] == ranked[0]]
    cells = {(row["protocol"], f"{row['metric']}@{row['k']}"): row for row in summary.iter_rows(named=True)}
    _table(title, ["", *ranked], [[name, *(_figure(cells[p, name]) for p in ranked)] for name in names])
    if "lists" in protocols:
        rows = [[name, _figure(row)] for (protocol, name), row in cells.items() if protocol == "lists"]
        _table("recommended lists", ["", "all users"], rows)
    typer.echo(f"mean {RULES['mean']}; interval {RULES['interval']}; ties {RULES['ties']}")


def print_comparison(comparison: "Comparison") -> None:
    """A row for each figure, a column for each run; * marks a best that is significantly better than the next best."""
    models = comparison.table["model"].unique(maintain_order=True).to_list()
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for row in comparison.table.iter_rows(named=True):
        mark = ("*" if row["significant"] else "") + (" (best)" if row["place"] == 1 else "")
        rows.setdefault((row["protocol"], f"{row['metric']}@{row['k']}"), {})[row["model"]] = f"{row['mean']:.4f}{mark}"
    body = [[*name, *(cells.get(model, "–") for model in models)] for name, cells in rows.items()]
    _table("comparison", ["protocol", "metric", *models], body)
    typer.echo(f"* better than the next best, paired t-test per user, Holm-corrected p < {comparison.alpha:g}")


def print_lists(frame: "pl.DataFrame", form: str) -> None:
    """Lists on standard output."""
    if form == "csv":
        typer.echo(frame.write_csv(), nl=False)
    elif form == "jsonl":
        typer.echo(frame.write_ndjson(), nl=False)
    else:
        rows = [[str(row[0]), str(row[1]), f"{row[2]:.4f}", str(row[3])] for row in frame.iter_rows()]
        _table(None, frame.columns, rows)


def write_lists(frame: "pl.DataFrame", path: Path) -> None:
    """Lists as a file, by its ending."""
    from unveil.files import atomic_file

    writers: dict[str, Any] = {".csv": frame.write_csv, ".jsonl": frame.write_ndjson, ".parquet": frame.write_parquet}
    if path.suffix not in writers:
        raise UnveilError("unknown kind of file", where=path, found=path.suffix, expected=", ".join(writers))
    with atomic_file(path) as draft:
        writers[path.suffix](draft)
    typer.echo(f"{path}: {len(frame):,} rows")


def _figure(row: dict[str, Any]) -> str:
    interval = "" if row["low"] is None else f" [{row['low']:.4f}, {row['high']:.4f}]"
    return f"{row['mean']:.4f}{interval}"


def _table(title: str | None, columns: list[str], rows: list[list[str]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for place, column in enumerate(columns):
        table.add_column(column, justify="left" if place == 0 else "right")
    for row in rows:
        table.add_row(*row)
    Console().print(table)
