"""Which candidate to use. The rule is stated, and so is what it would have gained on draws that it had not seen.

Shapes: Z scenarios, W worlds, R replicates.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from unveil.experiment.advise.gains import Floats, Gain, gains
from unveil.experiment.outcome import BASE
from unveil.experiment.reproduce.ranking import ALPHA

Why = Literal["robust", "mean", "nothing is sure", "naive is safer"]


@dataclass(frozen=True)
class Decision:
    """The chosen arm, why, and what it was chosen among."""

    chosen: str
    why: Why
    gains: Mapping[str, Gain]
    robust: str  # the least largest regret
    best: str  # the highest mean
    followed: float | None  # mean gain of the robust choice on draws left out when it was made

    @property
    def gain(self) -> Gain:
        """Of the chosen."""
        return self.gains[self.chosen]

    def sure(self, arm: str) -> bool:
        """Whether an arm is above naive by more than chance, on average over the scenarios."""
        return surely_above(self.gains[arm])


def surely_above(gain: Gain) -> bool:
    """On average over the scenarios, after correction for the number of candidates."""
    return gain.mean.p < ALPHA and gain.mean.difference > 0


def decide(value: Mapping[str, Floats], usable: tuple[str, ...]) -> Decision:
    """The robust choice (the least largest regret), where it is surely above naive on average.

    Else, of those that are surely above naive and on average below it in no scenario, the highest mean. Else naive.
    """
    found = gains(value, usable)
    robust, best = robust_of(found), max(found.values(), key=lambda each: each.mean.difference)
    chosen, why = _rule(found, robust)
    return Decision(chosen, why, found, robust.arm, best.arm, followed(value, usable))


def _rule(found: Mapping[str, Gain], robust: Gain) -> tuple[str, Why]:
    sure = [each for each in found.values() if surely_above(each)]
    if robust in sure:
        return robust.arm, "robust"
    if safe := [each for each in sure if min(each.of_scenario) >= 0]:
        return max(safe, key=lambda each: each.mean.difference).arm, "mean"
    return BASE, "naive is safer" if sure else "nothing is sure"


def robust_of(found: Mapping[str, Gain]) -> Gain:
    """The least largest regret; of equals the highest mean."""
    return min(found.values(), key=lambda each: (each.largest_regret, -each.mean.difference))


def followed(value: Mapping[str, Floats], usable: tuple[str, ...]) -> float | None:
    """The robust choice made again without each world (or, of one world, each replicate), judged on what was left out.

    The gain of the best of many is too good to be true on the draws it was chosen by; this one is not.
    """
    axis = 1 if value[BASE].shape[1] > 1 else 2
    units = value[BASE].shape[axis]
    if units < 2:
        return None
    told = []
    for unit in range(units):
        rest = {arm: np.delete(value[arm], unit, axis) for arm in usable}
        chosen = robust_of(gains(rest, usable)).arm
        left = (np.take(value[chosen], [unit], axis) - np.take(value[BASE], [unit], axis)).mean()
        told.append(float(left))
    return float(np.mean(told))
