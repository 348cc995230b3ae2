"""The user's log: some of its users, so that worlds are quickly made; what it has, and how it looks."""

from dataclasses import dataclass

import numpy as np

from unveil.data.describe import gini
from unveil.data.filters import LogSource
from unveil.data.interactions import Interactions
from unveil.data.sequences import Sequences
from unveil.data.splits import leave_one_out
from unveil.errors import UnveilError
from unveil.propensity.impressions import training_skips

#: A history of fewer events has nothing left to train on after two are held out.
_FEWEST = 3
#: Fewer impressions tell nothing, and drawn logs that keep as many might keep none.
_WORTH = 30
#: Lists of so many items are judged.
_LISTED = 10


@dataclass(frozen=True)
class Looks:
    """A log in a few figures, or several logs in their means: to compare drawn logs with the real one."""

    users: float
    items: float
    events: float
    length: float  # events of a user, on average
    gini: float  # of the items' counts: 0 all alike, 1 one has all
    head: float  # share of the events that are of the tenth of the items most taken

    @classmethod
    def of(cls, log: Interactions) -> "Looks":
        """Look at what was taken."""
        taken = log.interacted()
        count_V = np.sort(np.bincount(taken.item, minlength=1))[::-1]
        count_V = count_V[count_V > 0]
        users = len(np.unique(taken.user))
        head = count_V[: max(1, len(count_V) // 10)].sum() / max(1, count_V.sum())
        return cls(
            users, len(count_V), len(taken), len(taken) / max(1, users), float(gini(count_V)), round(float(head), 6)
        )


def read(source: LogSource, most_users: int, seed: int) -> Interactions:
    """What was taken by at most so many users, drawn at random among those with a history worth the name."""
    return read_shown(source, most_users, seed).interacted()


def read_shown(source: LogSource, most_users: int, seed: int) -> Interactions:
    """The same with what these users were shown and left, as far as the log keeps it, of the items that were taken."""
    return some_users(source.load(), most_users, seed).within_taken()


def some_users(log: Interactions, most: int, seed: int) -> Interactions:
    """The rows of some of the users, with the vocabularies of these."""
    count_U = np.bincount(log.interacted().user, minlength=len(log.users))
    able_U = np.flatnonzero(count_U >= _FEWEST)
    if not len(able_U):
        raise UnveilError("no user has a history of three events or more: there is nothing to hold out")
    if len(able_U) > most:
        able_U = np.random.default_rng([seed, most]).choice(able_U, most, replace=False)
    return log.where(np.isin(log.user, able_U)).compact()


def left_behind(log: Interactions) -> float:
    """How many impressions that nobody took there are to learn from for each training event; 0: too few to speak of."""
    train = leave_one_out(Sequences.of(log)).train
    left = training_skips(log, train)
    return left / len(train) if left >= _WORTH else 0.0


def refuse_no_impressions(log: Interactions, kept: float, left: float) -> None:
    """Before any work is done: a share of the impressions that is kept, said of a log with none to learn from."""
    if kept == 1 or left > 0:
        return
    rows = 0 if log.clicked is None else int((~log.clicked).sum())
    raise UnveilError(
        "the log has too little that was shown and left for this to matter",
        where="--impressions",
        found=f"{rows:,} such rows",
        expected=f"at least {_WORTH} to learn from",
        hint="Leave the option out, or name the column that says whether a row was taken with --clicked-col.",
    )


def refuse_few_items(items: int, whose: str) -> None:
    """Before the first training: too few items to fill a list that is judged."""
    if items < _LISTED:
        raise UnveilError(
            f"too few items to be ranked in {whose}",
            found=items,
            expected=f"at least {_LISTED}",
            hint="Take more users with --users, or a log or world with more items.",
        )


def has_ratings(log: Interactions) -> bool:
    """Whether every event is rated."""
    return log.rating is not None and bool(np.isfinite(log.rating).all())


def taken_again(log: Interactions) -> float:
    """The share of the events whose user took the same item at another time as well, but for one of each."""
    pairs = len(np.unique(log.user.astype(np.int64) * len(log.items) + log.item))
    return 1 - pairs / max(1, len(log))


def longest(log: Interactions) -> int:
    """Events of the longest history."""
    return int(np.bincount(log.user).max())
