"""Raw ids ↔ dense indices, and rows → the order of histories; in blocks, which stay in the processor's cache.

Raw ids are strings and stay as they were written: `0104257` keeps its zero.
Shapes: N rows, B rows of one block, R runs of rows of one user, U users.
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unveil.data.mapped import release
from unveil.errors import UnveilError
from unveil.wording import quantity

Index = NDArray[np.int32]

UNKNOWN = -1


class Vocabulary:
    """An immutable set of raw ids, sorted by code point, whatever the file's order; the place of an id is its index."""

    def __init__(self, ids: Iterable[str]) -> None:
        series = ids if isinstance(ids, pl.Series) else pl.Series("id", list(ids), dtype=pl.String)
        self.ids: pl.Series = series.unique().sort().alias("id")

    @classmethod
    def of_sorted(cls, ids: pl.Series) -> Self:
        """The vocabulary of different ids that are in order already; nothing is copied."""
        vocabulary = cls.__new__(cls)
        vocabulary.ids = ids.alias("id")
        return vocabulary

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index: int) -> str:
        return str(self.ids[index])

    def __contains__(self, raw: object) -> bool:
        return isinstance(raw, str) and self.find(raw) != UNKNOWN

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and self.ids.equals(other.ids)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ", ".join(self.ids.head(3)) + (", …" if len(self) > 3 else "")
        return f"Vocabulary({quantity(len(self), 'id')}: {shown})"

    def index(self, raw: Sequence[str] | pl.Series) -> Index:
        """Dense indices of raw ids, `UNKNOWN` (−1) where an id is not in the vocabulary."""
        given = pl.DataFrame({"id": raw}, schema={"id": pl.String})
        found = given.join(self._places, on="id", how="left", maintain_order="left")["place"]
        return found.fill_null(UNKNOWN).to_numpy().astype(np.int32)

    def find(self, raw: str) -> int:
        """The dense index of one id, by halving: `index` goes through the whole vocabulary every time."""
        place = int(self.ids.search_sorted(raw))
        return place if place < len(self) and self.ids[place] == raw else UNKNOWN

    def raw(self, index: Index) -> pl.Series:
        """Raw ids of dense indices."""
        return self.ids.gather(index)

    @cached_property
    def _places(self) -> pl.DataFrame:
        return pl.DataFrame({"id": self.ids, "place": np.arange(len(self), dtype=np.int32)})


Rows = NDArray[np.int64]
Scalar = TypeVar("Scalar", bound=np.generic)
A = TypeVar("A")
B = TypeVar("B")

_BLOCK = 1 << 17
_KEY_BITS = 63


def indexed(raw: pl.Series) -> tuple[Index, Vocabulary]:
    """Dense indices of a column of raw ids, and the vocabulary they index into."""
    found = _whole_numbers(raw)
    if found is None:  # numbered as they come
        coded = raw.cast(pl.Categorical(pl.Categories.random()))
        different = coded.unique()
        found = coded.to_physical().to_numpy(), different.to_physical().to_numpy(), different.cast(pl.String)
    code_N, codes, ids = found
    place, vocabulary = in_order(codes, ids)
    return gathered(place, code_N), vocabulary


def side_by_side(work: Callable[[A], B], parts: Iterable[A]) -> list[B]:
    """The results of NumPy work on several parts, done on two cores."""
    with ThreadPoolExecutor(2) as pool:  # NumPy sorts and gathers outside of Python's lock
        return list(pool.map(work, parts))


def counted(index_N: NDArray[Any], size: int) -> NDArray[np.int64]:
    """How often each index from 0 to `size` − 1 occurs."""
    block = max(_BLOCK, size)
    parts = (np.bincount(index_N[n : n + block], minlength=size) for n in range(0, len(index_N), block))
    return sum(parts, start=np.zeros(size, np.int64))


def gathered(values: NDArray[Scalar], row_N: NDArray[Any]) -> NDArray[Scalar]:
    """The values at these rows; of a column on the disk, no more is held at once than a block touches."""
    result = np.empty((len(row_N), *values.shape[1:]), values.dtype)
    for n in range(0, len(row_N), _BLOCK):
        result[n : n + _BLOCK] = values[row_N[n : n + _BLOCK]]
        release(values)
    return result


def sorted_rows(user_N: Index, clock_N: NDArray[Any] | None, n_users: int) -> Index:
    """Row numbers by user, then clock; ties stay in the order of the rows."""
    row_N, offset_U1 = _grouped(user_N, n_users)
    if clock_N is None:
        return row_N
    edges = np.unique(np.searchsorted(offset_U1, np.arange(0, len(row_N) + _BLOCK, _BLOCK)).clip(max=n_users))

    def sort_block(edge: int) -> None:
        first, last = edges[edge], edges[edge + 1]
        block = slice(offset_U1[first], offset_U1[last])
        row_B = row_N[block]
        row_N[block] = row_B[_by_clock(clock_N[row_B], np.diff(offset_U1[first : last + 1]))]

    side_by_side(sort_block, range(len(edges) - 1))
    return row_N


def _whole_numbers(raw: pl.Series) -> tuple[NDArray[Any], NDArray[Any], pl.Series] | None:
    """Codes of rows, different codes and their ids, where all ids are plain decimal numbers: their own codes."""
    if raw.head(1000).cast(pl.UInt32, strict=False).null_count():
        return None
    numbers = raw.cast(pl.UInt32, strict=False)
    if numbers.null_count() or int(numbers.max() or 0) > 4 * len(raw) + 1_000_000:  # type: ignore[arg-type]
        return None
    number_N = numbers.to_numpy()
    count = counted(number_N, int(number_N.max(initial=0)) + 1)
    present = np.flatnonzero(count)
    ids = pl.Series(present).cast(pl.String)
    # Any other spelling of a number (a leading zero, sign or blank) is longer: if the lengths add up, all are plain.
    same = int(raw.str.len_bytes().sum()) == int((ids.str.len_bytes().to_numpy() * count[present]).sum())
    return (number_N, present, ids) if same else None


def in_order(codes: NDArray[Any], ids: pl.Series) -> tuple[Index, Vocabulary]:
    """The place of each code in the sorted vocabulary of `ids`, which are different; `codes` are theirs."""
    order = ids.arg_sort().to_numpy()
    place = np.zeros(int(codes.max(initial=0)) + 1, np.int32)
    place[codes[order]] = np.arange(len(ids), dtype=np.int32)
    return place, Vocabulary.of_sorted(ids.gather(order))


def _grouped(user_N: Index, n_users: int) -> tuple[Index, Rows]:
    """Row numbers by user, and where each user's begin. Whole runs of rows of one user are moved together."""
    start_R = np.flatnonzero(np.concatenate([[True], user_N[1:] != user_N[:-1]])[: len(user_N)])
    length_R = np.diff(np.append(start_R, len(user_N)))
    user_R = user_N[start_R]
    length_U = np.bincount(user_R, weights=length_R, minlength=n_users).astype(np.int64)
    order_R = _by_clock(user_R, np.array([len(user_R)]))
    start_R, length_R = start_R[order_R], length_R[order_R]
    row_N = np.repeat((start_R - (np.cumsum(length_R) - length_R)).astype(np.int32), length_R)
    for n in range(0, len(row_N), _BLOCK):
        row_N[n : n + _BLOCK] += np.arange(n, min(n + _BLOCK, len(row_N)), dtype=np.int32)
    return row_N, np.concatenate([[0], np.cumsum(length_U)])


def _by_clock(clock_B: NDArray[Any], length_U: NDArray[np.int64]) -> Rows:
    """Places in a block by user, then clock, then place; the users' rows lie end to end.

    One sort of one number a row, of 63 bits; where these do not suffice, a slower sort by columns.
    """
    if not len(clock_B):
        return np.zeros(0, np.int64)
    low, span = int(clock_B.min()), int(clock_B.max()) - int(clock_B.min())
    # The coarsest unit in which the clock, from its first moment on, loses nothing.
    unit = next(unit for unit in (1_000_000, 1_000, 1) if unit == 1 or not (clock_B % unit != clock_B[0] % unit).any())
    tick_bits = (span // unit).bit_length()
    place_bits = int(length_U.max()).bit_length()
    users = np.arange(len(length_U))
    if len(users).bit_length() + tick_bits + place_bits > _KEY_BITS or span.bit_length() > _KEY_BITS:
        return np.asarray(np.lexsort((clock_B, np.repeat(users, length_U))))
    first_B: Rows = np.repeat(np.cumsum(length_U) - length_U, length_U)
    key_B: Rows = np.repeat(users << tick_bits, length_U)
    key_B += (clock_B.astype(np.int64) - low) // unit
    key_B <<= place_bits
    key_B += np.arange(len(clock_B)) - first_B
    key_B.sort()
    return first_B + (key_B & ((1 << place_bits) - 1))


def read_ids(path: Path, kind: str) -> list[str]:
    """The ids in a file, one per line."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise UnveilError(f"cannot be read: {error.strerror}", where=path) from None
    except UnicodeDecodeError:
        raise UnveilError("not text in UTF-8", where=path, expected=f"one {kind} id per line") from None
    ids = [line.strip() for line in lines if line.strip()]
    if not ids:
        raise UnveilError("the file is empty", where=path, expected=f"one {kind} id per line")
    return ids
