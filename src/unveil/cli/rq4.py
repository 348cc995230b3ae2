"""`unveil reproduce rq4 --data LOG`: the paper's estimators on a real log, under three rankings."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from unveil.cli.options import Address, EngineOption, Jobs
from unveil.cli.terminal import command_of, print_answer, until_stopped


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
            help="Which to train, with commas between; naive is needed. They are told popularity, but for arms that "
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
    from unveil.experiment.rq4.bench import parts_of
    from unveil.experiment.rq4.files import write
    from unveil.experiment.rq4.log import LogChoice
    from unveil.experiment.rq4.published import recognised
    from unveil.experiment.rq4.run import RealPlan, answer
    from unveil.experiment.rq4.study import RealStudy
    from unveil.experiment.rq4.tables import sheets
    from unveil.experiment.rq4.words import in_words
    from unveil.runs.progress import job_watcher
    from unveil.runs.workers import engine as engine_of

    with until_stopped(output):
        choice = LogChoice(data, min_item, min_user)
        whose = tuned_for or recognised(parts_of(choice)[0]) or "ml-1m"
        study = RealStudy(choice, whose, preset, negatives, seed=seed, changes=tuple(assignments or ()))
        names = tuple(name.strip() for name in estimators.split(",") if name.strip())
        plan = RealPlan(study, replicates, names)
        found = answer(plan, output, engine_of(engine, jobs, address), watch=job_watcher())
        write(found, output, command_of(sys.argv[1:]))
    print_answer(sheets(found), in_words(found), output)
