"""`unveil propensity fit|describe|score|positions`: exposure learnt from impressions, estimates against the truth."""

from functools import partial
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unveil.cli.options import AsJson, LogOptions, Overwrite, Seed, option, set_option
from unveil.cli.terminal import bar, print_page_table, this_command
from unveil.files import check_free

if TYPE_CHECKING:
    from unveil.report.prose import Prose

HELP = "Propensities learnt from impressions, or scored against known ones."


def score(
    *,
    options: LogOptions,
    world: Annotated[Path, option("Folder of the world that the log was drawn from.")],
    output: Annotated[Path, option("Folder of the scores.", "--output", "-o")],
    propensity: Annotated[list[str] | None, option("Propensity to score; may be repeated. All by default.")] = None,
    assignments: Annotated[
        list[str] | None, set_option("Option of one, e.g. damped-static:exponent=1.", "PROPENSITY:NAME=VALUE")
    ] = None,
    slots: Annotated[int, option("Training interactions, sampled at random, to score at.", min=1)] = 2000,
    seed: Annotated[int, option("Seed of that sample.", min=0)] = 0,
    overwrite: Overwrite = False,
) -> None:
    """Score every propensity that can be estimated from a log against the true ones of the world behind it."""
    from unveil.runs.propensity_reports import score_all, scores_prose, write_scores
    from unveil.simulation.world import World

    check_free(output, overwrite=overwrite, inputs=[options.log, world])
    truth, log, tell = World.load(world), options.source().load(), partial(typer.echo, err=True)
    scores = score_all(truth, log, propensity or (), assignments or (), slots=slots, seed=seed, tell=tell)
    write_scores(scores, output, this_command(), overwrite=overwrite)
    _print(scores_prose(scores))
    typer.echo(f"open {output / 'index.html'}")


def positions(
    *,
    options: LogOptions,
    deepest: Annotated[int, option("Pool all positions from this one on; 0: none.", min=0)] = 0,
    draws: Annotated[int, option("Bootstrap draws for the intervals.", min=1)] = 400,
    seed: Annotated[int, option("Seed of these draws.", min=0)] = 0,
    json: AsJson = False,
) -> None:
    """Estimate how often each position is examined, from items that were shown at several positions."""
    from unveil.runs.propensity_reports import examine_positions, positions_prose

    found = examine_positions(options.source().load(), deepest=deepest, draws=draws, seed=seed)
    if json:
        typer.echo(dumps(found, indent=1))
    else:
        _print(positions_prose(found))


def fit(
    *,
    options: LogOptions,
    output: Annotated[Path, option("Folder of the learnt exposure.", "--output", "-o")],
    valid_days: Annotated[int, option("Days for early stopping and calibration.", min=1)] = 2,
    test_days: Annotated[int, option("Last days, for the evaluation.", min=1)] = 2,
    half_life: Annotated[float, option("Days after which an impression counts half in recent popularity.")] = 1.0,
    assignments: Annotated[
        list[str] | None, set_option("width, epochs, patience, negatives, batch, lr, penalty")
    ] = None,
    seed: Seed = 0,
    overwrite: Overwrite = False,
) -> None:
    """Learn from impressions how likely each item is to be shown, to whom and when; compare with popularity."""
    from unveil.propensity import time_of_day_fit
    from unveil.runs.propensity_reports import write_fit
    from unveil.settings import changed, parsed

    check_free(output, overwrite=overwrite, inputs=[options.log])
    how = time_of_day_fit.ExposureFit(valid_days, test_days, half_life=half_life, seed=seed)
    how = changed(how, {f"learning.{name}": value for name, value in map(parsed, assignments or ())})
    log = options.source().load()
    with bar("learning exposure") as progress:
        fitted = time_of_day_fit.fit(log, how, progress)
    _print(write_fit(fitted, log, how, output, this_command(), overwrite))
    use = f"--set propensity.name=learnt-temporal --set propensity.path={output}"
    typer.echo(f"open {output / 'index.html'}; use: {use}")


def describe(
    folder: Annotated[Path, typer.Argument(help="Folder that `unveil propensity fit` wrote.")], json: AsJson = False
) -> None:
    """Show how well a learnt exposure predicts impressions, next to popularity."""
    from unveil.propensity.time_of_day import about
    from unveil.runs.propensity_reports import fit_prose

    if json:
        typer.echo(dumps(about(folder), indent=1, ensure_ascii=False))
    else:
        _print(fit_prose(about(folder)))


def _print(prose: "Prose") -> None:
    print_page_table(prose.table("table"), prose.paragraphs("findings"))


COMMANDS = (score, positions, fit, describe)
