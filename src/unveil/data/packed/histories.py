"""The histories and filters of a log on the disk: ranges of users, each a pass over the columns and a sort in memory.

Shapes: N events of the range, B rows of a block, U users, M rows to drop.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from unveil.data.filters import Filters
from unveil.data.indexing import sorted_rows
from unveil.data.mapped import Bits, column_file
from unveil.data.packed.log import HISTORIES, KINDS, Columns, Progress
from unveil.data.sequences import offsets
from unveil.data.vocabulary import Index, Vocabulary
from unveil.errors import UnveilError

RANGE = 1 << 22  # Events of a range: with what sorting them needs, less than half a GiB. One user's are never divided.


@dataclass(frozen=True, eq=False)
class Range:
    """The histories of the users from `first` up to, not including, `last`: by user, then clock, then file order."""

    first: int
    last: int
    user_N: Index  # counted from `first`
    row_N: Index  # in the log
    columns: Mapping[str, NDArray[Any]]


def interaction_counts(role: Literal["user", "item"], columns: Columns, keep: Bits | None = None) -> NDArray[np.int64]:
    """How many interactions each user or item has among the rows that are kept."""
    count = np.zeros(len(columns.users if role == "user" else columns.items), np.int64)
    for _, clicked_B, (index_B,) in _interactions(columns, [role], keep):
        count += np.bincount(index_B[clicked_B], minlength=len(count))
    return count


def ranges(columns: Columns, roles: Sequence[str], length_U: NDArray[np.int64], keep: Bits | None) -> Iterator[Range]:
    """The histories of all users; `length_U` is what `interaction_counts` gives for the user."""
    clock = next((role for role in ("time", "step") if role in columns.roles), None)
    needed = list(dict.fromkeys(["user", *roles, *([clock] if clock else [])]))
    offset_U1 = offsets(length_U)
    edges = np.searchsorted(offset_U1, np.arange(0, offset_U1[-1] + RANGE, RANGE)).clip(max=len(length_U))
    for first, last in pairwise(np.unique(edges).tolist()):
        size, filled = int(offset_U1[last] - offset_U1[first]), 0
        found, row_N = {role: np.empty(size, KINDS[role]) for role in needed}, np.empty(size, np.int32)
        for rows, clicked_B, blocks in _interactions(columns, needed, keep):
            at_M = np.flatnonzero(clicked_B & (blocks[0] >= first) & (blocks[0] < last))
            inside = slice(filled, filled + len(at_M))
            for role, block in zip(needed, blocks, strict=True):
                found[role][inside] = block[at_M]
            row_N[inside] = at_M + rows.start
            filled += len(at_M)
        found["user"] -= first
        order_N = sorted_rows(found["user"], found[clock] if clock else None, last - first)
        user_N, ordered = found["user"][order_N], {role: found[role][order_N] for role in roles}
        yield Range(first, last, user_N, row_N[order_N], ordered)


def _interactions(
    columns: Columns, roles: Sequence[str], keep: Bits | None
) -> Iterator[tuple[slice, NDArray[np.bool_], list[NDArray[Any]]]]:
    """Blocks of rows, and which of them are kept and are interactions: all, or those with `clicked`."""
    bits = None if keep is None else iter(keep)
    clicked = ["clicked"] if "clicked" in columns.roles else []
    for rows, blocks in columns.blocks(*roles, *clicked):
        clicked_B = blocks.pop() if clicked else np.ones(rows.stop - rows.start, np.bool_)
        yield rows, clicked_B if bits is None else clicked_B & next(bits)[1], blocks


def lay_out(columns: Columns, folder: Path, progress: Progress) -> int:
    """Write the files of the histories, as `Sequences.of` has them in memory, and give the number of steps T."""
    length_U = interaction_counts("user", columns)
    if not length_U.any():
        raise UnveilError("there is no interaction in the log", hint="Check the files, or loosen the filters.")
    offset_U1, n_steps, own_steps = offsets(length_U), int(length_U.max()), "step" in columns.roles
    size, last_step, names = int(offset_U1[-1]), 0, ("item_N", "step_N", "event_N")
    parts = ranges(columns, ["item", "step"] if own_steps else ["item"], length_U, None)
    with ExitStack() as files:
        append = {name: files.enter_context(column_file(folder / HISTORIES[name], np.int32, size)) for name in names}
        for part in progress.through("histories", parts, size, lambda part: len(part.row_N)):
            if own_steps:
                step_N = part.columns["step"]
            else:  # aligned at the end: every user's most recent event is at T − 1
                at_N = np.arange(len(part.row_N)) + offset_U1[part.first]
                step_N = at_N - offset_U1[part.first + 1 : part.last + 1][part.user_N] + n_steps
            last_step = max(last_step, int(step_N.max(initial=0)))
            for name, column_N in zip(names, (part.columns["item"], step_N, part.row_N), strict=True):
                append[name](column_N)
    with column_file(folder / HISTORIES["offset_U1"], np.int64, len(offset_U1)) as write:
        write(offset_U1)
    return last_step + 1 if own_steps else n_steps


def filter_columns(columns: Columns, filters: Filters, progress: Progress) -> Columns:
    """The log with only the rows that `Filters` keeps, with one bit a row; its files and vocabularies made smaller."""
    keep = Bits(len(columns))
    keep.fill(lambda count: np.ones(count, np.bool_))
    drops = (_drop_low_ratings, _drop_repeats, _drop_rare)
    for drop in progress.through("filter", drops, len(drops), lambda _: 1):
        drop(columns, keep, filters)
    if not keep.count():
        raise UnveilError("the filters leave nothing of the log", hint="Loosen them.")
    return _compact(columns, keep)


def _drop_low_ratings(columns: Columns, keep: Bits, filters: Filters) -> None:
    """Where the log has impressions without a click, what is rated too low becomes one: it was shown."""
    if filters.min_rating is None:
        return
    if "clicked" in columns.roles:
        rated = columns.blocks("clicked", "rating")
        liked = (clicked_B & (rating_B >= filters.min_rating) for _, (clicked_B, rating_B) in rated)
        columns.rewrite("clicked", len(columns), liked)
        return
    for rows, (rating_B,) in columns.blocks("rating"):
        with keep.open(rows) as kept_B:
            kept_B &= rating_B >= filters.min_rating


def _drop_repeats(columns: Columns, keep: Bits, filters: Filters) -> None:
    if filters.repeats == "keep":
        return
    for part in ranges(columns, ["item"], interaction_counts("user", columns, keep), keep):
        pair_N, row_N = part.user_N.astype(np.int64) * len(columns.items) + part.columns["item"], part.row_N
        if filters.repeats == "last":
            pair_N, row_N = pair_N[::-1], row_N[::-1]
        again_N = np.ones(len(row_N), np.bool_)
        again_N[np.unique(pair_N, return_index=True)[1]] = False
        keep.clear(np.sort(row_N[again_N]))


def _drop_rare(columns: Columns, keep: Bits, filters: Filters) -> None:
    minima: tuple[tuple[Literal["user", "item"], int], ...] = (("item", filters.min_item), ("user", filters.min_user))
    while True:
        before = keep.count()
        for role, least in minima:
            enough = interaction_counts(role, columns, keep) >= least
            if not enough.all():
                for rows, (index_B,) in columns.blocks(role):
                    with keep.open(rows) as kept_B:
                        kept_B &= enough[index_B]
        if keep.count() == before or not filters.iterate:
            return


def _compact(columns: Columns, keep: Bits) -> Columns:
    size, places = keep.count(), {}
    vocabularies = {"user": columns.users, "item": columns.items}
    for role, vocabulary in vocabularies.items():
        present = np.zeros(len(vocabulary), np.bool_)
        for (_, (index_B,)), (_, kept_B) in zip(columns.blocks(role), keep, strict=True):
            present[index_B[kept_B]] = True
        places[role] = np.cumsum(present, dtype=np.int32) - np.int32(1)
        vocabularies[role] = Vocabulary.of_sorted(vocabulary.ids.gather(np.flatnonzero(present)))
    for role in columns.roles:
        kept = (block[kept_B] for (_, (block,)), (_, kept_B) in zip(columns.blocks(role), keep, strict=True))
        columns.rewrite(role, size, (places[role][part] for part in kept) if role in places else kept)
    return Columns(columns.folder, columns.roles, vocabularies["user"], vocabularies["item"])
