"""What to leave out of a log before it is used; and a log as settings: where it is, how to read it, what to drop."""

from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from unveil.data.indexing import counted
from unveil.data.interactions import Interactions
from unveil.errors import UnveilError

Repeats = Literal["keep", "first", "last"]


@dataclass(frozen=True)
class Filters:
    """In this order: rating, repeats, then items and users with too few interactions. The default drops nothing.

    One pass drops rare items and then short users, as the paper's data were made; `iterate` goes on until nothing more
    is dropped (a "k-core"). Impressions without a click (`clicked` is False) are not counted.
    """

    min_rating: float | None = None
    min_item: int = 0
    min_user: int = 0
    iterate: bool = False
    repeats: Repeats = "keep"

    def __call__(self, log: Interactions) -> Interactions:
        """The log with only what passes, its vocabularies made smaller to fit."""
        if self == Filters():
            return log
        log = _without_repeats(self._rated(log), self.repeats)
        while True:
            left = _with_enough(_with_enough(log, "item", self.min_item), "user", self.min_user)
            if len(left) == len(log) or not self.iterate:
                return left.compact()
            log = left

    def _rated(self, log: Interactions) -> Interactions:
        """Without the events that are rated too low; in a log of impressions these become ones without a click."""
        self.check_ratings(rated=log.rating is not None)
        if self.min_rating is None or log.rating is None:
            return log
        high = log.rating >= self.min_rating
        return log.where(high) if log.clicked is None else replace(log, clicked=log.clicked & high)

    def check_ratings(self, *, rated: bool) -> None:
        """Ratings cannot be compared where the log has none."""
        if self.min_rating is not None and not rated:
            expected = "ratings to compare with --min-rating"
            raise UnveilError("the log has no rating column", expected=expected, hint="Drop --min-rating.")


def _with_enough(log: Interactions, column: Literal["user", "item"], least: int) -> Interactions:
    enough = counted(getattr(log.interacted(), column), len(getattr(log, f"{column}s"))) >= least
    return log if enough.all() else log.where(enough[getattr(log, column)])


def _without_repeats(log: Interactions, repeats: Repeats) -> Interactions:
    """Of several interactions of one user with one item keep the first or the last, by time and then file order."""
    if repeats == "keep":
        return log
    order = log.order()
    if log.clicked is not None:
        order = order[log.clicked[order]]
    pair = log.user[order].astype(np.int64) * len(log.items) + log.item[order]
    if repeats == "last":
        order, pair = order[::-1], pair[::-1]
    keep = np.zeros(len(log), bool) if log.clicked is None else ~log.clicked
    keep[order[np.unique(pair, return_index=True)[1]]] = True
    return log.where(keep)


@dataclass(frozen=True)
class LogSource:
    """A log as settings: a file, a packed folder, the name of a fetched data set or a database URL, how to read it and
    what to leave out; see `Interactions.read`, `Filters`."""

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
        """The log as it is; see `Interactions.read`. One of impressions without a click has no histories: an error."""
        how = {name: getattr(self, name) for name in ("columns", "time_unit", "encoding", "query")}
        log = Interactions.read(self.log, self.format, even_one=even_one, **how)
        if log.clicked is not None and len(log) and not log.clicked.any():
            found = f"all {len(log):,} rows are impressions without a click"
            hint = "Check which column says whether a row was clicked: 'clicked', or what --clicked-col names."
            raise UnveilError("nothing in the log was clicked", where=self.log, found=found, hint=hint)
        return log

    @property
    def filters(self) -> Filters:
        return Filters(self.min_rating, self.min_item, self.min_user, self.iterate, self.repeats)

    def load(self) -> Interactions:
        """The log less what the filters leave out. A packed log may not fit in memory, where they would put it."""
        log = self.read()
        if log.histories() is not None and self.filters != Filters():
            hint = "Leave the filters out, or pack the log again with them."
            raise UnveilError("a packed log was filtered when it was packed", where=self.log, hint=hint)
        return self.filters(log)
