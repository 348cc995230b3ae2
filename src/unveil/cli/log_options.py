"""The options of every command that takes a LOG, written once: where it is, how to read it, what to leave out."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unveil.cli.grouped import takes

if TYPE_CHECKING:
    from unveil.data.log_source import LogSource

_READING = "How to read the log"
_FILTERS = "What to leave out (nothing, unless asked)"
_COLUMN = "_col"


class Repeats(StrEnum):
    """What to do with a user's second interaction with one item."""

    keep = "keep"
    first = "first"
    last = "last"


Column = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Its name in the file, where not a usual one.", rich_help_panel=_READING),
]
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
    user_col: Column = None
    item_col: Column = None
    time_col: Column = None
    rating_col: Column = None
    clicked_col: Column = None
    exposed_col: Column = None
    propensity_col: Column = None
    position_col: Column = None
    randomised_col: Column = None
    step_col: Column = None
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
        from unveil.data.log_source import LogSource

        return LogSource(**self.settings())


def settings_of(options: object) -> dict[str, Any]:
    """The options that were given, under the names of `LogSource`: the columns' together."""
    given = {name: value for name, value in vars(options).items() if value is not None}
    columns = {name.removesuffix(_COLUMN): value for name, value in given.items() if name.endswith(_COLUMN)}
    named = {name: value for name, value in given.items() if not name.endswith(_COLUMN)}
    return named | ({"columns": columns} if columns else {})


#: Decorates a command with the parameter `options: LogOptions`.
takes_log = takes(LogOptions)
