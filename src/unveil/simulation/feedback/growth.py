"""Histories that grow by what users take. Shapes: R rounds of feedback, U users, N events."""

from dataclasses import replace

import numpy as np

from unveil.data.sequences import Sequences
from unveil.data.vocabulary import Index
from unveil.evaluation.metrics import NOBODY


def grown(base: Sequences, taken_RU: Index) -> Sequences:
    """The histories after R rounds: in round r = 1, 2, … user u took `taken_RU[r − 1, u]`, or nothing (`NOBODY`).

    Round r is step T − 1 + r for everybody: one step further, whether or not a user took something. Events of the
    first log keep their steps. There is no clock in the loop, only this order.
    """
    round_M, user_M = np.nonzero(taken_RU != NOBODY)
    first_row = int(base.event_N.max(initial=-1)) + 1
    user_N = np.concatenate([base.user_N, user_M])
    order_N = np.argsort(user_N, kind="stable")  # the first log, then round by round
    columns = (
        (base.item_N, taken_RU[round_M, user_M]),
        (base.step_N, base.n_steps + round_M),
        (base.event_N, first_row + np.arange(len(user_M))),
    )
    item_N, step_N, event_N = (np.concatenate(parts)[order_N].astype(np.int32) for parts in columns)
    offset_U1 = base.offset_U1 + np.concatenate([[0], np.cumsum((taken_RU != NOBODY).sum(0))])
    return replace(
        base,
        item_N=item_N,
        step_N=step_N,
        event_N=event_N,
        clock=None,
        offset_U1=offset_U1,
        n_steps=base.n_steps + len(taken_RU),
    )
