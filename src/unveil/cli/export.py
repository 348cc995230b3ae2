"""`unveil export RUN`: a trained model for other programs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unveil.errors import UnveilError

if TYPE_CHECKING:
    from unveil.runs.weights import WeightedLog


def export(
    run: Annotated[Path, typer.Argument(help="Folder that `unveil train` or `Recommender.save` wrote.")],
    onnx: Annotated[bool, typer.Option("--onnx", help="The network as model.onnx, checked against torch.")] = False,
    embeddings: Annotated[
        bool, typer.Option("--embeddings", help="Vectors of items and users, with raw ids, as Parquet.")
    ] = False,
    weights: Annotated[
        bool, typer.Option("--weights", help="The log with the weight of each training event as a column.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder to write to; that of the run where not given.")
    ] = None,
    form: Annotated[str, typer.Option("--as", help="The log's format: parquet, csv, tsv, jsonl or inter.")] = "parquet",
    assignments: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Weigh otherwise than the run, e.g. estimator.exponent=0.5."),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that are there.")] = False,
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
        _tell(export_weights(run, place / f"weights.{form}", changes, overwrite=overwrite))


def _model(run: Path, place: Path, *, onnx: bool, embeddings: bool, overwrite: bool) -> None:
    from unveil.serving.export import ONNX, export_embeddings, export_onnx
    from unveil.serving.recommender import Recommender

    recommender = Recommender.load(run)
    written = [export_onnx(recommender, place / ONNX, overwrite=overwrite)] if onnx else []
    written += export_embeddings(recommender, place, overwrite=overwrite) if embeddings else []
    for file in written:
        typer.echo(f"{file.path}: {file.about}")


def _tell(log: "WeightedLog") -> None:
    typer.echo(f"{log.path}: weights of {log.estimator} by {log.propensity}, mean 1; {log.diagnostics}")
    for warning in log.diagnostics.warnings():
        typer.echo(f"warning    {warning}", err=True)
    if log.by_proxy:
        typer.echo("popularity stands in for exposure: gains are under that proxy.", err=True)
