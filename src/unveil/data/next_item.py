"""The next-item task: at every event of a history, which item it was, from those before it.

Shapes: B rows, L columns.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from unveil.data.rows import Batch, OverRows, Rows
from unveil.data.sequences import Sequences
from unveil.data.tokens import mask_token


@dataclass(frozen=True, eq=False)
class NextItemTask(OverRows):
    """Each epoch shows the last `length` training events of every user once, and asks for all of them.

    A row of events x₁ … xₙ is given as MASK, x₁ … xₙ₋₁: at each column a causal network has read what came before the
    event of that column, which is its slot. MASK marks the beginning, so that the first event is asked for as well.
    """

    train: Sequences
    length: int
    batch_size: int
    seed: int = 0
    bucket: bool = True
    rows: Rows = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", Rows(self.train, self.length, self.batch_size, self.bucket))

    @cached_property
    def slots_per_batch(self) -> float:
        """The expected number of slots in a full batch."""
        return self.batch_size * float(self.rows.length_R.mean())

    def epoch(self, n: int) -> Iterator[Batch]:
        """The batches of epoch n: a pure function of the seed and n, so that a resumed run sees what it would have."""
        rng = np.random.default_rng([self.seed, n])
        for nth, cells in enumerate(self.rows.batches(rng)):
            event_BL = ~cells.empty_BL
            first_BL = event_BL & (np.cumsum(event_BL, axis=1) == 1)
            before_BL = self.rows.item_N[np.maximum(cells.at_BL - 1, 0)]
            token_BL = np.where(first_BL, mask_token(self.train.n_items), before_BL)
            yield self.rows.batch(token_BL, cells, event_BL, (self.seed, n, nth))
