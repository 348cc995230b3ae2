"""Raw ids → dense indices, and rows → the order of histories. Written for tens of millions of rows.

Shapes: N rows, R runs, U users.
"""

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unveil.data.vocabulary import Index, Vocabulary

Rows = NDArray[np.int64]

_KEY_BITS = 63


def indexed(raw: pl.Series) -> tuple[Index, Vocabulary]:
    """Dense indices of a column of raw ids, and the vocabulary they index into."""
    return _of_whole_numbers(raw) or _of_text(raw)


def sorted_rows(user_N: Index, clock_N: NDArray[Any] | None, n_users: int) -> Rows:
    """Row numbers by user, then clock; ties stay in the order of the rows."""
    row_N = _grouped(user_N)
    if clock_N is None or not len(row_N):
        return row_N
    length_U = np.bincount(user_N, minlength=n_users)
    first_N = np.repeat(np.cumsum(length_U) - length_U, length_U)
    unit = _unit(clock_N)
    place_bits = int(length_U.max()).bit_length()
    tick_bits = ((int(clock_N.max()) - int(clock_N.min())) // unit).bit_length()
    if n_users.bit_length() + tick_bits + place_bits > _KEY_BITS:
        return _sorted_by_polars(user_N, clock_N)
    tick_N = (clock_N[row_N] - clock_N.min()) // unit
    key_N = np.repeat(np.arange(n_users, dtype=np.int64), length_U)
    for part_N, bits in ((tick_N, tick_bits), (np.arange(len(row_N)) - first_N, place_bits)):
        key_N <<= bits
        key_N |= part_N
    key_N.sort()
    key_N &= (1 << place_bits) - 1
    return row_N[first_N + key_N]


def _of_whole_numbers(raw: pl.Series) -> tuple[Index, Vocabulary] | None:
    """The same by way of a table, where all ids are plain decimal numbers: none with a leading zero, sign or blank.

    Another spelling of a number is longer than the plain one, so if the lengths add up, all are plain.
    """
    if raw.head(1000).cast(pl.UInt32, strict=False).null_count():
        return None
    numbers = raw.cast(pl.UInt32, strict=False)
    if numbers.null_count() or int(numbers.max() or 0) > 4 * len(raw) + 1_000_000:  # type: ignore[arg-type]
        return None
    number_N = numbers.to_numpy()
    count = np.bincount(number_N)
    present = np.flatnonzero(count)
    ids = pl.Series(present).cast(pl.String)
    if int(raw.str.len_bytes().sum()) != int((ids.str.len_bytes().to_numpy() * count[present]).sum()):
        return None
    place = np.zeros(len(count), np.int32)
    place[present[ids.arg_sort().to_numpy()]] = np.arange(len(present), dtype=np.int32)
    return place[number_N], Vocabulary(ids)


def _of_text(raw: pl.Series) -> tuple[Index, Vocabulary]:
    """Number the ids as they come, then renumber in the order of the vocabulary."""
    coded = raw.cast(pl.Categorical(pl.Categories.random()))
    code_N, different = coded.to_physical().to_numpy(), coded.unique()
    codes, ids = different.to_physical().to_numpy(), different.cast(pl.String)
    place = np.zeros(int(codes.max(initial=0)) + 1, np.int32)
    place[codes[ids.arg_sort().to_numpy()]] = np.arange(len(ids), dtype=np.int32)
    return place[code_N], Vocabulary(ids)


def _grouped(user_N: Index) -> Rows:
    """Row numbers by user, in the order of the rows: whole runs of one user are moved, since logs often have them."""
    if not len(user_N):
        return np.zeros(0, np.int64)
    start_R = np.flatnonzero(np.append(True, user_N[1:] != user_N[:-1]))
    length_R = np.diff(np.append(start_R, len(user_N)))
    bits = len(start_R).bit_length()
    key_R = (user_N[start_R].astype(np.int64) << bits) | np.arange(len(start_R))
    key_R.sort()
    order_R = key_R & ((1 << bits) - 1)
    start_R, length_R = start_R[order_R], length_R[order_R]
    return np.repeat(start_R - (np.cumsum(length_R) - length_R), length_R) + np.arange(len(user_N))


def _unit(clock_N: NDArray[Any]) -> int:
    """The coarsest unit in which the clock loses nothing."""
    first = clock_N.min()
    return next(unit for unit in (1_000_000, 1_000, 1) if unit == 1 or not ((clock_N - first) % unit).any())


def _sorted_by_polars(user_N: Index, clock_N: NDArray[Any]) -> Rows:
    keys = pl.DataFrame({"user": user_N, "clock": clock_N})
    row = keys.select(pl.arg_sort_by(keys.columns, maintain_order=True).alias("row"))["row"]
    return row.to_numpy().astype(np.int64)
