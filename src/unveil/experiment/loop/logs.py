"""A log with what was taken in the loop. Shapes: R rounds, U users, N events."""

import numpy as np

from unveil.data.interactions import Interactions
from unveil.data.sequences import Sequences
from unveil.data.vocabulary import Index
from unveil.simulation.feedback.growth import grown

_DAY = 86_400_000_000


def grown_log(log: Interactions, taken_RU: Index) -> Interactions:
    """The interactions of the log and of the loop by user and step, with raw ids. Other columns are left behind.

    Where the log has times, a round is a day after the log's last moment, as in the paper.
    """
    base = Sequences.of(log)
    after = grown(base, taken_RU)
    time_N = None
    if log.time is not None:
        round_N = np.maximum(after.step_N.astype(np.int64) - base.n_steps + 1, 0)
        known_N = log.time[np.minimum(after.event_N, len(log) - 1)]
        time_N = np.where(round_N > 0, int(log.time.max()) + round_N * _DAY, known_N)
    return Interactions(after.user_N, after.item_N, log.users, log.items, time=time_N, step=after.step_N)
