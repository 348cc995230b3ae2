"""`unveil audit|advise`: what a log says about its exposure bias, and which estimator to use on it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from unveil.cli.options import (
    CHOICES,
    FITS,
    CandidatesFile,
    LabelledFile,
    LogOptions,
    Overwrite,
    Seed,
    TitleIds,
    Titles,
    WorkerOptions,
    named_in,
    numbers_in,
    option,
    set_option,
)
from unveil.cli.terminal import bar, print_paragraphs, run_study, this_command
from unveil.errors import UnveilError
from unveil.studies import shipped


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
    from unveil.audit.advice import beside, check_output, write
    from unveil.data.readers.database import shown
    from unveil.data.titles import named_items

    check_output(output, overwrite=overwrite)
    log = options.source().load()
    names = named_items(log.items, titles, title_ids)
    with bar("auditing") as progress:
        found = audited(log, seed=seed, progress=progress)
    write(found, log, names, options.log, output, this_command())
    prose = found.prose(path=shown(options.log), advice=found.advice)
    print_paragraphs(f"{prose.line('size')} {prose.line('apart')} {prose.line('plan')}", found.verdict)
    keys = prose.key_figures("keys")
    width = max(len(figure.value) for figure in keys)
    print_paragraphs("\n".join(f"{figure.value:>{width}}  {figure.label}" for figure in keys))
    print_paragraphs(*prose.paragraphs("next"), *prose.paragraphs("todo"))
    typer.echo(f"open {output} (figures: {beside(output)})")


def _propensities(text: str) -> tuple[str, ...]:
    """Families of propensities; none: all."""
    if text != "all" and not named_in(text):
        raise UnveilError("no propensity is named", where="--propensities", expected="names of some, or all")
    return () if text == "all" else named_in(text)


def clips_in(text: str) -> tuple[str, ...]:
    """Shares of the events, each once however it is written; 'none' and '0' are no clip."""
    from unveil.estimators.inverse import share_of

    shares = {each: 0.0 if each in ("none", "0") else share_of(each, "--clips") for each in named_in(text)}
    for each, share in shares.items():
        if share is None:
            expected = "a share of the events such as 5%, or none"
            raise UnveilError("not a valid value", where="--clips", found=each, expected=expected)
    return tuple(dict.fromkeys(f"{100 * share:g}%" if share else "" for share in shares.values()))


#: How options of several values are read.
_PARSERS = {"estimators": named_in, "propensities": _propensities, "clips": clips_in, "choices": named_in}
#: Options that also hold where a test judges.
_OF_TESTS = ("estimators", "propensities", "clips", "replicates", "preset", "changes", "seed")
_TRIED, _WORLD = "What is tried", "The world behind the log"


def _by_effort(name: str, about: str, nothing: str = "none", panel: str = _TRIED) -> Any:
    """An option whose default is the effort's: the help names what it is at each."""

    def shown(value: object) -> str:
        values = value if isinstance(value, list) else [value]
        return ", ".join(f"{each:g}" if isinstance(each, float) else str(each) or nothing for each in values) or nothing

    defaults = (f"{shown(effort[name])} ({called})" for called, effort in shipped("defaults")["advise"].items())
    return option(f"{about} By default {' or '.join(defaults)}.", panel=panel)


@dataclass(frozen=True)
class AdviseOptions:
    """What is tried on which worlds; None: as the effort has it."""

    effort: Annotated[
        str, option("quick (half an hour to an hour of one core for ml-100k) or thorough (hours).", panel=_TRIED)
    ] = "quick"
    estimators: Annotated[str | None, _by_effort("estimators", "Beside naive.")] = None
    propensities: Annotated[
        str | None, _by_effort("propensities", "Of exposure: names, each of which the log must give, or 'all'.", "all")
    ] = None
    clips: Annotated[str | None, _by_effort("clips", "Of weights, as shares of the events, e.g. none,5%.")] = None
    choices: Annotated[str | None, _by_effort("choices", f"How users may choose: {CHOICES}")] = None
    severities: Annotated[str | None, _by_effort("severities", "How rare exposure may be: exponents p.")] = None
    replicates: Annotated[int | None, _by_effort("replicates", "Draws of each scenario.")] = None
    worlds: Annotated[int | None, _by_effort("worlds", "Worlds that are fitted to the log; a saved one is one.")] = None
    users: Annotated[int | None, _by_effort("users", "Most users of the log, drawn at random.", panel=_WORLD)] = None
    steps: Annotated[int | None, option("Last events of each user; all by default, at most 100.", panel=_WORLD)] = None
    fit: Annotated[str, option(FITS, panel=_WORLD)] = "posterior"
    implicit: Annotated[
        str | None, option("Without ratings: share of popularity declared as relevance, e.g. 0.25,0.75.", panel=_WORLD)
    ] = None
    impressions: Annotated[float, option("Share of impressions without a click on record; 1: all.", panel=_WORLD)] = 1.0
    world: Annotated[str | None, option("A saved world, or 'builtin', instead of a fitted one.", panel=_WORLD)] = None
    preset: Annotated[str, option("Of the trainings: quick, paper or converged.")] = "quick"
    assignments: Annotated[list[str] | None, set_option("A setting of all, or of one (itps:NAME=VALUE).")] = None
    seed: Seed = 0

    def settings(self) -> dict[str, Any]:
        """The options that were given, under the names of the study."""
        given = {name: value for name, value in vars(self).items() if value is not None}
        given |= {name: parse(given[name]) for name, parse in _PARSERS.items() if name in given}
        given |= {name: numbers_in(given[name], f"--{name}") for name in ("severities", "implicit") if name in given}
        return given | {"liked": given.pop("implicit", ()), "changes": tuple(given.pop("assignments", ()))}


def advise(
    *,
    tried: AdviseOptions,
    options: LogOptions,
    output: Annotated[Path, option("Folder of the advice: new, or one to go on with.", "--output", "-o")],
    test: LabelledFile = None,
    candidates: CandidatesFile = None,
    metric: Annotated[str | None, option("Of that test: NDCG@k, Recall@k, MAP@k or AUC.")] = None,
    workers: WorkerOptions,
) -> None:
    """Say which model to use for a log. Where it has rows shown at random, or with --test, these judge.

    Elsewhere estimators are tried in worlds fitted to the log. A run that was stopped goes on.
    """
    from unveil.studies.advise import advise_study
    from unveil.studies.advise_by_test import AdviseByTest, has_random_rows, write_test_config
    from unveil.studies.decision import write_config

    source, given = options.source(), tried.settings()
    if test is None and not has_random_rows(source.load()):
        if candidates is not None or metric is not None:
            raise UnveilError("--candidates and --metric are of a labelled test", hint="Name it with --test.")
        write_config(run_study(advise_study(source, **given), output, workers.workers()))
        return
    for name in ("choices", "severities", "worlds", "users", "steps", "implicit", "world"):
        if getattr(tried, name) is not None:
            problem, hint = "where a test judges there is no simulated world", "Leave the option out."
            raise UnveilError(problem, where=f"--{name}", hint=hint)
    shared = {name: given[name] for name in _OF_TESTS if name in given}
    where = None if candidates is None else str(candidates)
    study = AdviseByTest.of(source, test or "", candidates=where, metric=metric, **shared)
    write_test_config(run_study(study, output, workers.workers()))
