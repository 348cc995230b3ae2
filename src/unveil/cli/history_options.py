"""The options of a command that takes a log of histories beside a model."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from unveil.cli.grouped import takes
from unveil.cli.log_options import Encoding, Format, ItemColumn, Query, TimeColumn, TimeUnit, UserColumn, settings_of
from unveil.errors import UnveilError

if TYPE_CHECKING:
    from unveil.data.filters import LogSource


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
