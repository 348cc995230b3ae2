"""`unveil recommend|export`: recommendations of a trained model, and the model for other programs."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unveil.cli.options import HistoryOptions, Overwrite, option, takes_options
from unveil.errors import UnveilError
from unveil.wording import quantity, some

if TYPE_CHECKING:
    from unveil.runs.weights import WeightedLog
    from unveil.serving.recommender import Recommendations


_ITEMS = "Which items"


class As(StrEnum):
    """How lists are printed."""

    table = "table"
    csv = "csv"
    jsonl = "jsonl"


class Fallback(StrEnum):
    """What those get of whom nothing is known."""

    none = "none"
    popularity = "popularity"


Ids = Annotated[Path | None, option("File with one item id a line.", panel=_ITEMS)]


@takes_options
def recommend(
    *,
    options: HistoryOptions,
    run: Annotated[Path, typer.Argument(help="Folder that `unveil train` or `Recommender.save` wrote.")],
    history: Annotated[
        str | None,
        option("Item ids with commas between them, oldest first; in quotes where an id has one.", metavar="A,B,C"),
    ] = None,
    users: Annotated[Path | None, option("File with one user id a line; all users where not given.")] = None,
    k: Annotated[int, option("Items in a list.", "-k")] = 10,
    keep_seen: Annotated[bool, option("List items of the history too.", "--keep-seen")] = False,
    novelty: Annotated[
        float, option("0: by likelihood … 1: by lift over popularity.", panel=_ITEMS, min=0, max=1)
    ] = 0.0,
    candidates: Ids = None,
    exclude: Ids = None,
    items: Annotated[Path | None, option("Attributes of items: CSV, TSV or Parquet.", panel=_ITEMS)] = None,
    where: Annotated[
        list[str] | None, option("A condition, e.g. genre=Drama or year>=1990; all have to hold.", panel=_ITEMS)
    ] = None,
    reasons: Annotated[int, option("Name so many items of the history as reasons.", min=0)] = 0,
    fallback: Annotated[Fallback, option("For those of whom nothing is known.")] = Fallback.none,
    output: Annotated[
        Path | None, option("File to write: .csv, .jsonl or .parquet; with --dial, the .html page.", "--output", "-o")
    ] = None,
    overwrite: Overwrite = False,
    form: Annotated[As, option("How to print, where no file is written.", "--as")] = As.table,
    dial: Annotated[bool, option("Measure what the novelty dial gives and takes; list nothing.", "--dial")] = False,
) -> None:
    """Recommend: user_id, item_id, score, rank; raw ids in, raw ids out. Unknown ids are reported and passed over.

    The list after a history is nobody's in particular and has no user_id. The lists of all users are written to a file
    as they are made, whatever their number.
    """
    from unveil.cli.results import print_lists, write_lists
    from unveil.files import refuse_existing
    from unveil.serving.recommendations import Asked, lists_for, write_all
    from unveil.serving.streaming import refuse_unknown_kind

    if dial:
        _measure(run, output, overwrite=overwrite)
        return
    if output is not None:
        refuse_unknown_kind(output)
        refuse_existing(output, overwrite=overwrite)
    asked = Asked(
        history=history,
        histories=options.source(),
        users=users,
        k=k,
        filter_seen=not keep_seen,
        novelty=novelty,
        candidates=candidates,
        exclude=exclude,
        items=items,
        where=where or (),
        reasons=reasons,
        fallback=fallback is Fallback.popularity,
        tell=lambda text: typer.echo(text, err=True),
    )
    if output is not None and asked.of_everybody:
        typer.echo(f"{output}: {quantity(write_all(run, asked, output), 'row')}")
        return
    lists = lists_for(run, asked)
    _tell(lists)
    if output is not None:
        write_lists(lists.frame, output)
    else:
        print_lists(lists.frame, form.value)


def _tell(lists: "Recommendations") -> None:
    for kind, unknown in (("items", lists.unknown_items), ("users", lists.unknown_users)):
        if unknown:
            typer.echo(f"unknown {kind} passed over ({len(unknown):,}): {some(unknown)}", err=True)
    if lists.fallback_users == ("",):
        typer.echo("by popularity: nothing of the history is known", err=True)
    elif lists.fallback_users:
        users = lists.fallback_users
        typer.echo(f"by popularity, for unknown users ({len(users):,}): {some(users)}", err=True)


def _measure(run: Path, output: Path | None, *, overwrite: bool) -> None:
    """The table, dial.json in the run, and the page: in the run as well, where no other place is named."""
    from unveil.cli.results import print_table
    from unveil.cli.terminal import write_where_possible
    from unveil.report.svg import refuse_unfit_page
    from unveil.runs.dial import NAME, measured, write_dial_page
    from unveil.serving.folder import write_dial

    if output is not None:
        refuse_unfit_page(output, what="what the dial gives", overwrite=overwrite)
    points = measured(run)
    rows = [[f"{point[name]:.4f}" for name in points[0]] for point in points]
    print_table(list(points[0]), rows)
    typer.echo(f"on the test events, full ranking, lists of 10; {write_dial(run, points)} is shown by `unveil serve`")
    page, command = output or run / NAME, ["unveil", *sys.argv[1:]]
    write_where_possible(lambda: write_dial_page(run.resolve().name, points, page, command))


def export(
    run: Annotated[Path, typer.Argument(help="Folder that `unveil train` or `Recommender.save` wrote.")],
    onnx: Annotated[bool, option("The network as model.onnx, checked against torch.", "--onnx")] = False,
    embeddings: Annotated[
        bool, option("Vectors of items and users, with raw ids, as Parquet.", "--embeddings")
    ] = False,
    weights: Annotated[
        bool, option("The log with the weight of each training event as a column.", "--weights")
    ] = False,
    output: Annotated[
        Path | None, option("Folder to write to; that of the run where not given.", "--output", "-o")
    ] = None,
    form: Annotated[str, option("The log's format: parquet, csv, tsv, jsonl or inter.", "--as")] = "parquet",
    assignments: Annotated[
        list[str] | None,
        option("Weigh otherwise than the run, e.g. estimator.exponent=0.5.", "--set", metavar="NAME=VALUE"),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Write a trained model for other programs: as ONNX, as vectors, or as weights of the log.

    Weights are those of the run, or of ITPS where the run has none; other libraries can train with them.
    """
    if not (onnx or embeddings or weights):
        raise UnveilError("nothing to export was named", expected="--onnx, --embeddings or --weights")
    place = output or run
    if onnx or embeddings:
        _model(run, place, onnx=onnx, embeddings=embeddings, overwrite=overwrite)
    if weights:
        from unveil.runs.weights import export_weights
        from unveil.settings import parsed

        changes = dict(parsed(assignment) for assignment in assignments or [])
        _export_tell(export_weights(run, place / f"weights.{form}", changes, overwrite=overwrite))


def _model(run: Path, place: Path, *, onnx: bool, embeddings: bool, overwrite: bool) -> None:
    from unveil.serving.export import ONNX, export_embeddings, export_onnx
    from unveil.serving.recommender import Recommender

    recommender = Recommender.load(run)
    written = [export_onnx(recommender, place / ONNX, overwrite=overwrite)] if onnx else []
    written += export_embeddings(recommender, place, overwrite=overwrite) if embeddings else []
    for file in written:
        typer.echo(f"{file.path}: {file.about}")


def _export_tell(log: "WeightedLog") -> None:
    typer.echo(f"{log.path}: weights of {log.estimator} by {log.propensity}, mean 1; {log.diagnostics}")
    for warning in log.diagnostics.warnings():
        typer.echo(f"warning    {warning}", err=True)
    if log.by_proxy:
        typer.echo("popularity stands in for exposure: gains are under that proxy.", err=True)
