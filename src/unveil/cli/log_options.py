"""The options of every command that takes a LOG, written once: where it is, how to read it, what to leave out."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unveil.cli.grouped import takes

if TYPE_CHECKING:
    from unveil.data.filters import LogSource

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
