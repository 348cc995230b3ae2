"""Histories of a log on the disk, a range of users at a time: every range is sorted in memory, none is large.

The columns are gone through once for each range, and only the rows of its users are kept: nothing is spilled.

Shapes: N events of the range, B rows of a block, U users.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from unveil.data.bits import Bits
from unveil.data.indexing import sorted_rows
from unveil.data.packed.columns import KINDS, Columns
from unveil.data.vocabulary import Index

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
