"""The impressions that belong to the training part of a log. Shapes: N rows of the log, U users."""

import numpy as np
from numpy.typing import NDArray

from unveil.data.interactions import Interactions
from unveil.data.sequences import Sequences

Mask = NDArray[np.bool_]
Rank = NDArray[np.int64]


def training_impressions(log: Interactions, train: Sequences) -> Mask:
    """The events of `train`, and what users were shown and left beside them, before anything that is held out.

    Where one moment parts what is held out from what is not, that moment counts; else each user's own first event
    that is held out. Seen from the end of a history that event is the first, second, … click: the impressions before
    it hold clicks and skips in their right proportion. To stop at the last training click would favour clicks.

    `train` may begin later than the histories do (`Sequences.recent`): events before a user's first in it are not held
    out but old, and what was left before the last of these is as old. Moments stay whole: what a user was shown
    together with an event that is held out, or old, is out with it, training events included.
    """
    train_N = np.zeros(len(log), bool)
    train_N[train.event_N] = True
    clicked_N = np.ones(len(log), bool) if log.clicked is None else log.clicked
    rank_N, begin_N = _order(log)
    old_N = clicked_N & ~train_N & (rank_N < _first(log, train_N, rank_N, of_none=-1)[log.user])
    held_N = clicked_N & ~train_N & ~old_N
    early_N = _before_moment(log, train_N, held_N)
    if early_N is None:
        early_N = begin_N < _first(log, held_N, begin_N, of_none=len(log))[log.user]
    last_old_U = np.full(len(log.users), -1)
    np.maximum.at(last_old_U, log.user[old_N], begin_N[old_N])
    shown_N = (train_N | ~clicked_N) & early_N & (begin_N > last_old_U[log.user])
    return shown_N if log.exposed is None else shown_N & log.exposed


def left_for_training(log: Interactions, train: Sequences) -> int:
    """How many of these nobody took."""
    return 0 if log.clicked is None else int((training_impressions(log, train) & ~log.clicked).sum())


def _order(log: Interactions) -> tuple[Rank, Rank]:
    """The place of each row in the order of histories, and that of the first row of its moment.

    A moment is a user's own time or, in a log without times, step; with neither, a row is a moment by itself.
    """
    order_N, place_N = log.order(), np.arange(len(log))
    rank_N, begin_N = np.empty(len(log), np.int64), np.empty(len(log), np.int64)
    rank_N[order_N] = place_N
    clock_N = next((clock for clock in (log.time, log.step) if clock is not None), rank_N)
    new_N = np.ones(len(log), bool)
    new_N[1:] = (np.diff(log.user[order_N]) != 0) | (np.diff(clock_N[order_N]) != 0)
    begin_N[order_N] = np.maximum.accumulate(np.where(new_N, place_N, 0))
    return rank_N, begin_N


def _before_moment(log: Interactions, train_N: Mask, held_N: Mask) -> Mask | None:
    """Rows before all that is held out; None where some of that came before a training event."""
    if log.time is None or not held_N.any() or not train_N.any():
        return None
    moment = log.time[held_N].min()
    return np.asarray(log.time < moment) if log.time[train_N].max() < moment else None


def _first(log: Interactions, of_N: Mask, rank_N: Rank, *, of_none: int) -> Rank:
    """rank_U of each user's first such row, in the order of histories; `of_none` where a user has none."""
    first_U = np.full(len(log.users), len(log))
    np.minimum.at(first_U, log.user[of_N], rank_N[of_N])
    return np.where(first_U == len(log), of_none, first_U)
