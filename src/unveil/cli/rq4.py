"""`unveil reproduce rq4 --data LOG`: the paper's estimators on a real log, under three rankings."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from unveil.cli.options import Address, EngineOption, Jobs
from unveil.cli.terminal import command_of, until_stopped


def rq4(
    data: Annotated[str, typer.Option(help="ml-1m, ml-20m, beauty (a file put in place by hand), or any log.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the run: new, or one to go on with.")],
    preset: Annotated[
        str, typer.Option(help="paper (the authors' settings), converged (one backbone for all) or quick.")
    ] = "paper",
    replicates: Annotated[int, typer.Option(help="Repeat everything random.")] = 5,
    estimators: Annotated[
        str,
        typer.Option(
            "--estimators",
            "-e",
            help="Which to train, with commas between; naive is needed. They use popularity, except arms that "
            "name another propensity: corrected@joint.",
        ),
    ] = "naive,ips,itps",
    tuned_for: Annotated[
        str | None,
        typer.Option(help="Whose settings and exponents: ml-1m, ml-20m or beauty; by default found by the log's size."),
    ] = None,
    min_item: Annotated[
        int | None, typer.Option(min=0, help="Drop items with fewer interactions; by default as the paper: 5.")
    ] = None,
    min_user: Annotated[
        int | None, typer.Option(min=0, help="Then drop users with fewer; by default as the paper: 5.")
    ] = None,
    negatives: Annotated[int, typer.Option(help="Drawn by popularity for each case, and as many uniformly.")] = 100,
    assignments: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A setting of all trainings, or of one (ips:NAME=VALUE)."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    jobs: Jobs = None,
    engine: EngineOption = "processes",
    address: Address = None,
) -> None:
    """How well does each estimator rank real interactions? A run that was stopped goes on with the same command."""
    from unveil.runs.progress import job_watcher
    from unveil.runs.workers import engine as engine_of
    from unveil.studies.engine import run
    from unveil.studies.paper import recognised
    from unveil.studies.rq4 import RQ4
    from unveil.studies.rq4_data import LogChoice
    from unveil.studies.writer import print_report, write

    with until_stopped(output):
        log, _ = LogChoice(data, min_item, min_user).parts()
        study = RQ4(
            log=data,
            min_item=min_item,
            min_user=min_user,
            replicates=replicates,
            estimators=tuple(name.strip() for name in estimators.split(",") if name.strip()),
            tuned_for=tuned_for or recognised(len(log.users), len(log.items), len(log.interacted())) or "ml-1m",
            preset=preset,
            negatives=negatives,
            seed=seed,
            changes=tuple(assignments or ()),
        )
        answer = run(study, output, engine_of(engine, jobs, address), watch=job_watcher())
        report = write(answer, output, command_of(sys.argv[1:]))
    print_report(report, output)
