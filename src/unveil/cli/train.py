"""`unveil train LOG -o RUN`, `unveil tune LOG|CONFIG --space SPACE -o STUDY`: a recommender, and settings for it."""

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from unveil.cli.options import WORKERS, Address, EngineOption, LogOptions, TrainingOptions, option
from unveil.cli.results import print_evaluation, print_table
from unveil.cli.terminal import command_of, until_stopped, write_where_possible
from unveil.errors import UnveilError
from unveil.processes import sigterm_interrupts
from unveil.wording import quantity

if TYPE_CHECKING:
    from unveil.runs.config import Experiment
    from unveil.runs.run_folder import Run
    from unveil.runs.tune.study import Space, Study
    from unveil.runs.tune.subjects import Factorisation, Part


def train(
    *,
    options: LogOptions,
    output: Annotated[Path, option("Folder of the run; new, or one to --resume.", "--output", "-o")],
    training: TrainingOptions,
    workers: Annotated[int, option("No longer used: torchrun starts workers.", hidden=True, min=1)] = 1,
    engine: Annotated[str, option("No longer used.", hidden=True)] = "processes",
    address: Annotated[str | None, option("No longer used.", hidden=True)] = None,
    resume: Annotated[bool, option("Continue a run that was stopped, or start it.", "--resume")] = False,
    page: Annotated[bool, option("Write the run's page, index.html.", "--page/--no-page")] = True,
    baselines: Annotated[bool, option("Fit baselines too, and compare.", "--baselines/--no-baselines")] = True,
) -> None:
    """Train a recommender on a log and evaluate it on the held-out interactions.

    Settings come from the preset or the config, then from options, then from --set: the last one decides.
    """
    from unveil.runs.report_page import PAGE, write_run_page
    from unveil.runs.run_folder import CONFIG
    from unveil.runs.train import run, run_rank
    from unveil.studies.paper import published_line
    from unveil.training.distributed import Place, WorkerLostError
    from unveil.training.progress import watcher

    if workers != 1 or engine != "processes" or address is not None:
        command = shlex.join([*command_of(sys.argv[1:]), *["--resume"] * resume])
        many = f"--nproc-per-node {workers}" if workers != 1 else "--nnodes N --nproc-per-node M ..."
        hint = f"One process uses all cores. For several: torchrun {many} -m {command}"
        raise UnveilError("training starts no other processes any more, here or on Ray", hint=hint)
    place = Place.of_environment()
    if place is not None:
        resume = resume or (place.attempt > 0 and (output / CONFIG).exists())
    how: Any = {"resume": resume, "watch": watcher(), "tell": typer.echo, "baselines": baselines}
    experiment = training.experiment(options, output if resume and (output / CONFIG).exists() else None)
    try:
        with sigterm_interrupts():
            done = run(experiment, output, **how) if place is None else run_rank(experiment, output, place, **how)
    except (KeyboardInterrupt, WorkerLostError) as stop:
        interrupted = isinstance(stop, KeyboardInterrupt)
        if place is None or place.rank == 0:
            why = str(stop).rstrip(".") + f" in {output}" * interrupted if str(stop) else "stopped"
            begun = (output / CONFIG).exists()
            hint = "Go on with the same command and --resume." if begun else "Nothing was written."
            typer.echo(f"unveil: {why}. {hint}", err=True)
        raise typer.Exit(130 if interrupted else 2) from None
    if done is None:
        return
    fitted, best = done.fitted, ""
    if fitted.best is not None and fitted.epochs:
        best = f", best at {fitted.best.epoch} (validation {done.experiment.training.monitor} {fitted.best.value:.4f})"
    if fitted.epochs:
        typer.echo(f"{quantity(len(fitted.epochs), 'epoch')}{_why_stopped(done)}{best}")
    print_evaluation(done.evaluation, str(done.experiment.estimator["name"]))
    if (line := published_line(done)) is not None:
        typer.echo(line)
    typer.echo(f"the run is in {output}; next: unveil recommend {output}")
    if page and (done.trained or not (output / PAGE).exists()):
        write_where_possible(lambda: write_run_page(done, command_of(sys.argv[1:])))


def _why_stopped(run: "Run") -> str:
    fitted, config = run.fitted, run.experiment.training
    if not fitted.stopped_early:
        return ""
    if fitted.best is None or config.patience is None:
        return " (out of time: --minutes)"
    last = fitted.best.epoch + config.patience * config.validate_every
    return " (stopped early)" if len(fitted.epochs) >= last else " (out of time: --minutes)"


def tune(
    *,
    options: LogOptions,
    output: Annotated[Path, option("Folder of the study; new, or one to join or continue.", "--output", "-o")],
    space: Annotated[str, option("TOML file of values, or paper, paper-ml-20m, paper-relevance, paper-exposure.")],
    trials: Annotated[int | None, option("Combinations to try; by default 30, or the whole grid.", min=1)] = None,
    replicates: Annotated[int, option("Trainings per trial, with different seeds; their mean counts.", min=1)] = 3,
    sampler: Annotated[Literal["random", "tpe", "grid"], option("How the space is searched.")] = "random",
    prune: Annotated[bool, option("Stop trials that fall behind the median.", "--prune")] = False,
    storage: Annotated[str | None, option("Database, for many machines; by default a journal.", metavar="URL")] = None,
    truth: Annotated[bool, option("Validate on true relevance; needs --world.", "--truth")] = False,
    training: TrainingOptions,
    jobs: Annotated[int | None, option("Worker processes or Ray tasks; by default 1.", panel=WORKERS, min=1)] = None,
    engine: EngineOption = "processes",
    address: Address = None,
) -> None:
    """Try settings and keep those that do best on the validation cases; the test cases are not used.

    LOG is a log, or a config (*.toml) that names one. Spaces of relevance.* or exposure.* tune how a world is fitted to
    it, all others how a model is trained. Run the same command again, in any number of processes and on any number of
    machines, to join the study or to continue it: each trial is done once.
    """
    from unveil.data.readers.database import shown
    from unveil.runs.progress import job_watcher
    from unveil.runs.tune import search
    from unveil.runs.tune.study import Plan, Space
    from unveil.runs.tune.subjects import Training, part_of
    from unveil.runs.workers import engine as engine_of

    wanted = Space.read(space)
    if part := part_of(wanted):
        subject: Factorisation | Training = _factorisation(part, wanted, training, options, truth=truth)
    else:
        subject = Training(_experiment(training, options), truth)
    chosen = engine_of(engine, jobs, address)
    words = [shown(word) if word == storage or "://" in word else word for word in sys.argv[1:]]  # without passwords
    with until_stopped(output):
        study = search.tune(
            subject,
            Plan(wanted, trials, replicates, sampler, prune),
            search.Location(output, storage),
            watch=job_watcher(),
            tell=typer.echo,
            command=shlex.join(["unveil", *words]),
            engine=None if jobs is None and engine == "processes" else chosen,
            workers=jobs or chosen.workers,
        )
    _print(study, output)


def _experiment(training: TrainingOptions, options: LogOptions) -> "Experiment":
    """By LOG and options as in training; or by a config in the place of LOG, which names its log."""
    from unveil.runs.config import Experiment

    if not options.log.endswith(".toml"):
        return training.experiment(options, default="quick")
    path, other = Path(options.log), training.config
    if other is not None:
        raise UnveilError("two configs were given", found=f"{path} and {other}", expected="one of them")
    log = Experiment.of(path).data.log
    if not log:
        hint = "Name it there, or give LOG and --config."
        raise UnveilError("the config names no log", where=path, expected="data.log", hint=hint)
    return replace(training, config=path).experiment(replace(options, log=log))


def _factorisation(
    part: "Part", space: "Space", training: TrainingOptions, options: LogOptions, *, truth: bool
) -> "Factorisation":
    """Of the log, or of the one that a config in its place names; --config and --set say how a world is fitted."""
    from unveil.runs.tune.subjects import Factorisation
    from unveil.settings import parsed
    from unveil.simulation.fit import fit_of

    for name, given in {**vars(training), "truth": truth}.items():
        if given and name in ("model", "estimator", "world", "device", "preset", "truth", "validation"):
            problem = "this option is of trainings, and the space of a factorisation"
            hint = "Leave it out, or name a space with settings of trainings."
            raise UnveilError(problem, where=f"--{name}", hint=hint)
    changes = dict(map(parsed, training.assignments or ()))
    changes |= {} if training.seed is None else {"seed": training.seed}
    fit = fit_of([training.config] if training.config else [], changes)
    named_in_config = options.log.endswith(".toml")
    source = _experiment(TrainingOptions(), options).data if named_in_config else options.source()
    recipe = str(space.plain().get("recipe", [fit.recipe])[0])
    return Factorisation(source, replace(fit, recipe=recipe), part)


def _print(study: "Study", output: Path) -> None:
    from unveil.runs.tune.study import OVER, short, value_text

    names = list(study.plan.space.dimensions)
    rows = [
        [f"trial {each.index}", str(each)[:60], *(value_text(each.settings.get(name, "–")) for name in names)]
        for each in study.ranked()[:10]
    ]
    print_table(["", f"validation {study.subject.objective.metric}", *map(short, names)], rows)
    states = ", ".join(f"{quantity(study.count(state), 'trial')} {state}" for state in OVER if study.count(state))
    typer.echo(f"mean over {quantity(study.plan.replicates, 'replicate')} ± their standard deviation; {states}")
    typer.echo(f"the study is in {output}; next: {study.subject.command.format(config=output / 'best.toml')}")
