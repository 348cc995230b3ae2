"""From scores to lists: how long they are, which items may stand in them, and what the novelty dial adds.

Shapes: B histories, K places, V items.
"""

from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from unveil.errors import UnveilError
from unveil.evaluation.ranking import top_items
from unveil.evaluation.seen import Cells


@dataclass(frozen=True, eq=False)
class Choice:
    """The k best of the items that are open, by score + shift; equal ones in the order of the vocabulary."""

    k: int
    open_V: Tensor | None = None  # True: may be listed; None: all may
    shift_V: Tensor | None = None

    def __call__(self, scores_BV: Tensor, barred: Cells) -> tuple[Tensor, Tensor]:
        """top_BK and the scores that put them there; `NOBODY` fills places for which no item is left."""
        if self.shift_V is not None:
            scores_BV = scores_BV + self.shift_V
        if self.open_V is not None:
            scores_BV = scores_BV.masked_fill(~self.open_V, -torch.inf)
        row_N, item_N = (torch.from_numpy(part) for part in barred)
        top_BK = top_items(scores_BV, self.k, (row_N, item_N))
        return top_BK, scores_BV.gather(1, top_BK.clamp_min(0))

    def unturned(self) -> Self:
        """Without the dial, which would leave nothing of scores that are popularity."""
        return replace(self, shift_V=None)


def refuse_beyond_catalogue(k: int, n_items: int) -> None:
    """A list has at least one place, and at most one for each item."""
    if not 1 <= k <= n_items:
        raise UnveilError("k is out of range", found=k, expected=f"between 1 and the {n_items:,} items")
