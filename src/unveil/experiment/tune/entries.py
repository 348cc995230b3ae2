"""Entries: what is to be done, apart from who has tried. Entry i is the i-th combination; trials are attempts at it.

A trial that was begun anew, because its process died or was stopped, is a further trial of the same entry. The entry
belongs to the first of its trials that is not given up. All who read the same storage see the same owner, so that no
entry is done twice.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from unveil.experiment.tune.library import optuna

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

#: Notes on a trial: its entry; which attempt at it this is, where not the first; how many workers have died of it
#: before; why it failed for good.
ENTRY, AGAIN, DIED, WHY = "entry", "again", "died", "why"


def entry_of(trial: "FrozenTrial", trials: Iterable["FrozenTrial"]) -> int:
    """The entry that a trial was made for, or else how many before it opened an entry of their own."""
    if ENTRY in trial.user_attrs:
        return int(trial.user_attrs[ENTRY])
    return sum(each.number < trial.number and AGAIN not in each.user_attrs for each in trials)


def opened(trials: Iterable["FrozenTrial"]) -> int:
    """How many entries have a trial."""
    return sum(AGAIN not in each.user_attrs for each in trials)


def given_up(trial: "FrozenTrial") -> bool:
    """Whether the entry is free again: stopped or died, as opposed to failed for a reason that stays."""
    return trial.state == optuna.trial.TrialState.FAIL and WHY not in trial.user_attrs


def by_entry(trials: Sequence["FrozenTrial"]) -> dict[int, list["FrozenTrial"]]:
    """The attempts at each entry, oldest first."""
    found: dict[int, list[FrozenTrial]] = {}
    fresh = 0
    for trial in sorted(trials, key=lambda each: each.number):
        entry = int(trial.user_attrs.get(ENTRY, fresh))
        fresh += AGAIN not in trial.user_attrs
        found.setdefault(entry, []).append(trial)
    return found


def owner(attempts: Iterable["FrozenTrial"]) -> "FrozenTrial | None":
    """The attempt that counts; None: nobody is at it."""
    return next((trial for trial in attempts if not given_up(trial)), None)
