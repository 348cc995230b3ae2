"""What each target is ranked against: everything, and negatives drawn once and kept.

Shapes: C cases, N negatives, V items.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from unveil.data.mapped import Streamed, release, walked, write_arrays
from unveil.data.sequences import Sequences
from unveil.data.splits import EvalCases
from unveil.data.vocabulary import Index
from unveil.errors import UnveilError
from unveil.evaluation.sampling import CELLS, draw
from unveil.evaluation.seen import seen_cells

FULL = "full"
#: Negatives of a case, where there are so many to draw from.
USUAL = 100


@dataclass(frozen=True, eq=False)
class Candidates:
    """The protocols of one set of cases, side by side: full ranking, and rankings against fixed negatives.

    A negative is never the target, and with `exclude_seen` never an item of the case's own context. The protocol of
    BERT4Rec and of the paper leaves out everything a user ever met; for the last event of a history that is the same,
    for an earlier one it would look into the future, which is not done here. With `exclude_seen` seen items do not
    compete in the full ranking either; the target always competes, even one the user has met before. Where users come
    back to items as a matter of course, say `exclude_seen=False`.
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
        """Draw `uniform` negatives with equal probabilities and `popular` ones ∝ training count; 0 leaves one out.

        Without replacement within a case. An item that does not occur in training has no popularity and is never
        among the popular negatives. Too few items to draw from is an error; see `most_negatives`.
        """
        weights = {"uniform": (uniform, np.ones(sequences.n_items)), "popular": (popular, count_V)}
        negatives = {
            f"{name}-{n}": draw(
                weight_V,
                n,
                lambda part: _barred(cases, sequences, part, exclude_seen=exclude_seen),
                len(cases),
                np.random.default_rng([seed, stream]),
            )
            for stream, (name, (n, weight_V)) in enumerate(weights.items())
            if n
        }
        return cls(negatives, exclude_seen, case_fingerprint(cases, sequences.n_items))

    @property
    def protocols(self) -> tuple[str, ...]:
        """The names under which results are reported."""
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
        """Write the negatives to a file, for other models and runs to share."""
        about = {"cases": self.cases, "exclude_seen": self.exclude_seen, "order": list(self.negatives)}
        arrays = {name: Streamed.of(negative_CN) for name, negative_CN in self.negatives.items()}
        write_arrays(path, arrays, {"about": json.dumps(about)})

    @classmethod
    def load(cls, path: Path, cases: EvalCases, sequences: Sequences) -> Self:
        """Read what `save` wrote; refused where it was drawn for other cases."""
        negatives, about = _read(path)
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
    cases: EvalCases, sequences: Sequences, count_V: NDArray[Any], *, exclude_seen: bool = True
) -> dict[str, int]:
    """A hundred of each kind, or the most that there are; the exact count is made only where it can matter."""
    if int((count_V > 0).sum()) - int(cases.seen_C.max(initial=0)) - 1 >= USUAL:
        return {"uniform": USUAL, "popular": USUAL}
    most = most_negatives(cases, sequences, count_V, exclude_seen=exclude_seen)
    return {name: min(USUAL, left) for name, left in most.items()}


def case_fingerprint(cases: EvalCases, n_items: int) -> str:
    """A hash of what is asked: users, targets, steps, lengths of context, size of the catalogue."""
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
        release(sequences.lying.item_N)
    return barred_CV


def _read(path: Path) -> tuple[dict[str, Index], dict[str, Any]]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            about = json.loads((file.metadata() or {})["about"])
            return {name: file.get_tensor(name) for name in about["order"]}, about
    except FileNotFoundError as error:
        raise UnveilError("no such file", where=path) from error
    except (SafetensorError, KeyError, OSError, ValueError) as error:
        raise UnveilError("not a file of negatives, or a damaged one", where=path) from error
