"""How much each setting mattered: the share of the variation between trials that knowing it alone explains.

For a setting with G groups of values among n trials, with SS the sums of squares around means,

    ε² = (SS_between − (G − 1) · SS_within / (n − G)) / SS_total,

the share of explained variance less what G groups would explain by chance (Kelley's epsilon-squared), not below 0. It
is exact where every combination is equally likely to be tried, as in a random search or a grid; TPE prefers some, which
mixes the settings' effects. Interactions belong to no single setting: the shares need not add up to 1. (fANOVA in
Optuna needs scikit-learn; with thirty trials a forest says no more than these means.)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unveil.experiment.tune.record import Record
from unveil.experiment.tune.space import Choice, Dimension, Space
from unveil.experiment.tune.words import value_text

#: Groups that a range is cut into, with as many trials in each as can be.
_PARTS = 4


@dataclass(frozen=True)
class Group:
    """Trials that share a value of a setting, or a part of its range."""

    label: str
    mean: float
    trials: int


@dataclass(frozen=True)
class Importance:
    """One setting: its share (None where it cannot be told) and the mean of each group."""

    name: str
    share: float | None
    groups: Sequence[Group]


def importances(records: Sequence[Record], space: Space) -> list[Importance]:
    """All settings that were given more than one value, the most important first."""
    complete = [each for each in records if each.value is not None]
    value_N = np.array([each.value for each in complete], dtype=float)
    found = [
        _importance(name, _labels(dimension, [each.settings[name] for each in complete]), value_N)
        for name, dimension in space.dimensions.items()
    ]
    return sorted((each for each in found if len(each.groups) > 1), key=lambda each: -(each.share or 0.0))


def _importance(name: str, label_N: Sequence[str], value_N: NDArray[np.float64]) -> Importance:
    members: dict[str, list[float]] = {}
    for label, value in zip(label_N, value_N.tolist(), strict=True):
        members.setdefault(label, []).append(value)
    groups = [Group(label, float(np.mean(each)), len(each)) for label, each in members.items()]
    return Importance(name, epsilon_squared(members), sorted(groups, key=lambda group: _in_order(group.label)))


def epsilon_squared(members: Mapping[str, Sequence[float]]) -> float | None:
    """ε² of values in groups; None where there is no variation, or none within groups to compare with."""
    everything = np.concatenate([np.zeros(0), *(np.asarray(each, float) for each in members.values())])
    n, groups = len(everything), len(members)
    total = float(((everything - everything.mean()) ** 2).sum()) if n else 0.0
    if total <= 0 or n <= groups:
        return None
    within = sum(float(((np.asarray(each) - np.mean(each)) ** 2).sum()) for each in members.values())
    return max(0.0, (total - within - (groups - 1) * within / (n - groups)) / total)


def _labels(dimension: Dimension, values: Sequence[object]) -> list[str]:
    if isinstance(dimension, Choice):
        return [value_text(value) for value in values]
    number_N = np.array(values, dtype=float)
    if len(np.unique(number_N)) <= _PARTS:
        return [value_text(value) for value in values]
    rank_N = number_N.argsort(kind="stable").argsort(kind="stable")
    part_N = rank_N * _PARTS // len(number_N)
    ends = [(number_N[part_N == part].min(), number_N[part_N == part].max()) for part in range(_PARTS)]
    return [f"{ends[part][0]:.3g} to {ends[part][1]:.3g}" for part in part_N]


def _in_order(label: str) -> tuple[float, str]:
    head = label.split(" ", maxsplit=1)[0]
    try:
        return float(head), label
    except ValueError:
        return 0.0, label
