"""Gains over naive across scenarios: the mean with its interval, the worst case, and the regret.

Scenarios are strata: what is wanted is the mean over those that were tried, not over others that might have been.
Shapes: Z scenarios, W worlds, R replicates, A arms.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unveil.evaluation.statistics import Paired, holm, paired
from unveil.experiment.outcome import BASE

Floats = NDArray[np.float64]


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
    """A candidate against naive, and against the best of the others. Scenarios are told by their numbers."""

    arm: str
    mean: Paired  # its p is corrected (Holm) over the candidates
    of_scenario: tuple[float, ...]  # mean gain in each
    regret: tuple[float, ...]  # what the best usable candidate of the scenario has more

    @property
    def worst(self) -> int:
        """The scenario in which it gains least."""
        return int(np.argmin(self.of_scenario))

    @property
    def largest_regret(self) -> float:
        """How much is lost where most is lost, against having known the scenario."""
        return max(self.regret)


def gains(value: Mapping[str, Floats], usable: tuple[str, ...]) -> dict[str, Gain]:
    """Of each usable arm, from value_ZWR of all arms; naive, which gains nothing, is among them."""
    best_Z = np.max([value[arm].mean(axis=(1, 2)) for arm in usable], axis=0)
    raw = {arm: mean_over_strata(value[arm] - value[BASE]) for arm in usable}
    others = [arm for arm in usable if arm != BASE]
    corrected = dict(zip(others, holm(np.array([raw[arm].p for arm in others])).tolist(), strict=True))
    return {
        arm: Gain(
            arm,
            _with_p(raw[arm], corrected.get(arm, 1.0)),
            tuple((value[arm] - value[BASE]).mean(axis=(1, 2)).tolist()),
            tuple((best_Z - value[arm].mean(axis=(1, 2))).tolist()),
        )
        for arm in usable
    }


def _with_p(test: Paired, p: float) -> Paired:
    return Paired(test.difference, test.low, test.high, test.effect, p, test.n)
