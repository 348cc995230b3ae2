"""The Cloze task: histories with some items hidden, batch by batch, each hidden item with its own slot.

Shapes: B rows, L columns, N events, R rows of an epoch (users with training events).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from unveil.data.rows import Batch, OverRows, Rows, refuse_unless
from unveil.data.sequences import Sequences
from unveil.data.tokens import histories, mask_token, n_tokens, pad_token, tokens_of

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

    @property
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
        hidden_N, mask = self._hidden(rng), mask_token(self.train.n_items)
        token_N = np.where(hidden_N, mask, self.rows.recent.item_N)
        for nth, (at_BL, empty_BL) in enumerate(self.rows.batches(rng)):
            token_BL = token_N[at_BL]
            hidden_BL = (token_BL == mask) & ~empty_BL
            yield self.rows.batch(token_BL, at_BL, empty_BL, hidden_BL, (self.seed, n, nth))

    def _hidden(self, rng: np.random.Generator) -> NDArray[np.bool_]:
        start_R, length_R = self.rows.start_R, self.rows.length_R
        hidden_N = rng.random(len(self.rows.recent), np.float32) < self.mask_probability
        last_R = rng.random(len(length_R)) < self.last_share
        chosen_R = start_R + rng.integers(length_R)
        hidden_N &= ~np.repeat(last_R, length_R)
        hidden_N[self.rows.stop_R[last_R] - 1] = True
        if self.always_mask:
            whole_R = ~np.logical_or.reduceat(hidden_N, start_R)
            hidden_N[chosen_R[whole_R]] = True
        return hidden_N
