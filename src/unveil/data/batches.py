"""The Cloze task: histories with some items hidden, batch by batch, each hidden item with its own slot.

Shapes: B rows, L columns, N events, R rows of an epoch (users with training events).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from unveil.data.bits import Bits
from unveil.data.rows import Batch, OverRows, Rows
from unveil.data.sequences import BLOCK, Sequences
from unveil.data.tokens import histories, mask_token, n_tokens, pad_token, tokens_of
from unveil.errors import refuse_unless

__all__ = ["Batch", "ClozeTask", "histories", "mask_token", "n_tokens", "pad_token", "tokens_of"]


@dataclass(frozen=True, eq=False)
class ClozeTask(OverRows):
    """Each epoch shows the last `length` training events of every user once, each hidden with `mask_probability` ρ.

    A hidden item is always replaced by MASK. A row in which nothing was drawn has one event, chosen uniformly, hidden
    (`always_mask=False`: it stays whole and gives no slot, as in the paper). With probability `last_share` a row has
    its last event hidden and no other: the question that is asked when recommending. Users without training events
    have no row; a history of one event is a row of MASK alone, from which the model learns what to say knowing nothing.

    Which events are hidden in epoch n depends on the seed and n alone, not on how rows share batches (see `Rows`).
    """

    train: Sequences
    length: int
    batch_size: int
    mask_probability: float
    last_share: float = 0.0
    seed: int = 0
    always_mask: bool = True
    bucket: bool = True
    rows: Rows = field(init=False, repr=False)

    def __post_init__(self) -> None:
        rho, last = self.mask_probability, self.last_share
        refuse_unless(0 < rho <= 1, "mask_probability", rho, "above 0, at most 1")
        refuse_unless(0 <= last <= 1, "last_share", last, "between 0 and 1")
        object.__setattr__(self, "rows", Rows(self.train, self.length, self.batch_size, self.bucket))

    @cached_property
    def slots_per_batch(self) -> float:
        """The expected number of slots in a full batch.

        Divide each batch's risk by this instead of its own M and all slots of an epoch weigh the same, whichever rows
        they share a batch with.
        """
        rho, length_R = self.mask_probability, self.rows.length_R
        drawn_R = rho * length_R + ((1 - rho) ** length_R if self.always_mask else 0.0)
        return self.batch_size * float(np.mean(self.last_share + (1 - self.last_share) * drawn_R))

    def epoch(self, n: int) -> Iterator[Batch]:
        """The batches of epoch n: a pure function of the seed and n, so that a resumed run sees what it would have."""
        rng = np.random.default_rng([self.seed, n])
        hidden, mask = self._hidden(rng), mask_token(self.train.n_items)
        for nth, cells in enumerate(self.rows.batches(rng)):
            hidden_BL = hidden[cells.nth_BL] & ~cells.empty_BL
            token_BL = np.where(hidden_BL, mask, self.rows.item_N[cells.at_BL])
            yield self.rows.batch(token_BL, cells, hidden_BL, (self.seed, n, nth))

    def _hidden(self, rng: np.random.Generator) -> Bits:
        """Which events are hidden, among those of all rows: a bit each."""
        rows, hidden = self.rows, Bits(len(self.rows.recent))
        hidden.fill(lambda count: rng.random(count, np.float32) < self.mask_probability)
        last_R = rng.random(len(rows.length_R)) < self.last_share
        chosen_R = rows.start_R + rng.integers(rows.length_R)
        edges = np.searchsorted(rows.stop_R, np.arange(0, len(hidden) + BLOCK, BLOCK))
        for first, last in pairwise(np.unique([*edges, len(last_R)]).tolist()):
            some = slice(first, last)
            events = slice(rows.start_R[first], rows.stop_R[last - 1])
            hidden.change(events, partial(self._complete, some, last_R[some], chosen_R[some] - events.start))
        return hidden

    def _complete(
        self, some: slice, last_R: NDArray[np.bool_], chosen_R: NDArray[np.int64], hidden_N: NDArray[np.bool_]
    ) -> None:
        """Rows with their last event alone hidden, and rows in which nothing was drawn: changed where they stand."""
        start_R = self.rows.start_R[some] - self.rows.start_R[some.start]
        length_R = self.rows.length_R[some]
        hidden_N &= ~np.repeat(last_R, length_R)
        hidden_N[(start_R + length_R)[last_R] - 1] = True
        if self.always_mask:
            whole_R = ~np.logical_or.reduceat(hidden_N, start_R)
            hidden_N[chosen_R[whole_R]] = True
