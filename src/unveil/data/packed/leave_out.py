"""`Filters` for a log on the disk: the same rows are left out, with one bit for each row and a count for each id.

Shapes: N rows, B rows of a block, M rows to drop.
"""

from collections.abc import Callable
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from unveil.data.bits import Bits
from unveil.data.filters import Filters
from unveil.data.packed.columns import KINDS, Columns, column_path, rewritten
from unveil.data.packed.progress import Progress
from unveil.data.packed.ranges import ranges, taken_by
from unveil.data.vocabulary import Index, Vocabulary
from unveil.errors import UnveilError


def left_out(columns: Columns, filters: Filters, progress: Progress) -> Columns:
    """The log with only what passes, its files and vocabularies made smaller to fit."""
    keep = Bits(len(columns))
    keep.fill(lambda count: np.ones(count, np.bool_))
    drops = _drops(columns, keep, filters)
    for drop in progress.through("leave out", drops, len(drops), lambda _: 1):
        drop()
    if not keep.count():
        raise UnveilError("the filters leave nothing of the log", hint="Loosen them.")
    return _compact(columns, keep)


def _drops(columns: Columns, keep: Bits, filters: Filters) -> list[Callable[[], None]]:
    """What is to be done, in the order of `Filters`."""
    drops: list[Callable[[], None]] = []
    if filters.min_rating is not None:
        drops.append(partial(_drop_low_ratings, columns, keep, filters.min_rating))
    if filters.repeats != "keep":
        drops.append(partial(_drop_repeats, columns, keep, filters.repeats))
    return [*drops, partial(_drop_rare, columns, keep, filters)]


def _drop_low_ratings(columns: Columns, keep: Bits, least: float) -> None:
    """Where the log has what was left, what is rated too low is left as well: it was shown."""
    if "clicked" in columns.roles:
        rated = columns.blocks("clicked", "rating")
        liked = (clicked_B & (rating_B >= least) for _, (clicked_B, rating_B) in rated)
        rewritten(column_path(columns.folder, "clicked"), KINDS["clicked"], len(columns), liked)
        return
    for rows, (rating_B,) in columns.blocks("rating"):
        _narrow(keep, rows, rating_B >= least)


def _drop_repeats(columns: Columns, keep: Bits, repeats: Literal["first", "last"]) -> None:
    """Of several interactions of one user with one item only the first or the last stays, by time and file order."""
    for part in ranges(columns, ["item"], taken_by("user", columns, keep), keep):
        pair_N = part.user_N.astype(np.int64) * len(columns.items) + part.columns["item"]
        row_N = part.row_N
        if repeats == "last":
            pair_N, row_N = pair_N[::-1], row_N[::-1]
        again_N = np.ones(len(row_N), np.bool_)
        again_N[np.unique(pair_N, return_index=True)[1]] = False
        keep.clear(np.sort(row_N[again_N]))


def _drop_rare(columns: Columns, keep: Bits, filters: Filters) -> None:
    while True:
        before = keep.count()
        _drop_few(columns, keep, "item", filters.min_item)
        _drop_few(columns, keep, "user", filters.min_user)
        if keep.count() == before or not filters.iterate:
            return


def _drop_few(columns: Columns, keep: Bits, role: Literal["user", "item"], least: int) -> None:
    """Drop the rows whose user or item has fewer than `least` interactions."""
    enough = taken_by(role, columns, keep) >= least
    if not enough.all():
        for rows, (index_B,) in columns.blocks(role):
            _narrow(keep, rows, enough[index_B])


def _narrow(keep: Bits, rows: slice, passes_B: NDArray[np.bool_]) -> None:
    keep.change(rows, lambda kept_B: np.logical_and(kept_B, passes_B, out=kept_B))


def _compact(columns: Columns, keep: Bits) -> Columns:
    size = keep.count()
    users, user_place = _vocabulary(columns, "user", columns.users, keep)
    items, item_place = _vocabulary(columns, "item", columns.items, keep)
    places = {"user": user_place, "item": item_place}
    for role in columns.roles:
        kept = (block[kept_B] for (_, (block,)), (_, kept_B) in zip(columns.blocks(role), keep, strict=True))
        renumbered = (places[role][part] for part in kept) if role in places else kept
        rewritten(column_path(columns.folder, role), KINDS[role], size, renumbered)
    return Columns(columns.folder, columns.roles, users, items)


def _vocabulary(columns: Columns, role: str, ids: Vocabulary, keep: Bits) -> tuple[Vocabulary, Index]:
    """The ids that occur in what is kept, shown or taken, and the new place of each old one."""
    present = np.zeros(len(ids), np.bool_)
    for (_, (index_B,)), (_, kept_B) in zip(columns.blocks(role), keep, strict=True):
        present[index_B[kept_B]] = True
    place = np.cumsum(present, dtype=np.int32) - np.int32(1)
    return Vocabulary.of_sorted(ids.ids.gather(np.flatnonzero(present))), place
