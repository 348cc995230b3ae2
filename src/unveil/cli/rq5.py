"""`unveil reproduce rq5 LOG`: the paper's feedback loop, with the authors' settings."""

from pathlib import Path
from typing import Annotated

import typer

from unveil.cli.options import Address, EngineOption, Jobs, LogOptions, takes_options


@takes_options
def rq5(
    *,
    options: LogOptions,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the loop; new, or one to --resume.")],
    tuned_for: Annotated[
        str | None,
        typer.Option(help="Whose settings: ml-1m, ml-20m or beauty; by default by the log's name or size, else ml-1m."),
    ] = None,
    preset: Annotated[str, typer.Option(help="paper (the authors' settings), converged or quick.")] = "paper",
    estimators: Annotated[
        str, typer.Option("--estimators", "-e", help="Models, with commas between.")
    ] = "naive,ips,itps",
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of feedback; the paper shows rounds 0 to 9.")] = 10,
    replicates: Annotated[int, typer.Option(min=1, help="Repeat everything random; the paper: 5.")] = 5,
    retrain: Annotated[
        str, typer.Option(help="scratch (the paper's way), warm, warm:EPOCHS or every:ROUNDS.")
    ] = "scratch",
    assignments: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A setting of all models, or of one (ips:NAME)."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    jobs: Jobs = None,
    engine: EngineOption = "processes",
    address: Address = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a loop that was stopped; also with more rounds.")
    ] = False,
) -> None:
    """Does ITPS keep recommendations novel along a feedback loop? Users take any of their ten items at random."""
    from unveil.cli.loop import models_of, run_and_print
    from unveil.runs.workers import engine as engine_of
    from unveil.studies.loop import LoopConfig, LoopPlan

    config = LoopConfig(rounds, retrain=retrain, replicates=replicates, seed=seed)
    plan = LoopPlan.of(config, models_of(estimators), preset, assignments or [], tuned_for or whose(options))
    run_and_print(plan, options, output, engine_of(engine, jobs, address), resume=resume)


def whose(options: LogOptions) -> str:
    """The data set of the paper that the log is by its name or by its size; else the first one."""
    from unveil.studies.paper import paper, recognised

    if options.log in paper()["real"]["data"]:
        return options.log
    log = options.source().load()
    return recognised(len(log.users), len(log.items), len(log.interacted())) or "ml-1m"
