"""Changed settings of several trainings: NAME=VALUE for all, ARM:NAME=VALUE for one; what is said of one wins."""

from collections.abc import Iterable, Sequence
from typing import Any

from unveil.errors import unknown
from unveil.estimators.base import ESTIMATORS, estimator
from unveil.settings import parsed


def changes_of(arm: str, changes: Iterable[str]) -> dict[str, Any]:
    """The settings that are changed for an arm, by dotted names."""
    shared: dict[str, Any] = {}
    own: dict[str, Any] = {}
    for setting, value in map(parsed, changes):
        whose, colon, rest = setting.partition(":")
        if not colon:
            shared[setting] = value
        elif whose == arm:
            own[rest] = value
    return shared | own


def with_changes(about: str, changes: Sequence[str]) -> str:
    """What is said of a preset, and right after it what of it was changed.

    >>> with_changes("trained until converged", ["training.epochs=2", "itps:model.width=8"])
    'trained until converged; changed: training.epochs=2, itps:model.width=8'
    """
    return f"{about}; changed: {', '.join(changes)}" if changes else about


def refuse_unfit(arms: Iterable[str], changes: Sequence[str]) -> None:
    """Before any work is done: estimators, and options of estimators, that are none."""
    named = [setting.partition(":")[0] for setting, _ in map(parsed, changes) if ":" in setting]
    for arm in dict.fromkeys([*arms, *(estimator(name).name for name in named)]):
        known = ESTIMATORS.options(arm)
        for setting in changes_of(arm, changes):
            option = setting.removeprefix("estimator.")
            if option != setting and option not in known:
                raise unknown(f"option of the estimator {arm!r}", option, known)
