"""Where a log is, how to read it and what to leave out, as settings: for configs and the command line alike."""

from dataclasses import dataclass, field

from unveil.data.filters import Filters, Repeats
from unveil.data.interactions import Interactions
from unveil.errors import UnveilError


@dataclass(frozen=True)
class LogSource:
    """A file, a packed folder, the name of a fetched data set or a database URL; see `Interactions.read`, `Filters`."""

    log: str = ""
    format: str | None = None
    columns: dict[str, str] = field(default_factory=dict)
    time_unit: str | None = None
    encoding: str = "utf-8"
    query: str | None = None
    min_rating: float | None = None
    min_item: int = 0
    min_user: int = 0
    iterate: bool = False
    repeats: Repeats = "keep"

    def read(self, *, even_one: bool = False) -> Interactions:
        """The log as it is; see `Interactions.read`. One in which all was left has no histories, and is refused."""
        log = Interactions.read(
            self.log,
            self.format,
            columns=self.columns,
            time_unit=self.time_unit,
            encoding=self.encoding,
            query=self.query,
            even_one=even_one,
        )
        if log.clicked is not None and len(log) and not log.clicked.any():
            raise UnveilError(
                "nothing in the log was taken",
                where=self.log,
                found=f"all {len(log):,} rows say that they were shown and left",
                hint="Check which column says whether a row was taken: 'clicked', or what --clicked-col names.",
            )
        return log

    @property
    def filters(self) -> Filters:
        """What to leave out."""
        return Filters(self.min_rating, self.min_item, self.min_user, self.iterate, self.repeats)

    def load(self) -> Interactions:
        """The log less what the filters leave out. A packed log may not fit in memory, where they would put it."""
        log = self.read()
        if log.histories() is not None and self.filters != Filters():
            hint = "Leave the filters out, or pack the log again with them."
            raise UnveilError("a packed log was filtered when it was packed", where=self.log, hint=hint)
        return self.filters(log)
