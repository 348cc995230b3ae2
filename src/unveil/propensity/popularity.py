"""Popularity in the place of exposure: the paper's estimates from the training part (section 5.2).

Popularity is exposure × relevance: a proxy, and never to be called unbiased. Shapes: N events, M slots, V items,
T steps and C cells that occur.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from unveil.data.sequences import Sequences
from unveil.data.slots import Slots
from unveil.errors import UnveilError, refuse_unless
from unveil.propensity.base import Kind, Source, register


@dataclass
class Popularity:
    """Counts of what the model is trained on: the last `window` training events of each user (None: all).

    `add` is added to every count (α of add-α smoothing). Without it a cell that never occurs would get 0, which no
    propensity may be: it gets the estimate of the rarest cell that does occur. A slot of the training part always
    falls in a cell that occurs, so this floor never touches the paper's estimate there.
    """

    window: int | None = None
    add: float = 0.0

    name: ClassVar[str]
    source: ClassVar[Source] = "nothing"

    def __post_init__(self) -> None:
        refuse_unless(self.window is None or self.window >= 1, f"{self.name}.window", self.window, "at least 1")
        refuse_unless(0 <= self.add < float("inf"), f"{self.name}.add", self.add, "0 or more")

    def _counted(self, train: Sequences) -> Sequences:
        recent = train if self.window is None else train.recent(self.window)
        if not len(recent):
            raise UnveilError("popularity cannot be counted: the training part has no events")
        return recent


@register
@dataclass
class StaticPopularity(Popularity):
    """θ̂_i = Σ_t θ̂_it = count of item i / count of all interactions (eq. of θ̂_si), the same for all users."""

    name: ClassVar[str] = "popularity-static"
    kind: ClassVar[Kind] = "static"
    _theta_V: Tensor = field(init=False, repr=False)

    def fit(self, train: Sequences) -> Self:
        """Count."""
        count_V = self._counted(train).count_V + self.add
        count_V = np.maximum(count_V, count_V[count_V > 0].min())
        self._theta_V = torch.from_numpy((count_V / self._total(train)).astype(np.float32))
        return self

    def _total(self, train: Sequences) -> float:
        return len(self._counted(train)) + self.add * train.n_items

    def __call__(self, slots: Slots) -> Tensor:
        """θ̂_i of the slots' items."""
        return self._theta_V.to(slots.item_M.device)[slots.item_M]

    def of_all(self, slots: Slots) -> Tensor:
        """The same row for every slot, as a view."""
        return self._theta_V.to(slots.item_M.device).expand(len(slots), -1)


@register
@dataclass
class TemporalPopularity(Popularity):
    """θ̂_it = count of item i at step t / count of all interactions (eq. of θ̂_sit), the same for all users.

    With `half_width` h each count is spread over its step and the h steps on either side, in weights that fall
    linearly with the distance; what would fall off the ends stays within them, so no mass is lost. A step outside
    those that occur in training is read at the nearest one that does.
    """

    half_width: int = 0

    name: ClassVar[str] = "popularity-temporal"
    kind: ClassVar[Kind] = "temporal"
    _first: int = field(init=False, repr=False)
    _floor: float = field(init=False, repr=False)
    _theta_TV: Any = field(init=False, repr=False)  # sparse: θ̂ less what `add` alone gives
    _cell_C: NDArray[np.int64] = field(init=False, repr=False)  # t · V + i of each cell that occurs, in order

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse_unless(self.half_width >= 0, f"{self.name}.half_width", self.half_width, "0 or more")

    def fit(self, train: Sequences) -> Self:
        """Count, and spread over neighbouring steps."""
        counted = self._counted(train)
        occurring_TV = _occurring(counted)
        step = np.flatnonzero(np.diff(occurring_TV.indptr))
        self._first = int(step[0])
        occurring_TV = occurring_TV[self._first : int(step[-1]) + 1]
        steps, items = occurring_TV.shape
        count_TV = kernel(steps, self.half_width) @ occurring_TV
        total = len(counted) + self.add * steps * items
        self._theta_TV = count_TV.tocsr() / total
        self._theta_TV.sort_indices()
        self._cell_C = _cells(self._theta_TV)
        self._floor = self.add / total or float(self._theta_TV.data.min())
        return self

    def __call__(self, slots: Slots) -> Tensor:
        """θ̂_it of the slots' items at their own steps."""
        asked_M = self._rows(slots) * self._theta_TV.shape[1] + slots.item_M.cpu().numpy()
        at_M = np.searchsorted(self._cell_C[:-1], asked_M)  # the last stands for all beyond it
        theta_M = np.where(self._cell_C[at_M] == asked_M, self._theta_TV.data[at_M], 0.0)
        return self._completed(theta_M).to(slots.item_M.device)

    def of_all(self, slots: Slots) -> Tensor:
        """θ̂_it of all items at the slots' own steps."""
        row_T, nth_M = np.unique(self._rows(slots), return_inverse=True)
        theta_TV = self._completed(self._theta_TV[row_T].toarray())
        return theta_TV[torch.from_numpy(nth_M)].to(slots.item_M.device)

    def _rows(self, slots: Slots) -> NDArray[np.int64]:
        last = self._theta_TV.shape[0] - 1
        return np.asarray((slots.step_M.cpu().numpy() - self._first).clip(0, last))

    def _completed(self, theta: NDArray[np.float64]) -> Tensor:
        theta = theta + self._floor if self.add else np.where(theta > 0, theta, self._floor)
        return torch.from_numpy(theta.astype(np.float32))


def _occurring(counted: Sequences) -> Any:
    """How often each item occurs at each step, sparse; counted a block at a time, since events may lie on the disk."""
    count_TV = sparse.csr_matrix((counted.n_steps, counted.n_items), dtype=np.int64)
    for part in counted.blocks():
        one_B = np.ones(len(part), np.int64)
        count_TV = count_TV + sparse.csr_matrix((one_B, (part.step_N, part.item_N)), shape=count_TV.shape)
    return count_TV


def _cells(theta_TV: Any) -> NDArray[np.int64]:
    """The flat index of every stored cell, in the order of storage."""
    row_C = np.repeat(np.arange(theta_TV.shape[0]), np.diff(theta_TV.indptr))
    return np.asarray(row_C * theta_TV.shape[1] + theta_TV.indices, np.int64)


def kernel(steps: int, half_width: int) -> Any:
    """K_TT, sparse: K[t', t] ∝ 1 − |t' − t| / (h + 1), each column summing to one within the steps there are."""
    near = range(-min(half_width, steps - 1), min(half_width, steps - 1) + 1)
    height = [np.full(steps - abs(d), 1 - abs(d) / (half_width + 1)) for d in near]
    K_TT = sparse.diags(height, list(near), format="csr")
    return K_TT @ sparse.diags(1 / np.asarray(K_TT.sum(0)).ravel())
