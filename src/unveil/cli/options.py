"""Options that several commands share: single ones as annotated types, groups as dataclasses."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from unveil.errors import UnveilError

if TYPE_CHECKING:
    from unveil.data.filters import LogSource


Command = Callable[..., None]


def takes(group: type[Any]) -> Callable[[Command], Command]:
    """Replace a command's `options: group` by one command-line parameter for each field of the group.

    The group's first field comes first, then the command's own parameters, then the rest of the group.
    """
    first, *rest = _parameters(group)

    def decorate(command: Command) -> Command:
        own = [parameter for parameter in _signature(command) if parameter.name != "options"]
        return _expanded(command, "options", group, [first, *own, *rest])

    return decorate


def takes_also(name: str, group: type[Any]) -> Callable[[Command], Command]:
    """Replace a command's parameter of that name by one for each field of the group, in its place."""

    def decorate(command: Command) -> Command:
        spread = [_parameters(group) if own.name == name else [own] for own in _signature(command)]
        return _expanded(command, name, group, [parameter for some in spread for parameter in some])

    return decorate


def _signature(command: Command) -> Sequence[inspect.Parameter]:
    return list(inspect.signature(command, eval_str=True).parameters.values())


def _expanded(command: Command, name: str, group: type[Any], parameters: Sequence[inspect.Parameter]) -> Command:
    """A command with these parameters, which hands those of the group to `command` as one."""

    @wraps(command)
    def expanded(**given: Any) -> None:
        gathered = group(**{field.name: given.pop(field.name) for field in fields(group)})
        command(**{name: gathered}, **given)

    expanded.__dict__["__signature__"] = inspect.Signature(parameters)
    expanded.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return expanded


def _parameters(group: type[Any]) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [_parameter(field, hints[field.name]) for field in fields(group)]


def _parameter(field: Field[Any], hint: object) -> inspect.Parameter:
    default = inspect.Parameter.empty if field.default is MISSING else field.default
    return inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)


PANEL = "Who does the work"


class EngineName(StrEnum):
    """What does the jobs of a grid."""

    processes = "processes"
    ray = "ray"


Jobs = Annotated[
    int | None,
    typer.Option(
        min=1, help="Worker processes, by default one a core; no figure depends on it.", rich_help_panel=PANEL
    ),
]
EngineOption = Annotated[
    EngineName, typer.Option("--engine", help="Processes of this machine, or a Ray cluster.", rich_help_panel=PANEL)
]
Address = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT", help="Where the Ray cluster is; without it, Ray runs here.", rich_help_panel=PANEL
    ),
]

#: Options that change no figure, and so are no part of the command that gives the same figures again.
OF_NO_CONSEQUENCE = ("--jobs", "--engine", "--address")


@dataclass(frozen=True)
class TrainingOptions:
    """What to train and how, as given on the command line; None: not given."""

    estimator: Annotated[
        str | None,
        typer.Option("--estimator", "-e", help="naive, ips, itps, corrected …: docs/estimators; or your own."),
    ] = None
    model: Annotated[str | None, typer.Option(help="bert4rec (if not given), sasrec or gru4rec.")] = None
    preset: Annotated[str | None, typer.Option(help="quick (if not given), paper or converged.")] = None
    config: Annotated[Path | None, typer.Option(help="A TOML file of settings; it may extend a preset.")] = None
    assignments: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Change one setting, e.g. model.width=128.")
    ] = None
    world: Annotated[
        str | None, typer.Option(help="Folder of the world the log was drawn from, or 'builtin': the truth is known.")
    ] = None
    seed: Annotated[int | None, typer.Option(help="Seed of everything random.")] = None
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda or mps.")] = None

    def named(self) -> dict[str, Any]:
        """The options that are settings, under the settings' names."""
        return {
            "model.name": self.model,
            "estimator.name": self.estimator,
            "data.world": self.world,
            "training.seed": self.seed,
            "training.device": self.device,
        }


_READING = "How to read the log"
_FILTERS = "What to leave out (nothing, unless asked)"
_COLUMN = "_col"


class Repeats(StrEnum):
    """What to do with a user's second interaction with one item."""

    keep = "keep"
    first = "first"
    last = "last"


def _column(what: str, *, needed: bool = False) -> Any:
    """The option that names a column, and says what is in it."""
    end = "" if needed else ", or 'none' to ignore it"
    return typer.Option(metavar="NAME", help=f"{what}; for a name that is not usual{end}.", rich_help_panel=_READING)


UserColumn = Annotated[str | None, _column("Column of the users' ids", needed=True)]
ItemColumn = Annotated[str | None, _column("Column of the items' ids", needed=True)]
TimeColumn = Annotated[str | None, _column("Column of times, read as --time-unit says")]
Format = Annotated[
    str | None,
    typer.Option(help="Name of the format; found by content where it is not given.", rich_help_panel=_READING),
]
TimeUnit = Annotated[
    str | None,
    typer.Option(help="s, ms, us, ns, iso or order; judged by size if not given.", rich_help_panel=_READING),
]
Encoding = Annotated[
    str | None, typer.Option(help="Encoding of a text file; UTF-8 if not given.", rich_help_panel=_READING)
]
Query = Annotated[
    str | None, typer.Option(help="SQL that gives the rows, for a database URL.", rich_help_panel=_READING)
]


@dataclass(frozen=True)
class LogOptions:
    """A LOG as given on the command line, under the names of `LogSource`; None: not given."""

    log: Annotated[
        str,
        typer.Argument(
            help="A file, a folder that `unveil data pack` wrote, the name of a data set (see `unveil data fetch`), "
            "or a database URL."
        ),
    ]
    format: Format = None
    user_col: UserColumn = None
    item_col: ItemColumn = None
    time_col: TimeColumn = None
    rating_col: Annotated[str | None, _column("Column of ratings")] = None
    clicked_col: Annotated[str | None, _column("Column of whether it was taken (1), or shown and left (0)")] = None
    exposed_col: Annotated[str | None, _column("Column of whether the system showed the item")] = None
    propensity_col: Annotated[str | None, _column("Column of the logged probability of being shown")] = None
    position_col: Annotated[str | None, _column("Column of the place in the list where it was shown")] = None
    randomised_col: Annotated[str | None, _column("Column of whether a random policy showed it")] = None
    step_col: Annotated[str | None, _column("Column of the event's own time step, counted from 0")] = None
    time_unit: TimeUnit = None
    encoding: Encoding = None
    query: Query = None
    min_rating: Annotated[
        float | None,
        typer.Option(
            help="Drop ratings below this; in a log with a clicked column they count as shown and left.",
            rich_help_panel=_FILTERS,
        ),
    ] = None
    min_item: Annotated[
        int | None, typer.Option(min=0, help="Drop items with fewer interactions.", rich_help_panel=_FILTERS)
    ] = None
    min_user: Annotated[
        int | None, typer.Option(min=0, help="Drop users with fewer interactions.", rich_help_panel=_FILTERS)
    ] = None
    iterate: Annotated[
        bool | None,
        typer.Option(help="Repeat both until nothing more is dropped; once, if not given.", rich_help_panel=_FILTERS),
    ] = None
    repeats: Annotated[
        Repeats | None, typer.Option(help="Of one user's interactions with one item keep…", rich_help_panel=_FILTERS)
    ] = None

    def settings(self) -> dict[str, Any]:
        """What was given, under the names of `LogSource`."""
        return settings_of(self)

    def source(self) -> "LogSource":
        """The log that was named."""
        from unveil.data.filters import LogSource

        return LogSource(**self.settings())


def settings_of(options: object) -> dict[str, Any]:
    """The options that were given, under the names of `LogSource`: the columns' together."""
    given = {name: value for name, value in vars(options).items() if value is not None}
    columns = {name.removesuffix(_COLUMN): value for name, value in given.items() if name.endswith(_COLUMN)}
    named = {name: value for name, value in given.items() if not name.endswith(_COLUMN)}
    return named | ({"columns": columns} if columns else {})


#: Decorates a command with the parameter `options: LogOptions`.
takes_log = takes(LogOptions)


Titles = Annotated[
    Path | None, typer.Option(help="Titles of the items: movies.dat, u.item, or a CSV file with an id and a title.")
]
TitleIds = Annotated[
    Path | None, typer.Option(help="Pairs of ids, the log's and the titles', where the log was renumbered.")
]


@dataclass(frozen=True)
class HistoryOptions:
    """Histories as given on the command line; None: not given."""

    histories: Annotated[
        str | None, typer.Option(help="Log of histories, of new users too: any that `unveil data describe` takes.")
    ] = None
    format: Format = None
    user_col: UserColumn = None
    item_col: ItemColumn = None
    time_col: TimeColumn = None
    time_unit: TimeUnit = None
    encoding: Encoding = None
    query: Query = None

    def source(self) -> "LogSource | None":
        """The log that was named, if one was."""
        from unveil.data.filters import LogSource

        settings = settings_of(self)
        log = settings.pop("histories", None)
        if log is None and settings:
            raise UnveilError("it was said how to read histories, and none are given", hint="Name them: --histories.")
        return None if log is None else LogSource(log, **settings)


#: Decorates a command with the parameter `options: HistoryOptions`.
takes_histories = takes(HistoryOptions)
