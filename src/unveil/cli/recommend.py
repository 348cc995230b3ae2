"""`unveil recommend|export|serve`: recommendations of a trained model, in files, for other programs and over HTTP."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from unveil.cli.options import Assignments, HistoryOptions, Overwrite, TitleIds, Titles, option
from unveil.cli.results import print_lists, print_table, written
from unveil.cli.terminal import this_command, write_where_possible
from unveil.errors import UnveilError
from unveil.files import check_new_file, write_whole
from unveil.wording import quantity, some

if TYPE_CHECKING:
    from unveil.serving.recommender import Recommendations
    from unveil.serving.server.model_store import ItemInfo

_ITEMS, _LIMITS = "Items", "Limits"
RunArgument = Annotated[Path, typer.Argument(help="Folder that `unveil train` or `Recommender.save` wrote.")]
Ids = Annotated[Path | None, option("File with one item id per line.", panel=_ITEMS)]


def recommend(
    *,
    options: HistoryOptions,
    run: RunArgument,
    history: Annotated[str | None, option("Item ids, oldest first; quote an id with a comma.", metavar="A,B,C")] = None,
    users: Annotated[Path | None, option("File with one user id per line; all users by default.")] = None,
    k: Annotated[int, option("Number of recommended items.", "-k")] = 10,
    keep_seen: Annotated[bool, option("Recommend items of the history too.", "--keep-seen")] = False,
    novelty: Annotated[
        float,
        option(
            "0: by likelihood … 1: by lift over popularity; below 0, popularity is added.", panel=_ITEMS, min=-4, max=1
        ),
    ] = 0,
    candidates: Ids = None,
    exclude: Ids = None,
    items: Annotated[Path | None, option("Item attributes: CSV, TSV or Parquet.", panel=_ITEMS)] = None,
    where: Annotated[list[str] | None, option("Condition, e.g. genre=Drama or year>=1990.", panel=_ITEMS)] = None,
    reasons: Annotated[int, option("Number of history items named as reasons.", min=0)] = 0,
    fallback: Annotated[Literal["none", "popularity"], option("For unknown users and histories.")] = "none",
    output: Annotated[Path | None, option(".csv, .jsonl or .parquet; with --dial .html.", "--output", "-o")] = None,
    overwrite: Overwrite = False,
    form: Annotated[Literal["table", "csv", "jsonl"], option("How to print, without --output.", "--as")] = "table",
    dial: Annotated[bool, option("Measure the trade-off of --novelty instead.", "--dial")] = False,
) -> None:
    """Recommend: user_id, item_id, score, rank. Unknown ids are skipped and reported.

    The recommendations for one --history have no user_id. Those of all users are streamed to the file. Several --where
    conditions all have to hold.
    """
    from unveil.report.prose import Prose
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
        write_whole(output, written(lists.frame, output.suffix))
        typer.echo(f"{output}: {quantity(len(lists.frame), 'row')}")
    else:
        print_lists(lists.frame, form)
        if reasons and form == "table":
            typer.echo("\n" + Prose(["terminal.md.j2"], {}).text("reasons"), nl=False)


def _print_unknown(lists: "Recommendations") -> None:
    for kind, unknown in (("items", lists.unknown_items), ("users", lists.unknown_users)):
        if unknown:
            typer.echo(f"unknown {kind} skipped ({len(unknown):,}): {some(unknown)}", err=True)
    if (users := lists.fallback_users) == ("",):
        typer.echo("by popularity: no item of the history is known", err=True)
    elif users:
        typer.echo(f"by popularity, for unknown users ({len(users):,}): {some(users)}", err=True)


def _measure_novelty(run: Path, output: Path | None, *, overwrite: bool) -> None:
    from unveil.report.svg import check_page_path
    from unveil.runs.report import measure_dial
    from unveil.runs.report_page import DIAL, write_dial_page
    from unveil.serving.model_files import write_dial

    if output is not None:
        check_page_path(output, what="what the dial gives", overwrite=overwrite)
    points = measure_dial(run)
    print_table(list(points[0]), [[f"{point[name]:.4f}" for name in points[0]] for point in points])
    typer.echo(f"on the test events, full ranking, lists of 10; {write_dial(run, points)} is shown by `unveil serve`")
    write_where_possible(lambda: write_dial_page(run.resolve().name, points, output or run / DIAL, this_command()))


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
    from unveil.report.prose import Prose
    from unveil.runs.train import export_weights
    from unveil.serving.export import export_embeddings, export_onnx
    from unveil.serving.recommender import Recommender
    from unveil.settings import parsed

    if not (onnx or embeddings or weights):
        raise UnveilError("nothing to export was named", expected="--onnx, --embeddings or --weights")
    place = output or run
    if onnx or embeddings:
        recommender = Recommender.load(run)
        files = export_onnx(recommender, place / "model.onnx", overwrite=overwrite) if onnx else {}
        files |= export_embeddings(recommender, place, overwrite=overwrite) if embeddings else {}
        for path, about in files.items():
            typer.echo(f"{path}: {about}")
    if weights:
        changes = dict(map(parsed, assignments or ()))
        log = export_weights(run, place / f"weights.{form}", changes, overwrite=overwrite)
        typer.echo(f"{log.path}: weights of {log.estimator} by {log.propensity}, mean 1; {log.diagnostics}")
        for text in Prose(["terminal.md.j2"], vars(log)).paragraphs("weights"):
            typer.echo(text, err=True)


def serve(
    runs: Annotated[list[Path], typer.Argument(help="Folders of trained models; the first answers by default.")],
    host: Annotated[str, option("Where to listen; only this machine can reach the default.")] = "127.0.0.1",
    port: Annotated[int, option("0: any free one.", min=0, max=65535)] = 8000,
    titles: Titles = None,
    title_ids: TitleIds = None,
    items: Annotated[Path | None, option("Item attributes, for `where`: CSV, TSV or Parquet.")] = None,
    token_file: Annotated[Path | None, option("File with the bearer token to require; or set UNVEIL_TOKEN.")] = None,
    allow_host: Annotated[list[str] | None, option("Host name to accept without a token, e.g. of a proxy.")] = None,
    watch: Annotated[float, option("Seconds between checks for new models; 0: only by /reload.", min=0)] = 2.0,
    workers: Annotated[int, option("Scoring threads.", min=1)] = 2,
    drain: Annotated[float, option("Seconds to keep answering new requests after SIGTERM.", min=0)] = 1.0,
    max_body: Annotated[int, option("Bytes per request.", panel=_LIMITS, min=1)] = 1 << 20,
    max_history: Annotated[int, option("Items per history.", panel=_LIMITS, min=1)] = 10_000,
    max_k: Annotated[int, option("Recommended items per list.", panel=_LIMITS, min=1)] = 1_000,
    max_batch: Annotated[int, option("Lists per request.", panel=_LIMITS, min=1)] = 256,
    max_passes: Annotated[int, option("Forward passes per request, for reasons.", panel=_LIMITS, min=1)] = 10_000,
    max_concurrent: Annotated[int, option("Concurrent requests.", panel=_LIMITS, min=1)] = 256,
    max_seconds: Annotated[float, option("Seconds for a request to arrive.", panel=_LIMITS, min=0.01)] = 10.0,
) -> None:
    """Serve trained models over HTTP: recommendations as JSON, a page at /, health, metrics.

    A model that is trained again in its folder is loaded without a restart. On SIGTERM or Ctrl-C the server ends when
    all requests are answered.
    """
    from unveil.serving.server.inference_service import Limits, Settings
    from unveil.serving.server.middleware import is_loopback
    from unveil.serving.server.process import serve as run

    limits = Limits(max_body, max_history, max_k, max_batch, max_passes, max_concurrent, max_seconds)
    token = _token(token_file)
    settings = Settings(host, port, token, workers, watch or None, drain, limits=limits, hosts=allow_host or ())
    if not is_loopback(host) and token is None:
        typer.echo(f"unveil: {host} can be reached by others, and no token is required.", err=True)
    run(runs, settings, _item_info(titles, title_ids, items))


def _token(path: Path | None) -> str | None:
    if path is None:
        return os.environ.get("UNVEIL_TOKEN") or None
    try:
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UnveilError(f"cannot be read: {error}", where=path) from None
    if not token:
        raise UnveilError("the file is empty", where=path, expected="a token")
    return token


def _item_info(titles: Path | None, title_ids: Path | None, items: Path | None) -> "ItemInfo":
    from unveil.data.titles import read_ids, read_titles
    from unveil.serving.attributes import Attributes
    from unveil.serving.server.model_store import ItemInfo

    if titles is None and title_ids is not None:
        raise UnveilError("pairs of ids were given, and no titles", hint="Name the file of titles with --titles.")
    named = {} if titles is None else read_titles(titles)
    if title_ids is not None:
        named = {raw: named[other] for raw, other in read_ids(title_ids).items() if other in named}
        if not named:
            raise UnveilError("none of the pairs of ids leads to a title", where=title_ids)
    return ItemInfo(named, None if items is None else Attributes.read(items))
