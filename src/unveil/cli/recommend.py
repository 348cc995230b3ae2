"""`unveil recommend|export`: recommendations of a trained model, and the model for other programs."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from unveil.cli.options import Assignments, HistoryOptions, Overwrite, option, takes_options
from unveil.errors import UnveilError
from unveil.wording import quantity, some

if TYPE_CHECKING:
    from unveil.serving.recommender import Recommendations

_ITEMS = "Items"
RunArgument = Annotated[Path, typer.Argument(help="Folder that `unveil train` or `Recommender.save` wrote.")]
Ids = Annotated[Path | None, option("File with one item id per line.", panel=_ITEMS)]


@takes_options
def recommend(
    *,
    options: HistoryOptions,
    run: RunArgument,
    history: Annotated[str | None, option("Item ids, oldest first; quote an id with a comma.", metavar="A,B,C")] = None,
    users: Annotated[Path | None, option("File with one user id per line; all users by default.")] = None,
    k: Annotated[int, option("Number of recommended items.", "-k")] = 10,
    keep_seen: Annotated[bool, option("Recommend items of the history too.", "--keep-seen")] = False,
    novelty: Annotated[float, option("0: by likelihood … 1: by lift over popularity.", panel=_ITEMS, min=0, max=1)] = 0,
    candidates: Ids = None,
    exclude: Ids = None,
    items: Annotated[Path | None, option("Item attributes: CSV, TSV or Parquet.", panel=_ITEMS)] = None,
    where: Annotated[list[str] | None, option("Condition, e.g. genre=Drama or year>=1990.", panel=_ITEMS)] = None,
    reasons: Annotated[int, option("Number of history items named as reasons.", min=0)] = 0,
    fallback: Annotated[Literal["none", "popularity"], option("For unknown users and histories.")] = "none",
    output: Annotated[
        Path | None, option("File: .csv, .jsonl or .parquet; with --dial .html.", "--output", "-o")
    ] = None,
    overwrite: Overwrite = False,
    form: Annotated[Literal["table", "csv", "jsonl"], option("How to print, without --output.", "--as")] = "table",
    dial: Annotated[bool, option("Measure the trade-off of --novelty instead.", "--dial")] = False,
) -> None:
    """Recommend: user_id, item_id, score, rank. Unknown ids are skipped and reported.

    The recommendations for one --history have no user_id. Those of all users are streamed to the file. Several --where
    conditions all have to hold.
    """
    from unveil.cli.results import print_lists, write_lists
    from unveil.files import check_new_file
    from unveil.serving.export import check_kind
    from unveil.serving.recommendations import ListRequest, recommend_all, recommendations

    if dial:
        _measure_novelty(run, output, overwrite=overwrite)
        return
    if output is not None:
        check_kind(output)
        check_new_file(output, overwrite=overwrite)
    request = ListRequest(
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
        fallback=fallback == "popularity",
        warn=lambda text: typer.echo(text, err=True),
    )
    if output is not None and request.for_all_users:
        typer.echo(f"{output}: {quantity(recommend_all(run, request, output), 'row')}")
        return
    lists = recommendations(run, request)
    _print_unknown(lists)
    if output is not None:
        write_lists(lists.frame, output)
    else:
        print_lists(lists.frame, form)


def _print_unknown(lists: "Recommendations") -> None:
    for kind, unknown in (("items", lists.unknown_items), ("users", lists.unknown_users)):
        if unknown:
            typer.echo(f"unknown {kind} skipped ({len(unknown):,}): {some(unknown)}", err=True)
    if lists.fallback_users == ("",):
        typer.echo("by popularity: no item of the history is known", err=True)
    elif lists.fallback_users:
        users = lists.fallback_users
        typer.echo(f"by popularity, for unknown users ({len(users):,}): {some(users)}", err=True)


def _measure_novelty(run: Path, output: Path | None, *, overwrite: bool) -> None:
    """Print the table; write dial.json into the run, and the page there or to --output."""
    from unveil.cli.results import print_table
    from unveil.cli.terminal import write_where_possible
    from unveil.report.svg import check_page_path
    from unveil.runs.report import measure_dial
    from unveil.runs.report_page import DIAL, write_dial_page
    from unveil.serving.model_files import write_dial

    if output is not None:
        check_page_path(output, what="what the dial gives", overwrite=overwrite)
    points = measure_dial(run)
    print_table(list(points[0]), [[f"{point[name]:.4f}" for name in points[0]] for point in points])
    typer.echo(f"on the test events, full ranking, lists of 10; {write_dial(run, points)} is shown by `unveil serve`")
    page, command = output or run / DIAL, ["unveil", *sys.argv[1:]]
    write_where_possible(lambda: write_dial_page(run.resolve().name, points, page, command))


def export(
    run: RunArgument,
    onnx: Annotated[bool, option("The network as model.onnx, checked against torch.", "--onnx")] = False,
    embeddings: Annotated[bool, option("Item and user vectors with raw ids, as Parquet.", "--embeddings")] = False,
    weights: Annotated[bool, option("The log with a column of training weights.", "--weights")] = False,
    output: Annotated[Path | None, option("Folder to write to; by default the run.", "--output", "-o")] = None,
    form: Annotated[str, option("Format of the log: parquet, csv, tsv, jsonl or inter.", "--as")] = "parquet",
    assignments: Assignments = None,
    overwrite: Overwrite = False,
) -> None:
    """Write a trained model for other programs: as ONNX, as vectors, or as weights of the log's events.

    Weights are those of the run, or of ITPS where the run has none; other libraries can train with them. --set changes
    how they are computed, e.g. estimator.exponent=0.5.
    """
    from unveil.runs.train import export_weights
    from unveil.serving.export import ONNX, export_embeddings, export_onnx
    from unveil.serving.recommender import Recommender
    from unveil.settings import parsed

    if not (onnx or embeddings or weights):
        raise UnveilError("nothing to export was named", expected="--onnx, --embeddings or --weights")
    place = output or run
    if onnx or embeddings:
        recommender = Recommender.load(run)
        written = [export_onnx(recommender, place / ONNX, overwrite=overwrite)] if onnx else []
        written += export_embeddings(recommender, place, overwrite=overwrite) if embeddings else []
        for file in written:
            typer.echo(f"{file.path}: {file.about}")
    if weights:
        changes = dict(map(parsed, assignments or ()))
        log = export_weights(run, place / f"weights.{form}", changes, overwrite=overwrite)
        typer.echo(f"{log.path}: weights of {log.estimator} by {log.propensity}, mean 1; {log.diagnostics}")
        for warning in log.diagnostics.warnings():
            typer.echo(f"warning    {warning}", err=True)
        if log.by_proxy:
            typer.echo("popularity stands in for exposure: gains are under that proxy.", err=True)
