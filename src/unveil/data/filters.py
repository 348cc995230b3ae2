"""What to leave out of a log before it is used: low ratings, repeats, rare items, short histories."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from unveil.data.indexing import counted
from unveil.data.interactions import Interactions
from unveil.errors import UnveilError

Repeats = Literal["keep", "first", "last"]


@dataclass(frozen=True)
class Filters:
    """Applied in this order: rating, repeats, then items and users with too few interactions.

    One pass drops rare items and then short users, as the paper's data were made; `iterate` goes on until nothing
    more is dropped (a "k-core"). The default drops nothing, for files that are already prepared. Where the log
    also has what users left (`clicked` is False), only what they took is counted.
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
        left = _without_repeats(self._rated(log), self.repeats)
        return self._frequent(left).compact()

    def _rated(self, log: Interactions) -> Interactions:
        """Without the events that are rated too low; where a log has what was left, they are left: they were shown."""
        self.refuse_unfit(rated=log.rating is not None)
        if self.min_rating is None or log.rating is None:
            return log
        high = log.rating >= self.min_rating
        return log.where(high) if log.clicked is None else replace(log, clicked=log.clicked & high)

    def refuse_unfit(self, *, rated: bool) -> None:
        """Ratings cannot be compared where the log has none."""
        if self.min_rating is not None and not rated:
            raise UnveilError(
                "the log has no rating column",
                expected="ratings to compare with --min-rating",
                hint="Drop --min-rating.",
            )

    def _frequent(self, log: Interactions) -> Interactions:
        while True:
            left = _with_enough(_with_enough(log, "item", self.min_item), "user", self.min_user)
            if len(left) == len(log) or not self.iterate:
                return left
            log = left


def _with_enough(log: Interactions, column: Literal["user", "item"], least: int) -> Interactions:
    """Only the rows whose user or item has at least `least` interactions."""
    count = counted(getattr(log.interacted(), column), len(getattr(log, f"{column}s")))
    enough = count >= least
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
    kept = order[np.unique(pair, return_index=True)[1]]
    keep = np.zeros(len(log), bool) if log.clicked is None else ~log.clicked
    keep[kept] = True
    return log.where(keep)
