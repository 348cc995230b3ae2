"""`unveil reproduce rq1|rq2|rq3|rq4|rq5|fig1|beyond|assumptions|recipe`: the paper's questions, and others beyond."""

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from unveil.cli.loop import rq5
from unveil.cli.options import (
    CHOICES,
    FITS,
    LogOptions,
    Overwrite,
    TitleIds,
    Titles,
    WorkerOptions,
    named_in,
    numbers_in,
    option,
    set_option,
)
from unveil.cli.terminal import run_study, until_stopped
from unveil.errors import UnveilError
from unveil.studies import shipped

HELP = "The research questions of the paper, reproduced and compared with it; and others beyond it."

_SIZE, _WORLD, _TRAINING = "How much", "The world and its log", "Training and evaluation"
_AXES = "What is varied, one at a time"
#: The paper's severities.
ALONG = (1.0, 2.0, 3.0, 4.0)
_DEFAULTS = shipped("defaults")
_BEYOND = _DEFAULTS["beyond"]["estimators"]
_CHOICES, _PROPENSITIES = (_DEFAULTS["assumptions"][name] for name in ("choices", "propensities"))


def _option(about: str, panel: str | None = None, *names: str, **more: Any) -> Any:
    return option(about, *names, panel=panel, **more)


Severity = Annotated[float, _option("Exponent p of exposure, θ = ô^p; above 0.")]
Severities = Annotated[list[float] | None, _option("Exponent p of exposure; repeat for more. By default 1, 2, 3, 4.")]
Preset = Annotated[
    str, _option("converged (one backbone for all), quick, tuned, or paper (the authors' settings, one for each).")
]
Replicates = Annotated[int, _option("Repeat everything random; of worlds, only what is drawn from them.", _SIZE)]
Worlds = Annotated[int, _option("Number of worlds; several add their variance to the intervals.", _SIZE)]
Estimators = Annotated[
    str, _option("Which to train, with commas between; itps@popularity+clip=5% has settings of its own.", _SIZE)
]


@dataclass(frozen=True, kw_only=True)
class RunOptions(WorkerOptions):
    """Where results go, who does the work, and what all trainings share."""

    output: Annotated[Path, _option("Folder of the run: new, or one to continue.", None, "--output", "-o")]
    preset: Preset = "paper"
    replicates: Replicates = 5
    estimators: Estimators = "naive,ips,itps,ideal"
    negatives: Annotated[int, _option("Negatives drawn uniformly for each case.", _TRAINING)] = 100
    assignments: Annotated[list[str] | None, set_option("A setting of all, or of one (ips:NAME=VALUE).")] = None
    seed: Annotated[int, _option("Seed of everything random.")] = 0

    def settings(self) -> dict[str, Any]:
        own = ("output", "jobs", "engine", "address", "copy_from", "assignments", "estimators", "estimated")
        fields = {name: value for name, value in vars(self).items() if name not in own}
        if fields.get("epoch_by") == "interactions":  # "taken" is how results of earlier versions say it
            fields["epoch_by"] = "taken"
        return fields | {"changes": tuple(self.assignments or ()), "estimators": self.arms()}

    def arms(self) -> tuple[str, ...]:
        return named_in(self.estimators)


@dataclass(frozen=True, kw_only=True)
class StudyOptions(RunOptions):
    """The settings of a study on semi-synthetic data."""

    worlds: Worlds = 1
    copy_from: Annotated[Path | None, _option("Copy cells from another question's folder.", _SIZE, "--from")] = None
    data: Annotated[str, _option("A log with ratings, 'builtin', or the folder of a world.", _WORLD)] = "ml-100k"
    steps: Annotated[int, _option("Ratings of each user that a world is fitted to: the last T.", _WORLD)] = 100
    fit: Annotated[str, _option(FITS, _WORLD)] = "posterior"
    choice: Annotated[str, _option(f"How users choose: {CHOICES}", _WORLD)] = "rational_exposed"
    catalogue: Annotated[str, _option("Rank items of the drawn log (observed) or all (whole).", _WORLD)] = "observed"
    propensity: Annotated[str, _option("Propensity: true, noisy:SD, estimated, or a name.", _TRAINING)] = "true"
    clip: Annotated[float | None, _option("Clip θ from below; by default as the preset says.", _TRAINING)] = None
    foresight: Annotated[float, _option("How strongly exposure follows relevance, in logits.", _WORLD)] = 0.0
    epoch_by: Annotated[str, _option("The best epoch is chosen by: truth, or interactions.", _TRAINING)] = "truth"
    stars: Annotated[bool, _option("Round the ratings of drawn logs to 1 … 5.", _WORLD, "--stars")] = False
    impressions: Annotated[float, _option("Share of impressions without a click that logs have.", _WORLD)] = 0.1


@dataclass(frozen=True, kw_only=True)
class BeyondOptions(StudyOptions):
    """With defaults of its own, and the propensities that are estimated."""

    preset: Preset = "converged"
    worlds: Worlds = 3
    estimators: Annotated[str, _option("Which to train, once more with each of --estimated.", _SIZE)] = _BEYOND
    estimated: Annotated[
        str, _option("Propensities from the log, each one more arm (corrected@popularity); '' for none.", _SIZE)
    ] = "popularity"

    def arms(self) -> tuple[str, ...]:
        """Those that need a propensity stand once more for each that is estimated and of its kind."""
        from unveil.studies.arms import with_propensity

        names, sources = named_in(self.estimators), named_in(self.estimated)
        given = (with_propensity(name, source) for source in sources for name in names)
        return (*names, *(arm for arm in given if arm is not None))


@dataclass(frozen=True, kw_only=True)
class RecipeOptions(StudyOptions):
    """With the recipe's arms."""

    preset: Preset = "converged"
    estimators: Estimators = _DEFAULTS["recipe"]["estimators"]


@dataclass(frozen=True, kw_only=True)
class AssumptionOptions(StudyOptions):
    """The study at its base point, and the levels of each axis."""

    preset: Preset = "quick"
    replicates: Replicates = 3
    estimators: Estimators = _DEFAULTS["assumptions"]["estimators"]
    severity: Annotated[float, _option("Exponent p of exposure at the base point.")] = 1.0
    severities: Annotated[str, _option("Exponents p; '' does not vary them.", _AXES)] = "1,2,4"
    foresights: Annotated[str, _option("How far exposure follows relevance; '' does not vary it.", _AXES)] = "0,1,2"
    choices: Annotated[str, _option(f"How users choose: {CHOICES} '' does not vary it.", _AXES)] = _CHOICES
    propensities: Annotated[str, _option("Propensities; '' does not vary them.", _AXES)] = _PROPENSITIES

    def settings(self) -> dict[str, Any]:
        """Estimators are given their propensities by their arms."""
        axes: dict[str, Any] = {"choices": named_in(self.choices), "propensities": named_in(self.propensities)}
        axes |= {"severities": numbers_in(self.severities, "--severities") or (self.severity,)}
        axes |= {"foresights": numbers_in(self.foresights, "--foresights")}
        return super().settings() | axes | {"base_propensity": self.propensity, "propensity": "true"}


@dataclass(frozen=True, kw_only=True)
class RealOptions(RunOptions):
    """A real log, and whose settings its networks have."""

    data: Annotated[str, _option("ml-1m, ml-20m, beauty (a file put in place by hand), or any log.")]
    estimators: Annotated[
        str, _option("Which to train; θ is popularity unless named: corrected@joint.", _SIZE, "--estimators", "-e")
    ] = "naive,ips,itps"
    negatives: Annotated[int, _option("Drawn by popularity for each case, and as many uniformly.", _TRAINING)] = 100
    tuned_for: Annotated[str | None, _option("Settings for ml-1m, ml-20m or beauty; by default by size.")] = None
    min_item: Annotated[int | None, _option("Drop items with fewer interactions; by default 5.", _SIZE, min=0)] = None
    min_user: Annotated[int | None, _option("Then drop users with fewer; by default 5.", _SIZE, min=0)] = None


@dataclass(frozen=True, kw_only=True)
class UnbiasedOptions(RunOptions):
    """A log, and a test without exposure bias."""

    folder: Annotated[Path | None, typer.Argument(metavar="[DIR]", help="Folder of --data, if not fetched.")] = None
    data: Annotated[Literal["kuairec", "kuairand", "coat"] | None, _option("Known files and settings.")] = None
    log: Annotated[str | None, _option("The log to train on.")] = None
    test: Annotated[str | None, _option("Labelled test: user_id, item_id and, if known, label 0 or 1.")] = None
    candidates: Annotated[str | None, _option("Items to rank, one id a line; by default all.")] = None
    min_rating: Annotated[float | None, _option("Ratings from which an item is liked, in log and test.")] = None
    metric: Annotated[str | None, _option("NDCG@k, Recall@k, MAP@k or AUC; by default NDCG@10.")] = None
    preset: Preset = "quick"
    replicates: Replicates = 3
    estimators: Annotated[str, _option("Baselines and estimators; bert4rec is naive BERT4Rec.", _SIZE)] = _DEFAULTS[
        "unbiased"
    ]["estimators"]
    sizes: Annotated[str | None, _option("Users of slices for calibration; by default 10,30,100,140.", _SIZE)] = None

    def settings(self) -> dict[str, Any]:
        """Those of the data set, then those that are given; negatives there are none."""
        from unveil.studies.unbiased import settings_of

        if self.data is None and (self.log is None or self.test is None or self.folder is not None):
            raise UnveilError("nothing to train on or to test on", expected="--log and --test, or --data NAME DIR")
        given = {name: value for name, value in super().settings().items() if value is not None}
        if self.sizes is not None:
            given["sizes"] = numbers_in(self.sizes, "--sizes", int)
        known = {} if self.data is None else settings_of(self.data, self.folder)
        return {name: value for name, value in (known | given).items() if name not in ("negatives", "data", "folder")}


def rq1(*, options: StudyOptions, severity: Severity = 1.0) -> None:
    """How well does each estimator capture the true relevance? A stopped run continues with the same command."""
    _run("rq1", "RQ1", options, severity)


def rq2(*, options: StudyOptions, severity: Severities = None) -> None:
    """How robust is each estimator to increasing exposure bias?"""
    _run("rq2", "RQ2", options, *(severity or ALONG))


def rq3(*, options: StudyOptions, severity: Severity = 1.0) -> None:
    """How much does it matter to evaluate on true relevance? The trainings are those of rq1: --from copies them."""
    _run("rq3", "RQ3", options, severity)


def rq4(*, options: RealOptions) -> None:
    """How well does each estimator rank real interactions? A stopped run continues with the same command."""
    from unveil.studies.rq4 import RQ4

    with until_stopped(options.output):
        settings = options.settings()
        study = RQ4.of_log(log=settings.pop("data"), **settings)
    run_study(study, options.output, options.workers())


def beyond(*, options: BeyondOptions, severity: Severities = None) -> None:
    """What share of the gap from the naive to the ideal loss does each estimator of this package close?

    0% is a loss that takes every interaction at face value (naive), 100% one that knows the true relevance (ideal).
    By default these are 1,440 trainings; for a first look add --preset quick --worlds 1 --replicates 1 --severity 2.
    Trainings that rq2 has made with the same settings are copied with --from.
    """
    _run("beyond", "Beyond", options, *(severity or ALONG))


def recipe(*, options: RecipeOptions, severity: Severities = None) -> None:
    """Is the gain by the paper's recipe for real data (popularity^−exponent, popular negatives) a true one?"""
    _run("recipe", "Recipe", options, *(severity or ALONG))


def assumptions(*, options: AssumptionOptions) -> None:
    """Which estimator survives when exposure follows relevance, propensities are wrong, choice is by chance?"""
    _run("assumptions", "Assumptions", options)


def fig1(
    *,
    options: LogOptions,
    output: Annotated[Path, option("Folder to write: index.html, results.json, items.csv.", "--output", "-o")],
    titles: Titles = None,
    title_ids: TitleIds = None,
    items: Annotated[
        str | None, option("Ids or parts of titles to draw, groups after ;. By default the paper's.", metavar="A,B;C")
    ] = None,
    draws: Annotated[int, option("Orders drawn by static propensities without repeats; 0: no such test.", min=0)] = 50,
    seed: Annotated[int, option("Seed of these draws.", min=0)] = 0,
    overwrite: Overwrite = False,
) -> None:
    """Figure 1: do items have a typical place in histories? Box plots of some, and a test of all."""
    from unveil.runs.workers import Inline
    from unveil.studies.fig1 import Fig1

    study = Fig1(log=options.source(), titles=titles, title_ids=title_ids, items=items, draws=draws, seed=seed)
    run_study(study, output, Inline(), overwrite=overwrite)


def unbiased(*, options: UnbiasedOptions) -> None:
    """Which corrections help, and which harm, on a test without exposure bias? What does a small slice of it add?

    Known data: reproduce unbiased --data kuairec|kuairand|coat DIR. Any other: --log and --test.
    """
    from unveil.studies.unbiased import Unbiased

    run_study(Unbiased(**options.settings()), options.output, options.workers())


def _run(module: str, name: str, options: StudyOptions, *severities: float) -> None:
    """Run a study, each severity once and in order."""
    settings = options.settings() | ({"severities": tuple(sorted(set(severities)))} if severities else {})
    study = getattr(import_module(f"unveil.studies.{module}"), name)(**settings)
    run_study(study, options.output, options.workers(), copy_from=options.copy_from)


COMMANDS = (rq1, rq2, rq3, rq4, beyond, recipe, assumptions, fig1, rq5, unbiased)
