"""`unveil tune LOG|CONFIG --space SPACE -o STUDY`: the settings that do best on the validation cases."""

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from unveil.cli.options import WORKERS, Address, EngineOption, LogOptions, TrainingOptions, option, takes_options
from unveil.errors import UnveilError

if TYPE_CHECKING:
    from unveil.runs.config import Experiment
    from unveil.runs.tune.study import Space, Study
    from unveil.runs.tune.subjects import Factorisation, Part


@takes_options
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
    from unveil.cli.terminal import until_stopped
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
        return training.experiment(options)
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
        if given and name in ("model", "estimator", "world", "device", "preset", "truth"):
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
    """The best trials, and where everything is."""
    from unveil.cli.results import print_table
    from unveil.runs.tune.study import OVER, short, value_text
    from unveil.wording import quantity

    names = list(study.plan.space.dimensions)
    rows = [
        [f"trial {each.index}", str(each)[:60], *(value_text(each.settings.get(name, "–")) for name in names)]
        for each in study.ranked()[:10]
    ]
    print_table(["", f"validation {study.subject.objective.metric}", *map(short, names)], rows)
    states = ", ".join(f"{quantity(study.count(state), 'trial')} {state}" for state in OVER if study.count(state))
    typer.echo(f"mean over {quantity(study.plan.replicates, 'replicate')} ± their standard deviation; {states}")
    typer.echo(f"the study is in {output}; next: {study.subject.command.format(config=output / 'best.toml')}")
