"""Placings: how often each item was shown, and clicked, at each position. Shapes: N rows, P placings, K positions."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from unveil.errors import UnveilError
from unveil.wording import quantity

Index = NDArray[np.int64]
Floats = NDArray[np.float64]

#: Positions that a message names one by one.
_NAMED = 5


@dataclass(frozen=True, eq=False)
class Placings:
    """A row for each pair of an item and a position that occurs; `place_P` is an index into `position_K`."""

    item_P: Index
    place_P: Index
    shown_P: Floats
    clicked_P: Floats
    position_K: Index

    @classmethod
    def of(cls, item_N: NDArray[Any], position_N: NDArray[Any], clicked_N: NDArray[np.bool_], deepest: int = 0) -> Self:
        """Count impressions; positions from `deepest` on are one position, unless it is 0."""
        position_K, place_N = np.unique(pooled(position_N, deepest), return_inverse=True)
        key_N = item_N.astype(np.int64) * len(position_K) + place_N
        key_P, pair_N = np.unique(key_N, return_inverse=True)
        item_P, place_P = np.divmod(key_P, len(position_K))
        shown_P, clicked_P = (summed(pair_N, each_N) for each_N in (np.ones(len(pair_N)), clicked_N))
        return cls(item_P, place_P, shown_P, clicked_P, position_K.astype(np.int64))

    def by_position(self) -> tuple[Floats, Floats]:
        """shown_K and clicked_K."""
        shown_K, clicked_K = (
            summed(self.place_P, each_P, len(self.position_K)) for each_P in (self.shown_P, self.clicked_P)
        )
        return shown_K, clicked_K

    def telling(self) -> Self:
        """Only the items that were clicked and shown at several positions: no other says anything of positions."""
        several_P = summed(self.item_P, np.ones(len(self.item_P)))[self.item_P] > 1
        if not several_P.any():
            raise UnveilError(
                "no item was shown at two positions: what the position does cannot be told from what the item does",
                found=f"{quantity(len(self.position_K), 'position')}, {quantity(len(self.item_P), 'item')}",
                expected="items that were shown at several positions",
            )
        keep_P = several_P & (summed(self.item_P, self.clicked_P)[self.item_P] > 0)
        if not keep_P.any():
            raise UnveilError(
                "no item that was shown at two positions was ever clicked: nothing tells what the position does"
            )
        return self._where(keep_P)

    def linked(self, wanted_K: NDArray[np.bool_]) -> Self:
        """The positions that items link, one with the next, and so can be compared; all `wanted_K` must be of them."""
        _, item_P = np.unique(self.item_P, return_inverse=True)
        K, V = len(self.position_K), int(item_P.max()) + 1
        edges = csr_array((np.ones(len(item_P)), (self.place_P, K + item_P)), shape=(K + V, K + V))
        part_K = connected_components(edges, directed=False)[1][:K]
        _, clicked_K = self.by_position()
        linked_K = part_K == summed(part_K, clicked_K).argmax()
        _refuse_apart(self.position_K[wanted_K & ~linked_K].tolist())
        kept = self._where(linked_K[self.place_P])
        return replace(kept, place_P=(np.cumsum(linked_K) - 1)[kept.place_P], position_K=self.position_K[linked_K])

    def counted(self, shown_P: Floats, clicked_P: Floats) -> Self:
        """The same with other counts; placings that were not shown are left out."""
        return replace(self, shown_P=shown_P, clicked_P=clicked_P)._where(shown_P > 0)

    def _where(self, keep_P: NDArray[np.bool_]) -> Self:
        columns = {name: getattr(self, name)[keep_P] for name in ("item_P", "place_P", "shown_P", "clicked_P")}
        return replace(self, **columns)


def _refuse_apart(apart: list[int]) -> None:
    if apart:
        named = ", ".join(map(str, apart[:_NAMED])) + ", …" * (len(apart) > _NAMED)
        raise UnveilError(
            "some positions share no clicked item with the others: they cannot be compared",
            found=f"position {named}",
            hint="Count all positions from N on as one: propensity.deepest=N, or --deepest N.",
        )


def pooled(position_N: NDArray[Any], deepest: int) -> NDArray[Any]:
    """Positions as they are told apart: those from `deepest` on are one, unless it is 0."""
    return np.minimum(position_N, deepest) if deepest else position_N


def summed(index: NDArray[Any], value: NDArray[Any], size: int = 0) -> Floats:
    """The sum of the values at each index from 0."""
    return np.asarray(np.bincount(index, weights=value, minlength=size), np.float64)
