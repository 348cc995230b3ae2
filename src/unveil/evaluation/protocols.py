"""Protocols: what each target is ranked against, everything or negatives that are drawn once and kept. Shapes: A cases
still short, B cases of a batch, C cases, N negatives (or events), R draws, V items."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from unveil.checksums import header, read_arrays
from unveil.data.indexing import Index
from unveil.data.interactions import Sequences
from unveil.data.mapped import Streamed, kept, release, walked, write_arrays
from unveil.data.splits import EvalCases
from unveil.errors import UnveilError
from unveil.wording import quantity

Cells = tuple[NDArray[np.int64], NDArray[np.int64]]  # cells (row of the batch, item), as two arrays of the same length


def seen_cells(sequences: Sequences, user_B: NDArray[Any], seen_B: NDArray[Any]) -> Cells:
    """The items among the first `seen_B` events of each user, however far back they lie; repeats stay repeats."""
    row_N = np.repeat(np.arange(len(user_B)), seen_B)
    nth_N = np.arange(len(row_N)) - np.repeat(np.cumsum(seen_B) - seen_B, seen_B)
    return row_N, sequences.storage.item_N[sequences.first_U[user_B][row_N] + nth_N].astype(np.int64)


def no_cells() -> Cells:
    """Nothing seen, or nothing that matters."""
    return np.zeros(0, np.int64), np.zeros(0, np.int64)


CELLS = 2**22  # cells of a cases × items table held at once: 4 MiB as booleans, 32 MiB as floats

Barred = Callable[[slice], NDArray[np.bool_]]


def draw(weight_V: NDArray[Any], n: int, barred: Barred, n_cases: int, rng: np.random.Generator) -> Index:
    """negative_CN: for each case n different items, none of them barred, one after the other with P(i) ∝ `weight_V`.

    `barred(slice)` gives barred_CV of some of the cases. Very many negatives are kept on the disk, in a temporary file.
    """
    step = max(1, CELLS // len(weight_V))
    parts = (slice(start, min(start + step, n_cases)) for start in range(0, n_cases, step))

    def drawn() -> Iterator[Index]:
        for part in parts:
            barred_CV = barred(part)
            _check_enough(n, weight_V > 0, barred_CV, part.start)
            negative_CN, found_C = _by_rejection(weight_V, n, barred_CV, rng)
            _by_gumbel(weight_V, negative_CN, found_C, barred_CV, rng)
            yield negative_CN

    return kept(drawn(), (n_cases, n), np.int32)


def _by_rejection(
    weight_V: NDArray[Any], n: int, barred_CV: NDArray[np.bool_], rng: np.random.Generator
) -> tuple[Index, NDArray[np.int64]]:
    """Draw with replacement and skip what is barred or already there: distributed as without replacement. 2n draws
    are enough for most cases; `found_C`: how many negatives each case has so far."""
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
    """Complete the rows that rejection left short: the largest of log weight + Gumbel noise among what remains. Sorted
    by that key, items stand in the order of successive draws without replacement (the Gumbel top-k trick)."""
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


def _check_enough(n: int, drawable_V: NDArray[np.bool_], barred_CV: NDArray[np.bool_], first: int) -> None:
    left_C = drawable_V.sum() - (barred_CV & drawable_V).sum(axis=1)
    if len(left_C) and left_C.min() < n:
        raise UnveilError(
            "more negatives than items",
            where=f"case {first + int(left_C.argmin())}",
            found=f"{quantity(n, 'negative')} required, {quantity(int(left_C.min()), 'item')} to draw from",
            expected="at least as many items, without the target and what the user has seen, as negatives",
            hint=f"Ask for at most {quantity(int(left_C.min()), 'negative')}, or rank against all items.",
        )


FULL = "full"
USUAL = 100  # negatives of a case, where there are so many to draw from


@dataclass(frozen=True, eq=False)
class Candidates:
    """The protocols of one set of cases, side by side: full ranking, and rankings against fixed negatives.

    A negative is never the target, and with `exclude_seen` never an item of the case's own context, nor do seen items
    compete in the full ranking; the target always competes. BERT4Rec and the paper leave out everything a user ever
    met: for the last event of a history the same, for an earlier one a look into the future, which is not done here.
    """

    negatives: Mapping[str, Index]  # protocol → negative_CN
    exclude_seen: bool
    cases: str  # fingerprint of the cases that these belong to

    @classmethod
    def draw(
        cls,
        cases: EvalCases,
        sequences: Sequences,
        count_V: NDArray[Any],
        *,
        uniform: int = 100,
        popular: int = 100,
        exclude_seen: bool = True,
        seed: int = 0,
    ) -> Self:
        """Draw `uniform` negatives with equal probabilities and `popular` ones ∝ training count, without replacement. 0
        leaves one out. Too few items to draw from is an error; see `most_negatives`."""
        barred = partial(_barred, cases, sequences, exclude_seen=exclude_seen)
        weights = (("uniform", uniform, np.ones(sequences.n_items)), ("popular", popular, count_V))
        negatives = {
            f"{name}-{n}": draw(weight_V, n, barred, len(cases), np.random.default_rng([seed, stream]))
            for stream, (name, n, weight_V) in enumerate(weights)
            if n
        }
        return cls(negatives, exclude_seen, case_fingerprint(cases, sequences.n_items))

    @property
    def protocols(self) -> tuple[str, ...]:
        return (FULL, *self.negatives)

    def fingerprint(self) -> str:
        """A hash of cases and negatives: results can be compared only where it is the same."""
        digest = sha256(f"{self.cases} {self.exclude_seen}".encode())
        for name, negative_CN in self.negatives.items():
            digest.update(name.encode())
            for part in walked(negative_CN):
                digest.update(np.ascontiguousarray(part).data)
        return digest.hexdigest()

    def save(self, path: Path) -> None:
        about = {"cases": self.cases, "exclude_seen": self.exclude_seen, "order": list(self.negatives)}
        arrays = {name: Streamed.of(negative_CN) for name, negative_CN in self.negatives.items()}
        write_arrays(path, arrays, header(self.negatives, about))

    @classmethod
    def load(cls, path: Path, cases: EvalCases, sequences: Sequences) -> Self:
        from safetensors import SafetensorError

        try:
            arrays, about = read_arrays(path)
            negatives = {name: arrays[name] for name in about["order"]}
        except FileNotFoundError as error:
            raise UnveilError("no such file", where=path) from error
        except (SafetensorError, KeyError, OSError, ValueError) as error:
            raise UnveilError("not a file of negatives, or a damaged one", where=path) from error
        if about["cases"] != case_fingerprint(cases, sequences.n_items):
            hint = "Draw them anew, or use the log and split that they were drawn for."
            raise UnveilError("these negatives belong to other cases", where=path, hint=hint)
        return cls(negatives, about["exclude_seen"], about["cases"])


def most_negatives(
    cases: EvalCases, sequences: Sequences, count_V: NDArray[Any], *, exclude_seen: bool = True
) -> dict[str, int]:
    """The largest numbers of uniform and popular negatives that every case can be given."""
    left = {"uniform": sequences.n_items, "popular": sequences.n_items}
    step = max(1, CELLS // sequences.n_items)
    for start in range(0, len(cases), step):
        free_CV = ~_barred(cases, sequences, slice(start, start + step), exclude_seen=exclude_seen)
        left["uniform"] = min(left["uniform"], int(free_CV.sum(axis=1).min()))
        left["popular"] = min(left["popular"], int((free_CV & (count_V > 0)).sum(axis=1).min()))
    return left


def usual_negatives(
    cases: EvalCases, sequences: Sequences, count_V: NDArray[Any], *, exclude_seen: bool = True, wanted: int = USUAL
) -> dict[str, int]:
    """As many of each kind as wanted, or the most that there are; they are counted only where it can matter."""
    if int((count_V > 0).sum()) - int(cases.seen_C.max(initial=0)) - 1 >= wanted:
        return {"uniform": wanted, "popular": wanted}
    most = most_negatives(cases, sequences, count_V, exclude_seen=exclude_seen)
    return {name: min(wanted, left) for name, left in most.items()}


def case_fingerprint(cases: EvalCases, n_items: int) -> str:
    """A hash of the cases: users, targets, steps, lengths of context, size of the catalogue."""
    digest = sha256(str(n_items).encode())
    for column_C in (cases.user_C, cases.item_C, cases.step_C, cases.seen_C):
        digest.update(np.ascontiguousarray(column_C, np.int32).data)
    return digest.hexdigest()


def _barred(cases: EvalCases, sequences: Sequences, part: slice, *, exclude_seen: bool) -> NDArray[np.bool_]:
    user_C, item_C, seen_C = cases.user_C[part], cases.item_C[part], cases.seen_C[part]
    barred_CV = np.zeros((len(item_C), sequences.n_items), np.bool_)
    barred_CV[np.arange(len(item_C)), item_C] = True
    if exclude_seen:
        barred_CV[seen_cells(sequences, user_C, seen_C)] = True
        release(sequences.storage.item_N)
    return barred_CV
