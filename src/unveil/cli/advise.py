"""`unveil audit|advise`: what a log says about its exposure bias, and which estimator to use on it."""

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unveil.cli.options import (
    CHOICES,
    FITS,
    LogOptions,
    Overwrite,
    Seed,
    TitleIds,
    Titles,
    WorkerOptions,
    named_in,
    numbers_in,
    option,
    takes_options,
)
from unveil.cli.terminal import command_of, until_stopped
from unveil.studies.scenarios import EFFORTS

if TYPE_CHECKING:
    from unveil.audit.advice import Audit


@takes_options
def audit(
    *,
    options: LogOptions,
    output: Annotated[Path, option("Page to write; its figures and plots go beside it.", "--output", "-o")],
    titles: Titles = None,
    title_ids: TitleIds = None,
    seed: Annotated[int, option("Seed of shuffles, samples and negatives.", min=0)] = 0,
    overwrite: Overwrite = False,
) -> None:
    """Look at a log before anything is trained: popularity, order, leakage, baselines, weights, and what to do."""
    from unveil.audit.advice import audit as audited
    from unveil.audit.page import check_output, write
    from unveil.cli.terminal import bar
    from unveil.data.titles import named_items

    check_output(output, overwrite=overwrite)
    log = options.source().load()
    names = named_items(log.items, titles, title_ids)
    with bar("auditing") as progress:
        found = audited(log, seed=seed, progress=progress)
    write(found, log, names, options.log, output, ["unveil", *sys.argv[1:]])
    _print(found, output)


def _print(found: "Audit", output: Path) -> None:
    from rich.console import Console
    from rich.table import Table

    from unveil.audit.page import beside, key_figures, summary

    console = Console()
    console.print(summary(found), highlight=False)
    console.print()
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(justify="right", no_wrap=True)
    table.add_column()
    for figure in key_figures(found):
        table.add_row(figure.value, figure.label)
    console.print(table)
    warnings = [each.title for each in found.advice if each.warning]
    if warnings:
        console.print()
    for title in warnings:
        console.print(f"[bold]Warning[/bold]  {title}", highlight=False)
    console.print()
    console.print(f"open {output} (figures: {beside(output)})", highlight=False, soft_wrap=True)


_TRIED = "What is tried"
_WORLD = "The world behind the log"


def _by_effort(name: str, nothing: str = "none") -> str:
    """What an option is where it is not given, at each effort."""
    defaults = (f"{_shown(effort[name], nothing)} ({called})" for called, effort in EFFORTS.items())
    return f"By default {' or '.join(defaults)}."


def _shown(value: object, nothing: str) -> str:
    if not isinstance(value, tuple):
        return str(value)
    return ", ".join(f"{each:g}" if isinstance(each, float) else each or nothing for each in value) or nothing


@takes_options
def advise(
    *,
    options: LogOptions,
    output: Annotated[Path, option("Folder of the advice: new, or one to go on with.", "--output", "-o")],
    effort: Annotated[
        str,
        option(
            "quick (one world, two kinds of users, two severities: a first answer, in half an hour to an hour of one "
            "core for ml-100k) or thorough (six worlds, three of each, eleven estimators: hours).",
            panel=_TRIED,
        ),
    ] = "quick",
    estimators: Annotated[str | None, option(f"Beside naive. {_by_effort('estimators')}", panel=_TRIED)] = None,
    propensities: Annotated[
        str | None,
        option(
            "What estimators are told of exposure; one that is named and that the log cannot give is an error. 'all': "
            f"every one that it can give. {_by_effort('propensities', 'all')}",
            panel=_TRIED,
        ),
    ] = None,
    clips: Annotated[
        str | None,
        option(f"Of weights, as shares of the events, e.g. none,5%. {_by_effort('clips')}", panel=_TRIED),
    ] = None,
    choices: Annotated[
        str | None, option(f"How users may choose: {CHOICES} {_by_effort('choices')}", panel=_TRIED)
    ] = None,
    severities: Annotated[
        str | None, option(f"How rare exposure may be: exponents p. {_by_effort('severities')}", panel=_TRIED)
    ] = None,
    replicates: Annotated[
        int | None, option(f"Draws of each scenario. {_by_effort('replicates')}", panel=_TRIED)
    ] = None,
    worlds: Annotated[
        int | None,
        option(f"Worlds that are fitted to the log. {_by_effort('worlds')} A saved world is one.", panel=_TRIED),
    ] = None,
    users: Annotated[
        int | None,
        option(f"At most so many users of the log, drawn at random. {_by_effort('users')}", panel=_WORLD),
    ] = None,
    steps: Annotated[
        int | None,
        option(
            "The last so many events of each user; by default those of the longest history, at most 100.", panel=_WORLD
        ),
    ] = None,
    fit: Annotated[str, option(FITS, panel=_WORLD)] = "posterior",
    implicit: Annotated[
        str | None,
        option(
            "For logs without ratings: which share of popularity is relevance, declared; e.g. 0.25,0.75.",
            panel=_WORLD,
            metavar="SHARES",
        ),
    ] = None,
    impressions: Annotated[
        float, option("Share of impressions without a click that your log records; 1: all.", panel=_WORLD)
    ] = 1.0,
    world: Annotated[
        str | None, option("A saved world, or 'builtin', in the place of a fitted one.", panel=_WORLD)
    ] = None,
    preset: Annotated[str, option("Of the trainings: quick, paper or converged.")] = "quick",
    assignments: Annotated[
        list[str] | None,
        option("A setting of all trainings, or of one (itps:NAME=VALUE).", "--set", metavar="NAME=VALUE"),
    ] = None,
    seed: Seed = 0,
    workers: WorkerOptions,
) -> None:
    """Try estimators in worlds fitted to your log, and say which to use. A run that was stopped goes on."""
    from unveil.runs.progress import job_watcher
    from unveil.studies.advise import advise_study
    from unveil.studies.advise_report import write_config
    from unveil.studies.engine import run
    from unveil.studies.writer import print_report, write

    study = advise_study(
        options.source(),
        effort=effort,
        estimators=None if estimators is None else named_in(estimators),
        propensities=None if propensities is None else propensities_in(propensities),
        clips=None if clips is None else clips_in(clips),
        choices=None if choices is None else named_in(choices),
        severities=None if severities is None else numbers_in(severities, "--severities"),
        replicates=replicates,
        worlds=worlds,
        users=users,
        steps=steps,
        fit=fit,
        liked=numbers_in(implicit or "", "--implicit"),
        impressions=impressions,
        world=world,
        preset=preset,
        changes=tuple(assignments or ()),
        seed=seed,
    )
    with until_stopped(output):
        say = partial(typer.echo, err=True)
        report = write(
            run(study, output, workers.workers(), watch=job_watcher(), say=say), output, command_of(sys.argv[1:])
        )
        write_config(report)
    print_report(report, output)


def propensities_in(text: str) -> tuple[str, ...]:
    """Families of propensities; none: all."""
    from unveil.errors import UnveilError

    found = () if text == "all" else named_in(text)
    if not found and text != "all":
        raise UnveilError("no propensity is named", where="--propensities", expected="names of some, or all")
    return found


def clips_in(text: str) -> tuple[str, ...]:
    """Shares of the events, each once however it is written; 'none' and '0' are no clip."""
    return tuple(dict.fromkeys(map(_clip, named_in(text))))


def _clip(text: str) -> str:
    from unveil.errors import UnveilError
    from unveil.estimators.inverse import share_of

    if text in ("none", "0"):
        return ""
    share = share_of(text, "--clips")
    if share is None:
        expected = "a share of the events such as 5%, or none"
        raise UnveilError("not a valid value", where="--clips", found=text, expected=expected)
    return f"{100 * share:g}%"
