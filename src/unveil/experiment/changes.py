"""Changed settings of several trainings: NAME=VALUE for all, ARM:NAME=VALUE for one; what is said of one wins."""

from collections.abc import Iterable
from typing import Any

from unveil.estimators.base import estimator
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


def arms_named(changes: Iterable[str]) -> list[str]:
    """The estimators that have changes of their own; an unknown one suggests the nearest."""
    named = [setting.partition(":")[0] for setting, _ in map(parsed, changes) if ":" in setting]
    return [estimator(name).name for name in dict.fromkeys(named)]
