"""Options that several commands share: single ones as annotated types, groups of them as dataclasses."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

import typer

from unveil.errors import UnveilError

if TYPE_CHECKING:
    from unveil.data.filters import LogSource
    from unveil.runs.config import Experiment
    from unveil.runs.workers import Engine


def option(text: str, *names: str, panel: str | None = None, **more: Any) -> Any:
    """`typer.Option` with its help first: most options then fit on a line."""
    return typer.Option(*names, help=text, rich_help_panel=panel, **more)


def takes_options(command: Callable[..., None]) -> Callable[..., None]:
    """Replace each parameter whose type is a dataclass by one command-line option for each of its fields.

    Fields without a default, such as LOG, stand where the parameter stood; the others follow the command's own.
    """
    own = inspect.signature(command, eval_str=True).parameters.values()
    groups = {each.name: each.annotation for each in own if hasattr(each.annotation, "__dataclass_fields__")}
    spread = [each for one in own for each in (_parameters(one.annotation) if one.name in groups else [one])]
    late = {each.name for group in groups.values() for each in _parameters(group) if each.default is not each.empty}
    parameters = sorted(spread, key=lambda each: each.name in late)

    @wraps(command)
    def expanded(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        command(**given)

    expanded.__dict__["__signature__"] = inspect.Signature(parameters)
    expanded.__annotations__ = {each.name: each.annotation for each in parameters}
    return expanded


def _parameters(group: type[Any]) -> list[inspect.Parameter]:
    hints, kind = get_type_hints(group, include_extras=True), inspect.Parameter.KEYWORD_ONLY
    defaults = {each.name: getattr(group, each.name, inspect.Parameter.empty) for each in fields(group)}
    return [inspect.Parameter(name, kind, annotation=hints[name], default=defaults[name]) for name in defaults]


def set_option(text: str, metavar: str = "NAME=VALUE") -> Any:
    """The option --set, for `list[str] | None`."""
    return option(text, "--set", metavar=metavar)


_READING, _FILTERS, WORKERS = "Reading the log", "Filters (off by default)", "Workers"

Overwrite = Annotated[bool, option("Replace what is there.", "--overwrite")]
AsJson = Annotated[bool, option("Print JSON instead of a table.", "--json")]
Seed = Annotated[int, option("Seed of everything random.", min=0)]
Assignments = Annotated[list[str] | None, set_option("Change one setting, e.g. model.width=128.")]
World = Annotated[str | None, option("World that the log was drawn from: its folder, or 'builtin'.")]
LogFile = Annotated[Path, option("File: .csv, .tsv, .jsonl, .parquet, .inter; also .gz, .zst.", "--output", "-o")]
Titles = Annotated[Path | None, option("Item titles: movies.dat, u.item, or a CSV or TSV file of ids and titles.")]
TitleIds = Annotated[Path | None, option("Pairs of ids, the log's and the titles', if the log was renumbered.")]
_TEST = "A test that is not held out of the log"
LabelledFile = Annotated[str | None, option("Labelled test: user_id, item_id, label 0 or 1 if known.", panel=_TEST)]
CandidatesFile = Annotated[
    Path | None, option("Items to rank, one id a line; all items, or each user's labelled ones.", panel=_TEST)
]
SeenRows = Annotated[Literal["error", "skip", "keep"], option("Test rows of items in the user's history.", panel=_TEST)]

_SLICE = "A validation that is not held out of the log"
_VALIDATION = "Labelled test that chooses epoch and settings by training.monitor; never report on its users."

Jobs = Annotated[int | None, option("Worker processes; one per core by default.", panel=WORKERS, min=1)]
EngineOption = Annotated[
    Literal["processes", "ray"], option("Processes of this machine, or a Ray cluster.", "--engine", panel=WORKERS)
]
Address = Annotated[str | None, option("Ray cluster; by default one is started.", panel=WORKERS, metavar="HOST:PORT")]
#: Options that change no result, and so are no part of the command that reproduces it.
WORKER_OPTIONS = ("--jobs", "--workers", "--engine", "--address")


@dataclass(frozen=True)
class WorkerOptions:
    """Which processes work on a study."""

    jobs: Jobs = None
    engine: EngineOption = "processes"
    address: Address = None

    def workers(self) -> "Engine":
        from unveil.runs.workers import engine

        return engine(self.engine, self.jobs, self.address)


def _column(what: str, *, required: bool = False) -> Any:
    end = "" if required else ", 'none' to ignore it"
    return option(f"Column of {what}; by default found by its name{end}.", panel=_READING, metavar="NAME")


@dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    """How to read a log, under the names of `LogSource`; None: not given."""

    format: Annotated[str | None, option("Format of the log; detected by default.", panel=_READING)] = None
    user_col: Annotated[str | None, _column("user ids", required=True)] = None
    item_col: Annotated[str | None, _column("item ids", required=True)] = None
    time_col: Annotated[str | None, _column("timestamps")] = None
    time_unit: Annotated[str | None, option("s, ms, us, ns, iso or order; detected by default.", panel=_READING)] = None
    encoding: Annotated[str | None, option("Encoding of a text file; UTF-8 by default.", panel=_READING)] = None
    query: Annotated[str | None, option("SQL query that gives the rows of a database.", panel=_READING)] = None

    def settings(self) -> dict[str, Any]:
        """The options that were given; columns together."""
        given = {name: value for name, value in vars(self).items() if value is not None}
        columns = {name.removesuffix("_col"): given.pop(name) for name in list(given) if name.endswith("_col")}
        return given | ({"columns": columns} if columns else {})


@dataclass(frozen=True, kw_only=True)
class LogOptions(ReadingOptions):
    """A LOG as given on the command line; None: not given."""

    log: Annotated[str, typer.Argument(help="A file, a packed folder, the name of a data set, or a database URL.")]
    rating_col: Annotated[str | None, _column("ratings")] = None
    clicked_col: Annotated[str | None, _column("clicks (1 interaction, 0 impression without a click)")] = None
    exposed_col: Annotated[str | None, _column("whether the system showed the item")] = None
    propensity_col: Annotated[str | None, _column("logged exposure probabilities")] = None
    position_col: Annotated[str | None, _column("positions in the displayed list")] = None
    randomised_col: Annotated[str | None, _column("whether a random policy showed it")] = None
    step_col: Annotated[str | None, _column("time steps, counted from 0")] = None
    min_rating: Annotated[float | None, option("Drop lower ratings; of clicks: not clicked.", panel=_FILTERS)] = None
    min_item: Annotated[int | None, option("Drop items with fewer interactions.", panel=_FILTERS, min=0)] = None
    min_user: Annotated[int | None, option("Drop users with fewer interactions.", panel=_FILTERS, min=0)] = None
    iterate: Annotated[bool | None, option("Repeat both until nothing more is dropped.", panel=_FILTERS)] = None
    repeats: Annotated[
        Literal["keep", "first", "last"] | None,
        option("Repeated interactions of a user with an item: keep all, the first or the last.", panel=_FILTERS),
    ] = None

    def source(self) -> "LogSource":
        from unveil.data.filters import LogSource

        return LogSource(**self.settings())


@dataclass(frozen=True, kw_only=True)
class HistoryOptions(ReadingOptions):
    """A log of histories beside a model; None: not given."""

    histories: Annotated[str | None, option("Log of histories, in any format that LOG may have; new users too.")] = None

    def source(self) -> "LogSource | None":
        from unveil.data.filters import LogSource

        settings = self.settings()
        if self.histories is not None:
            return LogSource(settings.pop("histories"), **settings)
        if settings:
            raise UnveilError("options to read histories without histories", hint="Name them: --histories.")
        return None


@dataclass(frozen=True)
class TrainingOptions:
    """What to train and how; None: not given."""

    estimator: Annotated[
        str | None, option("naive, corrected, itps …: see docs/estimators; or your own.", "--estimator", "-e")
    ] = None
    model: Annotated[
        str | None, option("sasrec (default), bert4rec, gru4rec; ease, item-knn, markov …: docs/models.")
    ] = None
    preset: Annotated[
        str | None, option("auto (default: settings that suit the log), quick (to try things), converged or paper.")
    ] = None
    blend: Annotated[
        bool | None, option("Network and baselines score together, by validation (auto does).", "--blend/--no-blend")
    ] = None
    minutes: Annotated[float | None, option("Time to train, the last fit included; then the best so far counts.")] = (
        None
    )
    refit: Annotated[
        bool | None, option("After the evaluation, fit on all events what is served (auto does).", "--refit/--no-refit")
    ] = None
    start: Annotated[
        Path | None, option("Run whose settings and weights to go on from, with a newer log.", "--from", metavar="RUN")
    ] = None
    config: Annotated[Path | None, option("TOML file of settings; it may extend a preset.")] = None
    assignments: Assignments = None
    world: World = None
    seed: Annotated[int | None, option("Seed of everything random.")] = None
    validation: Annotated[str | None, option(_VALIDATION, panel=_SLICE)] = None
    validation_candidates: Annotated[Path | None, option("Items to rank there, one id a line.", panel=_SLICE)] = None
    device: Annotated[str | None, option("auto, cpu, cuda or mps.")] = None

    def experiment(self, log: LogOptions, begun: Path | None = None, default: str = "auto") -> "Experiment":
        """Those of the preset or the config, then options, then --set. A run that was begun goes on with its own where
        neither is named, and with its own network where none is: the defaults were others once."""
        from unveil.runs.config import Experiment
        from unveil.runs.run_folder import read_config
        from unveil.settings import parsed, plain

        if self.preset is not None and self.config is not None:
            hint = f'Write extends = "{self.preset}" at the head of the config.'
            raise UnveilError("a preset and a config were both given", expected="one of them", hint=hint)
        changes = {f"data.{name}": value for name, value in log.settings().items()}
        changes |= {"model.name": self.model, "estimator.name": self.estimator, "data.world": self.world}
        changes |= {"training.seed": self.seed, "training.device": self.device, "training.minutes": self.minutes}
        changes |= {"training.blend": self.blend, "training.refit": self.refit}
        candidates = self.validation_candidates
        changes |= {"evaluation.candidates": candidates and str(candidates), "evaluation.labelled": self.validation}
        changes = {name: value for name, value in changes.items() if value is not None}
        changes |= dict(map(parsed, self.assignments or ()))
        if self.start is not None:
            if self.config or self.preset:
                raise UnveilError("settings and a run to go on from", expected="one of them: a run has its settings")
            changes["training.start"] = str(self.start)
            begun = begun or self.start
        named, own = self.config or self.preset, None if begun is None else read_config(begun)
        if own is not None and named is None:
            return own.changed({"evaluation.uniform": None, "evaluation.popular": None, **changes})
        return Experiment.of(named or default, changes, None if own is None else plain(own.model)["name"])


FITS = "How worlds are fitted: posterior (keeps users different), regularised (predicts best) or paper (no penalty)."
CHOICES = (
    "rational_exposed (the best of what they see; the paper's), rational_all (the best of all), categorical_exposed "
    "(P ∝ γ among what they see) or categorical_all."
)


def named_in(text: str) -> tuple[str, ...]:
    """Names with commas between, each once."""
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def numbers_in(text: str, option: str, kind: type[float] = float) -> tuple[float, ...]:
    """Numbers with commas between, each once."""
    try:
        return tuple(dict.fromkeys(map(kind, named_in(text))))
    except ValueError:
        expected = f"{'whole ' * (kind is int)}numbers with commas between"
        raise UnveilError("not numbers", where=option, found=text, expected=expected) from None
