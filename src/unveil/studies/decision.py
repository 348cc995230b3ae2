"""Gains over naive across scenarios, and which candidate to use. Shapes: Z scenarios, W worlds, R replicates.

Scenarios are strata: the mean over those that were tried is wanted, not over others that might have been.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from unveil.evaluation.statistics import Paired, holm, paired
from unveil.studies.results import ALPHA, BASE

Floats = NDArray[np.float64]
Why = Literal["robust", "mean", "nothing is sure", "naive is safer"]


def mean_over_strata(value_ZWR: Floats, level: float = 0.95) -> Paired:
    """The mean over all scenarios, worlds and replicates, tested against 0.

    With several worlds, each is a unit with its mean over scenarios and replicates (Student's t, W − 1 degrees of
    freedom): what is drawn from one world shares it. With one world the draws of each scenario are the sample of a
    stratum: the variance of the mean is Σ_z s_z² / R / Z², with Z (R − 1) degrees of freedom.
    """
    scenarios, worlds, replicates = value_ZWR.shape
    if worlds > 1:
        unit_W = value_ZWR.mean(axis=(0, 2))
        return paired(unit_W, np.zeros(worlds), level=level)
    mean, draws = float(value_ZWR.mean()), scenarios * replicates
    if replicates < 2:
        return Paired(mean, float("-inf"), float("inf"), 0.0, 1.0, draws)
    variance = float(value_ZWR[:, 0].var(axis=1, ddof=1).mean())
    return _tested(mean, np.sqrt(variance / draws), scenarios * (replicates - 1), np.sqrt(variance), draws, level)


def _tested(mean: float, error: float, freedom: int, deviation: float, n: int, level: float) -> Paired:
    from scipy.special import stdtr, stdtrit

    half = float(stdtrit(freedom, (1 + level) / 2)) * error
    if error == 0:
        return Paired(mean, mean, mean, 0.0 if mean == 0 else float(np.copysign(np.inf, mean)), float(mean == 0), n)
    p = float(2 * stdtr(freedom, -abs(mean) / error))
    return Paired(mean, float(mean - half), float(mean + half), float(mean / deviation), p, n)


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
        return self.of_scenario[self.worst]

    @property
    def largest_regret(self) -> float:
        """The most that is lost against the best candidate of a scenario."""
        return max(self.regret)

    @property
    def significant(self) -> bool:
        """Above naive on average over the scenarios, after correction for the number of candidates."""
        return self.mean.p < ALPHA and self.mean.difference > 0


def gains(value: Mapping[str, Floats], usable: tuple[str, ...]) -> dict[str, Gain]:
    """Of each usable arm, from value_ZWR of all arms; naive, whose gain is 0, is among them."""
    best_Z = np.max([value[arm].mean(axis=(1, 2)) for arm in usable], axis=0)
    raw = {arm: mean_over_strata(value[arm] - value[BASE]) for arm in usable}
    others = [arm for arm in usable if arm != BASE]
    corrected = dict(zip(others, holm(np.array([raw[arm].p for arm in others])).tolist(), strict=True))
    return {
        arm: Gain(
            arm,
            replace(raw[arm], p=corrected.get(arm, 1.0)),
            tuple((value[arm] - value[BASE]).mean(axis=(1, 2)).tolist()),
            tuple((best_Z - value[arm].mean(axis=(1, 2))).tolist()),
        )
        for arm in usable
    }


@dataclass(frozen=True)
class Decision:
    """The chosen arm, why, and what it was chosen among."""

    chosen: str
    why: Why
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
    chosen, why = _rule(found, robust)
    return Decision(chosen, why, found, robust.arm, best.arm, gain_left_out(value, usable))


def _rule(found: Mapping[str, Gain], robust: Gain) -> tuple[str, Why]:
    above = [each for each in found.values() if each.significant]
    if robust in above:
        return robust.arm, "robust"
    if safe := [each for each in above if min(each.of_scenario) >= 0]:
        return max(safe, key=lambda each: each.mean.difference).arm, "mean"
    return BASE, "naive is safer" if above else "nothing is sure"


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
