"""The impressions that belong to the training part of a log. Shapes: N rows of the log, U users."""

import numpy as np
from numpy.typing import NDArray

from unveil.data.interactions import Interactions
from unveil.data.sequences import Sequences

Mask = NDArray[np.bool_]


def training_impressions(log: Interactions, train: Sequences) -> Mask:
    """The events of `train`, and what users were shown and left before anything that is held out.

    Where one moment parts what is held out from what is not, that moment counts; else each user's own first event
    that is held out. Seen from the end of a history that event is the first, second, … click: the impressions before
    it hold clicks and skips in their right proportion. To stop at the last training click would favour clicks.
    """
    train_N = np.zeros(len(log), bool)
    train_N[train.event_N] = True
    clicked_N = np.ones(len(log), bool) if log.clicked is None else log.clicked
    held_N = clicked_N & ~train_N
    early_N = _before_moment(log, train_N, held_N)
    early_N = _before_own(log, held_N) if early_N is None else early_N
    shown_N = train_N | (early_N & ~clicked_N)
    return shown_N if log.exposed is None else shown_N & log.exposed


def left_for_training(log: Interactions, train: Sequences) -> int:
    """How many of these nobody took."""
    return 0 if log.clicked is None else int((training_impressions(log, train) & ~log.clicked).sum())


def _before_moment(log: Interactions, train_N: Mask, held_N: Mask) -> Mask | None:
    """Rows before all that is held out; None where some of that came before a training event."""
    if log.time is None or not held_N.any() or not train_N.any():
        return None
    moment = log.time[held_N].min()
    return np.asarray(log.time < moment) if log.time[train_N].max() < moment else None


def _before_own(log: Interactions, held_N: Mask) -> Mask:
    """Rows that come, in the order of histories, before all of their user's that are held out."""
    rank_N = np.empty(len(log), np.int64)
    rank_N[log.order()] = np.arange(len(log))
    first_U = np.full(len(log.users), len(log))
    np.minimum.at(first_U, log.user[held_N], rank_N[held_N])
    return np.asarray(rank_N < first_U[log.user])
