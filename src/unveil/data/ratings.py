"""The ratings of the events that are learnt from. Shapes: N training events."""

import numpy as np
from numpy.typing import NDArray

from unveil.data.interactions import Interactions
from unveil.data.sequences import Sequences
from unveil.errors import UnveilError
from unveil.wording import quantity


def every_rating(log: Interactions, train: Sequences, who: str, instead: str) -> NDArray[np.float64]:
    """rating_N of the training events, for one `who` needs them all; where some are empty, `instead` is what to use."""
    rating_N = np.full(len(train), np.nan) if log.rating is None else log.rating[train.event_N].astype(np.float64)
    empty_N = ~np.isfinite(rating_N)
    if empty_N.any():
        events, first = quantity(int(empty_N.sum()), "training event"), int(train.event_N[empty_N][0]) + 1
        raise UnveilError(
            f"{who} needs a rating of every event, and some are empty",
            where=f"{events}, first row {first} of the log",
            hint=f"Fill them in, or use {instead}.",
        )
    return rating_N
