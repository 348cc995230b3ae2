"""How small tables are learnt: batches dealt over and over, and Adam on their losses."""

from collections.abc import Iterable, Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import Parameter

#: The share of all batches in which the rate rises; it falls in the others.
_RISING = 0.2


def dealt(size: int, batch: int, batches: int, rng: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """Batches of all places below `size` in random order, over and over."""
    every = -(-size // batch)
    for nth in range(batches):
        if nth % every == 0:
            parts = np.array_split(rng.permutation(size), every)
        yield parts[nth % every]


def descend(learnt: list[Parameter], losses: Iterable[Tensor], *, batches: int, lr: float) -> None:
    """Adam with a rate that rises and falls, over so many losses; each is formed by what was learnt before it."""
    adam = torch.optim.Adam(learnt, lr=lr)
    pace = torch.optim.lr_scheduler.OneCycleLR(adam, lr, total_steps=batches + 1, pct_start=_RISING)
    for loss in losses:
        adam.zero_grad()
        torch.autograd.backward(loss)
        adam.step()
        pace.step()
