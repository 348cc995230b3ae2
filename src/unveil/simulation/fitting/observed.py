"""The (user, item, step, rating) tuples of a log. Shapes: N tuples, U users, T steps."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from unveil.data.interactions import Interactions
from unveil.data.sequences import Sequences
from unveil.errors import UnveilError
from unveil.models.tensor_factorization.task import Tuples

_WITHOUT = (
    "Use a log with ratings, or name their column with --rating-col (`unveil world fit` takes it, `unveil reproduce "
    "--data` that world). The built-in world and `unveil demo` need none."
)


def observed(log: Interactions, steps: int) -> Tuples:
    """Each user's last `steps` events with their ratings, aligned at the end: step T − 1 is the most recent."""
    _refuse_unrated(log)
    assert log.rating is not None
    taken, event_N = _last(log, steps)
    rating_N = log.rating[event_N].astype(np.float64)
    _refuse_unusable(rating_N)
    return replace(taken, value_N=rating_N)


def taken(log: Interactions, steps: int) -> Tuples:
    """The same events of any log, each with the value 1: all that is known of a log without ratings."""
    return _last(log, steps)[0]


def _last(log: Interactions, steps: int) -> tuple[Tuples, NDArray[np.int64]]:
    """Each user's last `steps` events, and their rows of the log."""
    histories = Sequences.of(log)
    _refuse_too_short(histories, steps)
    first = histories.n_steps - steps
    late_N = histories.step_N >= first
    found = Tuples(
        user_N=histories.user_N[late_N].astype(np.int64),
        item_N=histories.item_N[late_N].astype(np.int64),
        step_N=histories.step_N[late_N].astype(np.int64) - first,
        value_N=np.ones(int(late_N.sum())),
        shape=(histories.n_users, histories.n_items, steps),
    )
    return found, np.asarray(histories.event_N[late_N], np.int64)


def _refuse_unrated(log: Interactions) -> None:
    if log.rating is None:
        raise UnveilError(
            "the log has no ratings, and without them relevance cannot be told from exposure",
            expected="a rating for every event",
            hint=_WITHOUT,
        )


def _refuse_too_short(histories: Sequences, steps: int) -> None:
    if not len(histories):
        raise UnveilError("there is no interaction in the log", hint="Check the file, or loosen the filters.")
    if not 0 < steps <= histories.n_steps:
        raise UnveilError(
            "no history is as long as the steps asked for",
            found=steps,
            expected=f"1 to {histories.n_steps} steps, the longest history",
            hint=f"Pass --steps {histories.n_steps} or fewer.",
        )


def _refuse_unusable(rating_N: NDArray[np.float64]) -> None:
    if missing := int((~np.isfinite(rating_N)).sum()):
        raise UnveilError(
            f"{missing:,} of {len(rating_N):,} events have no rating, or one that is not a number",
            expected="a rating for every event",
            hint="Leave out the events without one.",
        )
    if rating_N.min() == rating_N.max():
        raise UnveilError(
            "all ratings are the same, and say nothing about relevance",
            found=float(rating_N[0]),
            expected="ratings that differ",
            hint=_WITHOUT,
        )
