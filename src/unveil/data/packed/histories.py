"""The histories and filters of a log on the disk, a range of users at a time: each range is sorted in memory.

Shapes: N events of the range, B rows of a block, U users, M rows to drop.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from unveil.data.filters import Filters
from unveil.data.indexing import sorted_rows
from unveil.data.mapped import Bits, column_file
from unveil.data.packed.folder import HISTORIES, KINDS, Columns, Progress, column_path, rewritten
from unveil.data.vocabulary import Index, Vocabulary
from unveil.errors import UnveilError

#: Events of a range: with what sorting them takes, less than half a GiB. One user's are never divided.
RANGE = 1 << 22


@dataclass(frozen=True, eq=False)
class Range:
    """The histories of the users from `first` up to, not including, `last`: by user, then clock, then file order."""

    first: int
    last: int
    user_N: Index  # counted from `first`
    row_N: Index  # in the log
    columns: Mapping[str, NDArray[Any]]


def taken_by(role: Literal["user", "item"], columns: Columns, keep: Bits | None = None) -> NDArray[np.int64]:
    """How many of the rows that are kept and were taken each user or item has."""
    count = np.zeros(len(columns.users if role == "user" else columns.items), np.int64)
    for _, taken_B, (index_B,) in _kept(columns, [role], keep):
        count += np.bincount(index_B[taken_B], minlength=len(count))
    return count


def ranges(columns: Columns, roles: Sequence[str], length_U: NDArray[np.int64], keep: Bits | None) -> Iterator[Range]:
    """The histories of all users; `length_U` is what `taken_by` gives for the user."""
    offset_U1 = np.concatenate([[0], np.cumsum(length_U)])
    wanted = np.searchsorted(offset_U1, np.arange(0, offset_U1[-1] + RANGE, RANGE)).clip(max=len(length_U))
    for first, last in pairwise(np.unique(wanted).tolist()):
        yield _range(columns, roles, first, last, int(offset_U1[last] - offset_U1[first]), keep)


def _range(columns: Columns, roles: Sequence[str], first: int, last: int, size: int, keep: Bits | None) -> Range:
    clock = next((role for role in ("time", "step") if role in columns.roles), None)
    asked = list(dict.fromkeys(["user", *roles, *([clock] if clock else [])]))
    found = {role: np.empty(size, KINDS[role]) for role in asked}
    row_N, filled = np.empty(size, np.int32), 0
    for rows, taken_B, blocks in _kept(columns, asked, keep):
        at_M = np.flatnonzero(taken_B & (blocks[0] >= first) & (blocks[0] < last))
        inside = slice(filled, filled + len(at_M))
        for role, block in zip(asked, blocks, strict=True):
            found[role][inside] = block[at_M]
        row_N[inside] = at_M + rows.start
        filled += len(at_M)
    found["user"] -= first
    order_N = sorted_rows(found["user"], found[clock] if clock else None, last - first)
    ordered = {role: found[role][order_N] for role in roles}
    return Range(first, last, found["user"][order_N], row_N[order_N], ordered)


def _kept(
    columns: Columns, roles: Sequence[str], keep: Bits | None
) -> Iterator[tuple[slice, NDArray[np.bool_], list[NDArray[Any]]]]:
    """Blocks of rows, and which of them are kept and were taken."""
    if keep is None:
        yield from columns.taken(*roles)
        return
    for (rows, taken_B, found), (_, kept_B) in zip(columns.taken(*roles), keep, strict=True):
        yield rows, taken_B & kept_B, found


def lay_out(columns: Columns, folder: Path, progress: Progress) -> int:
    """Write the files of the histories, and give the number of steps T."""
    length_U = taken_by("user", columns)
    size = int(length_U.sum())
    if not size:
        raise UnveilError("there is no interaction in the log", hint="Check the files, or loosen the filters.")
    offset_U1 = np.concatenate([[0], np.cumsum(length_U)]).astype(np.int64)
    n_steps, own = int(length_U.max()), "step" in columns.roles
    parts = ranges(columns, ["item", "step"] if own else ["item"], length_U, None)
    with ExitStack() as files:
        item, step, event = (
            files.enter_context(column_file(folder / HISTORIES[name], np.int32, size))
            for name in ("item_N", "step_N", "event_N")
        )
        last_step = 0
        for part in progress.through("lay out", parts, size, lambda part: len(part.row_N)):
            step_N = part.columns["step"] if own else _aligned(part, offset_U1, n_steps)
            last_step = max(last_step, int(step_N.max(initial=0)))
            item(part.columns["item"])
            step(step_N)
            event(part.row_N)
    with column_file(folder / HISTORIES["offset_U1"], np.int64, len(offset_U1)) as offset:
        offset(offset_U1)
    return last_step + 1 if own else n_steps


def _aligned(part: Range, offset_U1: NDArray[np.int64], n_steps: int) -> NDArray[np.int64]:
    """Steps aligned at the end: every user's most recent event is at T − 1."""
    at_N = np.arange(len(part.row_N)) + offset_U1[part.first]
    return np.asarray(at_N - offset_U1[part.first + 1 : part.last + 1][part.user_N] + n_steps)


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
