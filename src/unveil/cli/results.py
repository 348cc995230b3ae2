"""Results as tables for people and files for programs."""

from io import BytesIO
from typing import TYPE_CHECKING, Any

import typer

from unveil.report.names import in_order

if TYPE_CHECKING:
    import polars as pl

    from unveil.evaluation.result import Comparison, Evaluation


def print_evaluation(evaluation: "Evaluation", estimator: str = "naive") -> None:
    """A row for each metric, a column for each protocol; below, a row for each baseline, and what they say."""
    from unveil.report.prose import Prose

    cells = _cells(evaluation.summary)
    ranked = [cell for cell in cells if cell[0] != "lists"]
    protocols, names = list(dict.fromkeys(protocol for protocol, _ in ranked)), in_order(name for _, name in ranked)
    rows = [[name, *(_figure(cells.get((protocol, name))) for protocol in protocols)] for name in names]
    of = "on the labelled test" if protocols == ["labelled"] else "on the test events"
    print_table([of, *protocols], rows)
    lists = [[cell[1], _figure(figure)] for cell, figure in cells.items() if cell[0] == "lists"]
    if lists:
        typer.echo()
        print_table(["list metrics", "all users"], lists)
    if evaluation.baselines:
        typer.echo()
        _print_baselines(evaluation)
    typer.echo("mean over users ± half of its 95% bootstrap interval; ties go against the target")
    for line in Prose(["baselines.md.j2"], {"evaluation": evaluation, "estimator": estimator}).paragraphs("verdict"):
        typer.echo(line)


def _print_baselines(evaluation: "Evaluation") -> None:
    protocol, shown = evaluation.protocol, ("NDCG@10", "Recall@10")
    rows = []
    for name, each in {"this model": None, **evaluation.baselines}.items():
        cells = _cells(evaluation.summary if each is None else each.summary)
        tested = each is not None and each.difference is not None
        gain = f"{each.difference:+.4f} [{each.low:+.4f}, {each.high:+.4f}]" if each and tested else ""
        rows.append([name, *(_figure(cells.get((protocol, metric))) for metric in shown), gain])
    print_table([f"{protocol} ranking", *shown, "model − baseline"], rows)


def _cells(summary: "pl.DataFrame") -> dict[tuple[str, str], dict[str, Any]]:
    from unveil.evaluation.result import label

    return {(row["protocol"], label(row["metric"], row["k"])): row for row in summary.iter_rows(named=True)}


def print_comparison(comparison: "Comparison") -> None:
    """A row for each figure, a column for each run, the best marked; ↓ stands where the lowest is best."""
    from unveil.evaluation.result import label

    models = comparison.table["model"].unique(maintain_order=True).to_list()
    figures: dict[str, dict[str, dict[str, str]]] = {}
    for row in comparison.table.iter_rows(named=True):
        mark = "*" if row["significant"] else "+" if row["place"] == 1 else " "
        name = label(row["metric"], row["k"]) + ("" if row["higher_is_better"] else " ↓")
        rows = figures.setdefault(row["protocol"], {}).setdefault(name, {})
        rows[row["model"]] = f"{row['mean']:.4f}{mark}"
    for protocol, cells in figures.items():
        body = [[name, *(cells[name].get(model, "–") for model in models)] for name in in_order(cells)]
        print_table([protocol, *models], body)
        typer.echo()
    test = f"paired t-test per user, Holm-corrected p < {comparison.alpha:g}"
    typer.echo(f"+ best (↓: the lowest)  * significantly better than the next ({test})")


def print_lists(frame: "pl.DataFrame", form: str) -> None:
    """Lists on standard output, in this form."""

    def shown(value: object) -> str:
        if not isinstance(value, float):
            return str(value)
        return f"{value:.4f}" if abs(value) >= 0.001 or value == 0 else f"{value:.1e}"  # a propensity may be tiny

    if form == "table":
        print_table(frame.columns, [list(map(shown, row)) for row in frame.iter_rows()])
    else:
        typer.echo(written(frame, f".{form}"), nl=False)


def written(frame: "pl.DataFrame", kind: str) -> bytes:
    """The content of a file with this ending."""
    writers: dict[str, Any] = {".csv": frame.write_csv, ".jsonl": frame.write_ndjson, ".parquet": frame.write_parquet}
    writers[kind](content := BytesIO())
    return content.getvalue()


def _figure(row: dict[str, Any] | None) -> str:
    if row is None:
        return "–"
    half = "" if row["low"] is None else f" ±{(row['high'] - row['low']) / 2:.4f}"
    return f"{row['mean']:.4f}{half}"


def print_table(columns: list[str], rows: list[list[str]]) -> None:
    """Never folded: what is too wide for a terminal is wide, and what is piped is whole."""
    widths = [max(len(cell) for cell in column) for column in zip(columns, *rows, strict=True)]
    for first, *rest in (columns, *rows):
        cells = [first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True))]
        typer.echo("  ".join(cells).rstrip())
