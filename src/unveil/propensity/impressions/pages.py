"""Pages: what each user was shown in a block of steps, counted from the impressions of a log's training part.

Shapes: N rows that were shown, M moments, P pairs of a moment and an item, G pages, V items, E training events.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.data.interactions import Interactions
from unveil.data.sequences import Sequences
from unveil.propensity.choices.blocks import Blocks, Index
from unveil.propensity.impressions.training import training_impressions

Values = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Pages:
    """In block b user s had `moments_G` moments; at `shown_GV` of them, which is sparse, item i was shown.

    Of what was shown and left, a log may keep a sample, each with probability `rate`; what was taken is always there.
    To count as what was left does, a take counts by the rate: the expected count is rate · θ · moments for all.
    """

    user_G: Index
    block_G: Index
    moments_G: Values
    shown_GV: Any
    shape: tuple[int, int, int]  # users, items, blocks

    @classmethod
    def of(cls, log: Interactions, train: Sequences, blocks: Blocks, rate: float = 1.0) -> "Pages":
        """A moment is a user's own time, and in one page; an item that stands in it twice was shown once."""
        row_N = np.flatnonzero(training_impressions(log, train))
        user_N, item_N, step_N = log.user[row_N].astype(np.int64), log.item[row_N].astype(np.int64), steps(log, train)
        _, clock_N = np.unique((step_N if log.time is None else log.time)[row_N], return_inverse=True)
        _, first_M, moment_N = np.unique(user_N * len(row_N) + clock_N, return_index=True, return_inverse=True)
        # A take may stand in the midst of what was shown with it: the moment is at the last step of its rows.
        step_M = np.zeros(len(first_M), np.int64)
        np.maximum.at(step_M, moment_N, step_N[row_N])
        page_G, page_M = np.unique(user_N[first_M] * blocks.count + blocks.at(step_M), return_inverse=True)
        pair_P, pair_N = np.unique(moment_N * train.n_items + item_N, return_inverse=True)
        taken_P = np.zeros(len(pair_P), bool)
        taken_P[pair_N[np.ones(len(row_N), bool) if log.clicked is None else log.clicked[row_N]]] = True
        moment_P, item_P = np.divmod(pair_P, train.n_items)
        shown_GV = sparse.csr_matrix(
            (np.where(taken_P, rate, 1.0), (page_M[moment_P], item_P)), shape=(len(page_G), train.n_items)
        )
        size = (train.n_users, train.n_items, blocks.count)
        moments_G = np.bincount(page_M, minlength=len(page_G)).astype(np.float64)
        return cls(page_G // blocks.count, page_G % blocks.count, moments_G, shown_GV, size)

    def __len__(self) -> int:
        return len(self.user_G)


def steps(log: Interactions, train: Sequences) -> Index:
    """The step of every row: the log's own or, where it has none, that of the user's training event before it.

    What comes before the first has the step of the first.
    """
    if log.step is not None:
        return log.step.astype(np.int64)
    rank_N = np.empty(len(log), np.int64)
    rank_N[log.order()] = np.arange(len(log))
    order_E = np.argsort(rank_N[train.event_N])
    event_E, step_E = train.event_N[order_E], train.step_N[order_E].astype(np.int64)
    at_N = np.maximum(np.searchsorted(rank_N[event_E], rank_N, side="right") - 1, 0)
    others_N = log.user[event_E[at_N]] != log.user
    return np.asarray(step_E[np.minimum(at_N + others_N, len(event_E) - 1)])
