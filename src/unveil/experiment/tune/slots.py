"""Slots: what is to be done, apart from who has tried. Slot i is the i-th combination; trials are attempts at it.

A trial that was begun anew, because its process died or was stopped, is a further trial of the same slot. The slot
belongs to the first of its trials that is not given up. All who read the same storage see the same owner, so that no
slot is done twice.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from unveil.experiment.tune.library import optuna

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

#: Notes on a trial: its slot; which attempt at it this is, where not the first; why it failed for good.
SLOT, AGAIN, WHY = "slot", "again", "why"


def slot_of(trial: "FrozenTrial", trials: Iterable["FrozenTrial"]) -> int:
    """The slot that a trial was made for, or else how many before it opened a slot of their own."""
    if SLOT in trial.user_attrs:
        return int(trial.user_attrs[SLOT])
    return sum(each.number < trial.number and AGAIN not in each.user_attrs for each in trials)


def opened(trials: Iterable["FrozenTrial"]) -> int:
    """How many slots have a trial."""
    return sum(AGAIN not in each.user_attrs for each in trials)


def given_up(trial: "FrozenTrial") -> bool:
    """Whether the slot is free again: stopped or died, as opposed to failed for a reason that stays."""
    return trial.state == optuna.trial.TrialState.FAIL and WHY not in trial.user_attrs


def by_slot(trials: Sequence["FrozenTrial"]) -> dict[int, list["FrozenTrial"]]:
    """The attempts at each slot, oldest first."""
    found: dict[int, list[FrozenTrial]] = {}
    fresh = 0
    for trial in sorted(trials, key=lambda each: each.number):
        slot = int(trial.user_attrs.get(SLOT, fresh))
        fresh += AGAIN not in trial.user_attrs
        found.setdefault(slot, []).append(trial)
    return found


def owner(attempts: Iterable["FrozenTrial"]) -> "FrozenTrial | None":
    """The attempt that counts; None: nobody is at it."""
    return next((trial for trial in attempts if not given_up(trial)), None)
