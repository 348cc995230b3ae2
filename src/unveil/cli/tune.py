"""`unveil tune LOG|CONFIG --space SPACE -o STUDY`: the settings that do best on the validation cases."""

import shlex
import sys
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unveil.cli.options import PANEL, Address, EngineName, EngineOption, LogOptions, takes_log
from unveil.errors import UnveilError

if TYPE_CHECKING:
    from unveil.runs.config import Experiment
    from unveil.runs.tune.factorisation import Factorisation, Part
    from unveil.runs.tune.search import Crew
    from unveil.runs.tune.space import Space
    from unveil.runs.tune.subject import Study, Subject

_SHOWN = 10


class Sampler(StrEnum):
    """How the space is searched."""

    random = "random"
    tpe = "tpe"
    grid = "grid"


@takes_log
def tune(
    *,
    options: LogOptions,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder of the study; new, or one to join or go on with.")
    ],
    space: Annotated[
        str,
        typer.Option(
            help="A TOML file of settings and values to try, or paper, paper-ml-20m, paper-relevance, paper-exposure."
        ),
    ],
    trials: Annotated[
        int | None, typer.Option(min=1, help="Combinations to try; 30 if not given, or the whole grid.")
    ] = None,
    replicates: Annotated[int, typer.Option(min=1, help="Trainings of each, with other seeds; the mean counts.")] = 3,
    sampler: Annotated[Sampler, typer.Option(help="How the space is searched.")] = Sampler.random,
    prune: Annotated[
        bool, typer.Option("--prune", help="Stop trials that fall behind the median; the paper does not.")
    ] = False,
    storage: Annotated[
        str | None, typer.Option(metavar="URL", help="A database, for many machines; a journal in STUDY if not given.")
    ] = None,
    truth: Annotated[
        bool, typer.Option("--truth", help="Validate on what users would have liked best; needs --world.")
    ] = False,
    estimator: Annotated[
        str | None,
        typer.Option("--estimator", "-e", help="naive, ips, itps, corrected …: docs/estimators; or your own."),
    ] = None,
    model: Annotated[str | None, typer.Option(help="bert4rec (if not given), sasrec or gru4rec.")] = None,
    preset: Annotated[str | None, typer.Option(help="quick (if not given), paper or converged.")] = None,
    config: Annotated[Path | None, typer.Option(help="A TOML file of settings; it may extend a preset.")] = None,
    assignments: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Change one setting for all trials.")
    ] = None,
    world: Annotated[
        str | None, typer.Option(help="Folder of the world the log was drawn from, or 'builtin': the truth is known.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the search and of the first replicate.")] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda or mps.")] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            min=1, help="Worker processes, or Ray tasks; this process alone if not given.", rich_help_panel=PANEL
        ),
    ] = None,
    engine: EngineOption = EngineName.processes,
    address: Address = None,
) -> None:
    """Try settings and keep those that do best on the validation cases; the test cases are not looked at.

    LOG is a log, or a config (*.toml) that names one. Spaces of relevance.* or exposure.* tune how a world is fitted to
    it, all others how a model is trained. Give the same command again, in as many processes and on as many machines as
    you like, to join the study or to go on with it: each trial is done once.
    """
    from unveil.processes import sigterm_interrupts
    from unveil.runs.tune.factorisation import part_of
    from unveil.runs.tune.objective import Training
    from unveil.runs.tune.search import Where
    from unveil.runs.tune.search import tune as run
    from unveil.runs.tune.space import Space
    from unveil.runs.tune.subject import Plan
    from unveil.runs.tune.worker import study_watcher

    named = {
        "model.name": model,
        "estimator.name": estimator,
        "data.world": world,
        "training.seed": seed,
        "training.device": device,
    }
    wanted = Space.read(space)
    subject: Subject
    if part := part_of(wanted):
        _refuse_of_trainings(model=model, estimator=estimator, world=world, device=device, preset=preset, truth=truth)
        subject = _factorisation(part, wanted, config, options, seed, assignments or [])
    else:
        subject = Training(_experiment(preset, config, options, named, assignments or []), truth)
    plan = Plan(wanted, trials, replicates, sampler.value, prune)
    try:
        with sigterm_interrupts():
            study = run(
                subject,
                plan,
                Where(output, storage),
                watch=study_watcher(),
                tell=typer.echo,
                command=_command(storage),
                crew=_crew(engine, jobs, address),
            )
    except KeyboardInterrupt:
        kept = f" What is over is reported in {output}." if (output / "best.toml").exists() else ""
        typer.echo(f"unveil: tuning was stopped.{kept} Go on with the same command.", err=True)
        raise typer.Exit(130) from None
    _print(study, output)


def _crew(engine: EngineName, jobs: int | None, address: str | None) -> "Crew | None":
    """Nobody but this process, unless others are asked for."""
    from unveil.runs.tune.search import Crew
    from unveil.runs.workers import engine as engine_of

    asked = engine_of(engine, jobs, address)
    if jobs is None and engine is EngineName.processes:
        return None
    return Crew(asked, jobs or asked.workers())


def _experiment(
    preset: str | None, config: Path | None, options: LogOptions, named: dict[str, Any], assignments: list[str]
) -> "Experiment":
    """By LOG and options as in training; or by a config in the place of LOG, which names its log."""
    from unveil.cli.train import experiment_of
    from unveil.runs.config import Experiment

    if not options.log.endswith(".toml"):
        return experiment_of(preset, config, options, named, assignments)
    if config is not None:
        raise UnveilError("two configs were given", found=f"{options.log} and {config}", expected="one of them")
    path = Path(options.log)
    log = Experiment.of(path).data.log
    if not log:
        hint = "Name it there, or give LOG and --config."
        raise UnveilError("the config names no log", where=path, expected="data.log", hint=hint)
    return experiment_of(preset, path, replace(options, log=log), named, assignments)


def _refuse_of_trainings(**given: object) -> None:
    """Options that say nothing to a factorisation."""
    for name in (name for name, value in given.items() if value):
        problem = "this option is of trainings, and the space of a factorisation"
        hint = "Leave it out, or name a space with settings of trainings."
        raise UnveilError(problem, where=f"--{name}", hint=hint)


def _factorisation(
    part: "Part", space: "Space", config: Path | None, options: LogOptions, seed: int | None, assignments: list[str]
) -> "Factorisation":
    """By LOG, or what a config in its place says of a log, and what else a world is fitted with."""
    from unveil.runs.tune.factorisation import Factorisation
    from unveil.settings import parsed
    from unveil.simulation.fit import fit_of

    changes = dict(map(parsed, assignments)) | ({} if seed is None else {"seed": seed})
    fit = fit_of([config] if config else [], changes)
    names_log = options.log.endswith(".toml")
    source = _experiment(None, None, options, {}, []).data if names_log else options.source()
    return Factorisation.of(source, fit, part, space)


def _command(storage: str | None) -> str:
    """What was typed, passwords left out."""
    from unveil.data.readers.database import shown

    words = [shown(word) if word == storage or "://" in word else word for word in sys.argv[1:]]
    return shlex.join(["unveil", *words])


def _print(study: "Study", output: Path) -> None:
    """The best trials, and where everything is."""
    from unveil.cli.results import print_table
    from unveil.runs.tune.worker import figure, short, value_text
    from unveil.wording import quantity

    names = list(study.plan.space.dimensions)
    ranked = study.ranked()
    rows = [
        [f"trial {each.entry}", figure(each)[:60], *(value_text(each.settings.get(name, "–")) for name in names)]
        for each in ranked[:_SHOWN]
    ]
    print_table(["", f"validation {study.metric}", *map(short, names)], rows)
    told = [f"{quantity(study.count(state), 'trial')} {state}" for state in ("complete", "pruned", "failed")]
    over = f"mean over {quantity(study.plan.replicates, 'replicate')} ± their standard deviation"
    typer.echo(f"{over}; {', '.join(part for part in told if not part.startswith('0 '))}")
    typer.echo(f"the study is in {output}; next: {study.subject.words.command.format(config=output / 'best.toml')}")
