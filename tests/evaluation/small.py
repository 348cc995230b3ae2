"""Small histories and scorers whose right answers are known by other means."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unveil.data.interactions import Sequences


def histories_of(*items: list[int], n_items: int) -> Sequences:
    """One history a list; steps count from 0 within each."""
    flat = np.array([item for history in items for item in history], np.int32)
    step = np.array([t for history in items for t in range(len(history))], np.int32)
    offset = np.concatenate([[0], np.cumsum([len(history) for history in items])]).astype(np.int64)
    event = np.arange(len(flat), dtype=np.int32)
    return Sequences(flat, step, event, None, offset, n_items=n_items, n_steps=int(step.max(initial=0)) + 1)


def random_histories(
    rng: np.random.Generator, *, n_users: int = 30, n_items: int = 40, longest: int = 12, repeats: bool = True
) -> Sequences:
    """Histories of 3 to `longest` events, early items more popular than late ones."""
    weight = 1.0 / np.arange(1, n_items + 1)
    lengths = rng.integers(3, longest + 1, n_users)
    drawn = [rng.choice(n_items, size=n, replace=repeats, p=weight / weight.sum()).tolist() for n in lengths]
    return histories_of(*drawn, n_items=n_items)


@dataclass(frozen=True, eq=False)
class Table:
    """score_i given history = the row of its most recent item; with few distinct values there are many ties."""

    value_VV: NDArray[np.float32]

    def scores(self, token_BL: Tensor) -> Tensor:
        return torch.from_numpy(self.value_VV)[token_BL[:, -2]]

    @classmethod
    def drawn(cls, rng: np.random.Generator, n_items: int, levels: int = 1000) -> "Table":
        return cls(rng.integers(0, levels, (n_items, n_items)).astype(np.float32))
