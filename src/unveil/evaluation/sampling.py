"""Drawing negatives: without replacement, by weight, for many cases at once.

Shapes: A cases still short, C cases, N negatives, R draws, V items.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.data.mapped import kept
from unveil.data.vocabulary import Index
from unveil.errors import UnveilError
from unveil.wording import quantity

#: Cells of a cases × items table held at once: 4 MiB as booleans, 32 MiB as floats.
CELLS = 2**22

Barred = Callable[[slice], NDArray[np.bool_]]


def draw(weight_V: NDArray[Any], n: int, barred: Barred, n_cases: int, rng: np.random.Generator) -> Index:
    """negative_CN: for each case n different items, none of them barred, one after the other with P(i) ∝ `weight_V`.

    `barred(slice)` gives barred_CV of some of the cases; only a bounded number of them is asked for at once. Very many
    negatives are kept on the disk, in the folder for temporary files.
    """
    step = max(1, CELLS // len(weight_V))
    parts = (slice(start, min(start + step, n_cases)) for start in range(0, n_cases, step))
    drawn = (_draw(weight_V, n, barred(part), rng, first=part.start) for part in parts)
    return kept(drawn, (n_cases, n), np.int32)


def _draw(
    weight_V: NDArray[Any], n: int, barred_CV: NDArray[np.bool_], rng: np.random.Generator, *, first: int
) -> Index:
    _refuse_too_many(n, weight_V > 0, barred_CV, first)
    negative_CN, found_C = _by_rejection(weight_V, n, barred_CV, rng)
    _by_gumbel(weight_V, negative_CN, found_C, barred_CV, rng)
    return negative_CN


def _by_rejection(
    weight_V: NDArray[Any], n: int, barred_CV: NDArray[np.bool_], rng: np.random.Generator
) -> tuple[Index, NDArray[np.int64]]:
    """Draw with replacement and pass over what is barred or already there: the same law as without replacement.

    Cheap, and enough for most cases: 2n draws each. `found_C` says how many negatives each case has so far.
    """
    edge_V = np.cumsum(weight_V, dtype=np.float64)
    draw_CR = np.searchsorted(edge_V, rng.random((len(barred_CV), 2 * n)) * edge_V[-1], side="right")
    good_CR = ~np.take_along_axis(barred_CV, draw_CR, axis=1) & _first_time(draw_CR)
    place_CR = np.cumsum(good_CR, axis=1) - 1
    row_M, column_M = np.nonzero(good_CR & (place_CR < n))
    negative_CN = np.full((len(barred_CV), n), -1, np.int32)
    negative_CN[row_M, place_CR[row_M, column_M]] = draw_CR[row_M, column_M]
    return negative_CN, np.minimum(good_CR.sum(axis=1), n)


def _first_time(draw_CR: NDArray[Any]) -> NDArray[np.bool_]:
    """Which draws of a row did not come up earlier in the same row."""
    order_CR = np.argsort(draw_CR, axis=1, kind="stable")
    sorted_CR = np.take_along_axis(draw_CR, order_CR, axis=1)
    new_CR = np.ones(draw_CR.shape, np.bool_)
    new_CR[:, 1:] = sorted_CR[:, 1:] != sorted_CR[:, :-1]
    first_CR = np.empty_like(new_CR)
    np.put_along_axis(first_CR, order_CR, new_CR, axis=1)
    return first_CR


def _by_gumbel(
    weight_V: NDArray[Any],
    negative_CN: Index,
    found_C: NDArray[np.int64],
    barred_CV: NDArray[np.bool_],
    rng: np.random.Generator,
) -> None:
    """Complete the rows that rejection left short: the largest of log weight + Gumbel noise among what remains.

    Sorted by that key, items stand in the order of successive draws without replacement (the Gumbel top-k trick).
    """
    n, row_A = negative_CN.shape[1], np.flatnonzero(found_C < negative_CN.shape[1])
    closed_AV = barred_CV[row_A] | (weight_V == 0)
    there_A, place_A = np.nonzero(negative_CN[row_A] >= 0)
    closed_AV[there_A, negative_CN[row_A][there_A, place_A]] = True
    key_AV = np.log(np.maximum(weight_V, np.finfo(float).tiny)) + rng.gumbel(size=closed_AV.shape)
    key_AV[closed_AV] = -np.inf
    best_AN = np.argsort(-key_AV, axis=1)[:, :n]
    place_AN = found_C[row_A][:, None] + np.arange(best_AN.shape[1])
    a_M, n_M = np.nonzero(place_AN < n)
    negative_CN[row_A[a_M], place_AN[a_M, n_M]] = best_AN[a_M, n_M]


def _refuse_too_many(n: int, drawable_V: NDArray[np.bool_], barred_CV: NDArray[np.bool_], first: int) -> None:
    left_C = drawable_V.sum() - (barred_CV & drawable_V).sum(axis=1)
    if len(left_C) and left_C.min() < n:
        raise UnveilError(
            "more negatives than items",
            where=f"case {first + int(left_C.argmin())}",
            found=f"{quantity(n, 'negative')} asked for, {quantity(int(left_C.min()), 'item')} to draw from",
            expected="at least as many items, without the target and what the user has seen, as negatives",
            hint=f"Ask for at most {quantity(int(left_C.min()), 'negative')}, or rank against all items.",
        )
