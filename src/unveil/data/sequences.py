"""Sequences: every user's history in time order, ragged and flat, each event with its own time step.

Shapes: N events, U users, T steps.
"""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from unveil.data.indexing import counted, gathered, side_by_side
from unveil.data.interactions import Interactions
from unveil.data.vocabulary import Index
from unveil.errors import UnveilError
from unveil.wording import quantity

Offsets = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Sequences:
    """Histories laid end to end: user u owns the events `offset_U1[u]` to `offset_U1[u + 1]`, oldest first.

    An event's step is its own: it is set once, from the whole history, and stays with the event through every
    split and cut. Nothing is ever inferred from where an event stands in a padded row. Steps count from 0 to T − 1;
    the paper counts them from 1.
    """

    item_N: Index
    step_N: Index
    event_N: Index  # the row of the log that the event came from
    clock: NDArray[np.int64] | None  # the log's times by row, in µs; None where it has an order but no clock
    offset_U1: Offsets
    n_items: int
    n_steps: int

    @classmethod
    def of(cls, log: Interactions) -> Self:
        """The histories in a log: by time, ties in file order; what was shown and not taken stays out.

        Where the log carries no steps they are aligned at the end: every user's most recent event is at T − 1, where
        T is the length of the longest history.
        """
        row_N = log.order()
        if log.clicked is not None:
            row_N = row_N[log.clicked[row_N]]
        length_U = counted(log.interacted().user, len(log.users))
        offset_U1 = np.concatenate([[0], np.cumsum(length_U)]).astype(np.int64)
        step_N, n_steps = _steps(log, row_N, offset_U1)
        item_N = gathered(log.item, row_N)
        return cls(item_N, step_N, row_N, log.time, offset_U1, n_items=len(log.items), n_steps=n_steps)

    def __len__(self) -> int:
        return len(self.item_N)

    def __repr__(self) -> str:
        whose = f"{quantity(len(self), 'event')} of {quantity(self.n_users, 'user')}"
        return f"Sequences({whose}, {quantity(self.n_items, 'item')}, T = {self.n_steps})"

    @property
    def n_users(self) -> int:
        """Number of users, those without events included."""
        return len(self.offset_U1) - 1

    @property
    def length_U(self) -> NDArray[np.int64]:
        """Events of each user."""
        return np.diff(self.offset_U1)

    @property
    def user_N(self) -> Index:
        """The user of each event."""
        return np.repeat(np.arange(self.n_users, dtype=np.int32), self.length_U)

    @property
    def time_N(self) -> NDArray[np.int64] | None:
        """When each event was, looked up anew: most who hold sequences never ask."""
        return None if self.clock is None else gathered(self.clock, self.event_N)

    def history(self, user: int) -> Index:
        """The items of one user, oldest first."""
        return self.item_N[self.offset_U1[user] : self.offset_U1[user + 1]]

    def cut(self, start_U: NDArray[Any], stop_U: NDArray[Any]) -> Self:
        """Each user's events from place `start` up to, not including, `stop`; every event keeps its step."""
        stop_U = np.maximum(start_U, stop_U)
        run_U3 = np.stack([start_U, stop_U - start_U, self.length_U - stop_U], axis=1)
        keep_N = np.repeat(np.tile([False, True, False], self.n_users), run_U3.ravel())
        return self._where(keep_N, stop_U - start_U)

    def recent(self, length: int) -> Self:
        """At most the last `length` events of each user."""
        return self.cut(np.maximum(0, self.length_U - length), self.length_U)

    def _where(self, keep_N: NDArray[np.bool_], length_U: NDArray[Any]) -> Self:
        columns = (self.item_N, self.step_N, self.event_N)
        item_N, step_N, event_N = side_by_side(lambda column: column[keep_N], columns)
        offset_U1 = np.concatenate([[0], np.cumsum(length_U)]).astype(np.int64)
        return replace(self, item_N=item_N, step_N=step_N, event_N=event_N, offset_U1=offset_U1)


def _steps(log: Interactions, row_N: Index, offset_U1: Offsets) -> tuple[Index, int]:
    """Each event's step, and T."""
    if log.step is not None:
        step_N = log.step[row_N]
        if len(step_N) and step_N.min() < 0:
            raise UnveilError("a step is negative", found=int(step_N.min()), expected="steps counted from 0")
        return step_N, int(step_N.max()) + 1 if len(step_N) else 0
    length_U = np.diff(offset_U1)
    n_steps = int(length_U.max()) if len(length_U) else 0
    step_N = np.repeat((n_steps - offset_U1[1:]).astype(np.int32), length_U)
    step_N += np.arange(len(row_N), dtype=np.int32)
    return step_N, n_steps
