"""Gains over naive across scenarios, and which candidate to use. Shapes: Z scenarios, W worlds, R replicates.

Scenarios are strata: the mean over those that were tried is wanted, not over others that might have been.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unveil.evaluation.statistics import Paired, paired
from unveil.studies.results import BASE, corrected, verdict

Floats = NDArray[np.float64]


def mean_over_strata(value_ZWR: Floats, level: float = 0.95) -> Paired:
    """The mean over all scenarios, worlds and replicates, tested against 0.

    With several worlds, each is a unit with its mean over scenarios and replicates (Student's t, W − 1 degrees of
    freedom): what is drawn from one world shares it. With one world the draws of each scenario are the sample of a
    stratum: the variance of the mean is Σ_z s_z² / R / Z², with Z (R − 1) degrees of freedom.
    """
    from scipy.special import stdtr, stdtrit

    scenarios, worlds, replicates = value_ZWR.shape
    if worlds > 1:
        return paired(value_ZWR.mean(axis=(0, 2)), np.zeros(worlds), level=level)
    mean, draws, freedom = float(value_ZWR.mean()), scenarios * replicates, scenarios * (replicates - 1)
    if replicates < 2:
        return Paired(mean, -np.inf, np.inf, 0.0, 1.0, draws)
    variance = float(value_ZWR[:, 0].var(axis=1, ddof=1).mean())
    error = np.sqrt(variance / draws)
    if error == 0:
        return Paired(mean, mean, mean, 0.0 if mean == 0 else float(np.copysign(np.inf, mean)), float(mean == 0), draws)
    half, p = float(stdtrit(freedom, (1 + level) / 2)) * error, float(2 * stdtr(freedom, -abs(mean) / error))
    return Paired(mean, float(mean - half), float(mean + half), float(mean / np.sqrt(variance)), p, draws)


@dataclass(frozen=True)
class Gain:
    """A candidate against naive, and against the best of the others. Scenarios go by their numbers."""

    arm: str
    mean: Paired  # its p is corrected (Holm) over the candidates
    of_scenario: tuple[float, ...]  # mean gain in each
    regret: tuple[float, ...]  # the mean of the scenario's best usable candidate − its own

    @property
    def worst(self) -> int:
        """The scenario with the lowest gain."""
        return int(np.argmin(self.of_scenario))

    @property
    def lowest(self) -> float:
        """The gain there."""
        return min(self.of_scenario)

    @property
    def largest_regret(self) -> float:
        """The most that is lost against the best candidate of a scenario."""
        return max(self.regret)

    @property
    def significant(self) -> bool:
        """Above naive on average over the scenarios, after correction for the number of candidates."""
        return verdict(self.mean) == "above"


def gains(value: Mapping[str, Floats], usable: tuple[str, ...]) -> dict[str, Gain]:
    """Of each usable arm, from value_ZWR of all arms; naive, whose gain is 0, is among them."""
    mean_Z = {arm: value[arm].mean(axis=(1, 2)) for arm in usable}
    best_Z = np.max(list(mean_Z.values()), axis=0)
    gain_ZWR = {arm: value[arm] - value[BASE] for arm in usable}
    tests = {arm: mean_over_strata(gain_ZWR[arm]) for arm in usable}
    others = [arm for arm in usable if arm != BASE]
    tests |= zip(others, corrected(tests[arm] for arm in others), strict=True)
    each = {arm: (gain_ZWR[arm].mean(axis=(1, 2)), best_Z - mean_Z[arm]) for arm in usable}
    return {arm: Gain(arm, tests[arm], *(tuple(part_Z.tolist()) for part_Z in each[arm])) for arm in usable}


@dataclass(frozen=True)
class Decision:
    """The chosen arm, why, and what it was chosen among."""

    chosen: str
    why: str  # "robust", "mean", "naive is safer" or "nothing is sure"
    gains: Mapping[str, Gain]
    robust: str  # the arm with the smallest largest regret
    best: str  # the arm with the highest mean
    left_out: float | None  # mean gain of the robust choice on draws that were left out when it was made

    @property
    def gain(self) -> Gain:
        """Of the chosen arm."""
        return self.gains[self.chosen]

    @property
    def ordered(self) -> list[Gain]:
        """Highest mean first."""
        return sorted(self.gains.values(), key=lambda each: -each.mean.difference)


def decide(value: Mapping[str, Floats], usable: tuple[str, ...]) -> Decision:
    """The robust choice (the smallest largest regret), where it is significantly above naive on average.

    Else, of those that are significantly above naive and on average below it in no scenario, the highest mean. Else
    naive.
    """
    found = gains(value, usable)
    robust, best = robust_of(found), max(found.values(), key=lambda each: each.mean.difference)
    above = [each for each in found.values() if each.significant]
    safe = [each for each in above if each.lowest >= 0]
    chosen, why = BASE, "naive is safer" if above else "nothing is sure"
    if robust in above:
        chosen, why = robust.arm, "robust"
    elif safe:
        chosen, why = max(safe, key=lambda each: each.mean.difference).arm, "mean"
    return Decision(chosen, why, found, robust.arm, best.arm, gain_left_out(value, usable))


def robust_of(found: Mapping[str, Gain]) -> Gain:
    """The smallest largest regret; of equals the highest mean."""
    return min(found.values(), key=lambda each: (each.largest_regret, -each.mean.difference))


def gain_left_out(value: Mapping[str, Floats], usable: tuple[str, ...]) -> float | None:
    """The robust choice made again without each world (or, of one world, each replicate), evaluated on that one.

    The gain of the best of many is biased upward on the draws it was chosen by; this one is not.
    """
    axis = 1 if value[BASE].shape[1] > 1 else 2
    units = value[BASE].shape[axis]
    if units < 2:
        return None
    found = []
    for unit in range(units):
        rest = {arm: np.delete(value[arm], unit, axis) for arm in usable}
        chosen = robust_of(gains(rest, usable)).arm
        found.append(float((np.take(value[chosen], [unit], axis) - np.take(value[BASE], [unit], axis)).mean()))
    return float(np.mean(found))
