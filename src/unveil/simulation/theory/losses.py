"""Losses of fixed scores: as the trainer computes them, by the paper's equations, and their mean over logs.

Shapes: S slots of the world, M events, G all logs, R drawn logs, A estimators, V items, D width.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unveil.data.slots import Slots
from unveil.estimators.base import Estimator, Signal, build, cloze_risk, estimator
from unveil.evaluation.statistics import paired
from unveil.propensity.base import PROPENSITIES, PropensityModel
from unveil.simulation.choice import NOTHING
from unveil.simulation.theory import enumeration
from unveil.simulation.theory.enumeration import DenseWorld, Relevance, Table, closed_form, ideal_weight
from unveil.simulation.world import World
from unveil.training.trainer import normaliser


@dataclass(frozen=True, eq=False)
class Variant:
    """An estimator with its options; it uses the true propensities, with an error of `noise` logits if named."""

    label: str
    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    noise: float | None = None

    @property
    def self_normalised(self) -> bool:
        return bool(self.options.get("self_normalised"))

    def build(self, world: World) -> Estimator:
        return build(self.name, self.options, propensity=self.propensity(world), world=world)

    def propensity(self, world: World) -> PropensityModel | None:
        if self.noise is not None:
            return PROPENSITIES.build("noisy-temporal", {"sd": self.noise}, world)
        needs = estimator(self.name).needs
        return PROPENSITIES.build(f"known-{needs}", {}, world) if needs in ("static", "temporal") else None


def clipped(clip: float) -> Variant:
    """ITPS with no propensity below the clip."""
    return Variant(f"ITPS, θ ≥ {clip:g}", "itps", {"clip": clip})


NAIVE, IPS, ITPS = Variant("naive", "naive"), Variant("IPS", "ips"), Variant("ITPS", "itps")
IDEAL, CORRECTED = Variant("ideal", "ideal"), Variant("corrected", "corrected")
NORMALISED = Variant("ITPS normalised", "itps", {"self_normalised": True})


@dataclass(frozen=True)
class Masking:
    """The settings of `ClozeTask` that decide what is masked."""

    mask_probability: float = 0.2
    last_share: float = 0.0
    always_mask: bool = True

    def chance(self, slots: Slots) -> Tensor:
        """P(masked) of every event, by user and time: ρ + (1 − ρ)^n / n of n events; or the last event alone."""
        user_M = slots.user_M.numpy()
        length_M = np.bincount(user_M, minlength=1)[user_M]
        last_M = np.append(user_M[1:] != user_M[:-1], [True] * bool(len(user_M)))
        rho = self.mask_probability
        drawn_M = rho + ((1 - rho) ** length_M / length_M if self.always_mask else 0.0)
        return torch.from_numpy(self.last_share * last_M + (1 - self.last_share) * drawn_M)


def expected_weight(variant: Variant, dense: DenseWorld, p_SV: Table) -> Table | None:
    """E_SV by the paper's equations, with p_SV = E[Y_i]; None where events are not weighted each by itself.

    naive   E[Y_i]
    IPS     E[Y_i] / θ_si, θ_si the mean of θ_sit over all T steps
    ITPS    E[Y_i] / max(θ_sit, clip), or with the θ̂_sit that the estimator uses
    ideal   P(there is an event) · γ of the favourite: in training it, too, is a sum over the log's slots alone
    """
    world, user_U = dense.world, np.arange(dense.world.n_users)
    match variant.name:
        case "naive":
            return p_SV
        case "ips":
            theta_TUV = [world.exposure(user_U, np.full(len(user_U), step)) for step in range(world.n_steps)]
            return p_SV / np.asarray(np.mean(theta_TUV, axis=0, dtype=np.float64))[dense.user_S]
        case "itps" if not variant.self_normalised:
            theta_SV, noisy = dense.theta_SV, None if variant.noise is None else variant.propensity(world)
            if noisy is not None:
                theta_SV = noisy.of_all(dense.all_with(0)).double().numpy()
            return np.asarray(p_SV / np.maximum(theta_SV, variant.options.get("clip", 0.0)))
        case "ideal":
            favourite_SV = np.arange(p_SV.shape[1]) == dense.favourite_S[:, None]
            return np.where(favourite_SV, dense.gamma_SV * p_SV.sum(1, keepdims=True), 0.0)
    return None


def relative_bias(expected_SV: Table, ideal_SV: Table, loss_SV: Table) -> float:
    """(E[L] − L_ideal) / L_ideal of fixed scores, whose losses −log softmax(f)[i] are given."""
    return float((expected_SV * loss_SV).sum() / (ideal_SV * loss_SV).sum()) - 1


@dataclass(frozen=True)
class Compared:
    """E[L] and L_ideal on one scale."""

    expected: float
    ideal: float

    @property
    def bias(self) -> float:
        """(E[L] − L_ideal) / L_ideal: free of the scale."""
        return self.expected / self.ideal - 1


#: The clip is that of the paper's code.
VARIANTS = (NAIVE, IPS, ITPS, clipped(0.2), NORMALISED, IDEAL)
#: All intervals of a run together are to be right with this probability.
LEVEL = 0.95


@dataclass(frozen=True, eq=False)
class LossComparison:
    """Fixed scores h_SD · table_VDᵀ + bias_V whose losses are compared with L_ideal, over all logs or by formula.

    Every risk is divided by the slots |S| · T; the paper divides by |S| · |I| · T, training by the expected number of
    events times the mean weight: all constants, and the bias is relative. Only a self-normalised risk divides by its
    own weights: it is compared with the ideal divided by its own.
    """

    dense: DenseWorld
    h_SD: Tensor
    table_VD: Tensor
    bias_V: Tensor
    _cache: dict[tuple[Variant, Masking | None], NDArray[np.float64]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, world: World, seed: int = 0, known: float = 0.5, width: int = 4) -> Self:
        """f = known · (logit of γ) + noise: with scores that know nothing some biases would not show."""
        dense, truth = DenseWorld(world), world.relevance_logits
        rng = torch.Generator().manual_seed(seed)
        row_SK = torch.from_numpy(truth.P_UK[dense.user_S] * truth.W_TK[dense.step_S]).double()
        noise_SD = torch.randn(len(dense), width, generator=rng, dtype=torch.float64)
        noise_VD = torch.randn(world.n_items, width, generator=rng, dtype=torch.float64) / width**0.5
        table_VD = torch.hstack([torch.from_numpy(truth.Q_VK).double(), noise_VD])
        return cls(dense, torch.hstack([known * row_SK, noise_SD]), table_VD, table_VD.new_zeros(len(table_VD)))

    @cached_property
    def loss_SV(self) -> Table:
        """−log softmax(f)[i] of every slot and item, by the plain formula."""
        return (-torch.log_softmax(self.h_SD @ self.table_VD.T + self.bias_V, 1)).numpy()

    @cached_property
    def item_GS(self) -> NDArray[np.int64]:
        return enumeration.all_logs(len(self.dense), self.dense.world.n_items)

    def risk(self, estimator: Estimator, slots: Slots, masking: Masking | None = None) -> float:
        """The risk of one log in one batch, over all slots or its own weights; with `masking`, its mean."""
        if not len(slots):
            return 0.0
        signal = estimator(slots)
        if masking is not None:
            signal = replace(signal, weight_M=signal.weight_M * masking.chance(slots))
        expected = len(slots) if estimator.self_normalised else len(self.dense)
        divisor, _ = normaliser(estimator, signal, len(slots), expected)
        h_MD = self.h_SD[self.dense.rows(slots)]
        return float(cloze_risk(h_MD, self.table_VD, self.bias_V, signal, normaliser=divisor))

    def risks(self, variant: Variant, masking: Masking | None = None) -> NDArray[np.float64]:
        """The risk of every log: the same however the user chooses."""
        if (variant, masking) not in self._cache:
            built, logs = variant.build(self.dense.world), (self.dense.slots(item_S) for item_S in self.item_GS)
            self._cache[variant, masking] = np.array([self.risk(built, slots, masking) for slots in logs])
        return self._cache[variant, masking]

    def ideal(self, weight_SV: Table, divisor: float) -> float:
        """The real loss with every item a target at every slot, each by its weight."""
        every, total = torch.arange(len(weight_SV)), 0.0
        for item in range(weight_SV.shape[1]):
            signal = Signal(torch.full_like(every, item), torch.from_numpy(weight_SV[:, item]))
            total += float(cloze_risk(self.h_SD, self.table_VD, self.bias_V, signal, normaliser=divisor))
        return total

    def compare(
        self, variant: Variant, choice: str, relevance: Relevance = "drawn", masking: Masking | None = None
    ) -> Compared:
        """E[L] over all logs, and L_ideal; with `masking`, its slots are weighted by P(masked | an event)."""
        p_G = enumeration.log_probability(self.item_GS, enumeration.event_probability(self.dense, choice, relevance))
        ideal_SV = ideal_weight(self.dense, choice, relevance)
        mean = float(p_G @ self.risks(variant, masking))
        if masking is not None:
            ideal_SV = ideal_SV * self._masked(p_G, masking)[:, None]
        if not variant.self_normalised:
            return Compared(mean, self.ideal(ideal_SV, len(self.dense)))
        # An empty log has no mean: the expectation is over those with events.
        some_G = (self.item_GS != NOTHING).any(1)
        return Compared(float(mean / p_G[some_G].sum()), self.ideal(ideal_SV, float(ideal_SV.sum())))

    def _masked(self, p_G: NDArray[np.float64], masking: Masking) -> NDArray[np.float64]:
        """P(masked | an event) of each slot: ρ where events are masked by chance alone."""
        if not (masking.always_mask or masking.last_share):
            return np.full(len(self.dense), masking.mask_probability)
        masked_S, event_S = np.zeros(len(self.dense)), np.zeros(len(self.dense))
        for p, item_S in zip(p_G, self.item_GS, strict=True):
            slots = self.dense.slots(item_S)
            row_M = self.dense.rows(slots).numpy()
            masked_S[row_M] += p * masking.chance(slots).numpy()
            event_S[row_M] += p
        return masked_S / event_S

    def by_formula(self, variant: Variant, p_SV: Table | None, ideal_SV: Table) -> float | None:
        """The bias from the closed form of P(event) and the equations alone; None where one of them is missing."""
        expected_SV = None if p_SV is None else expected_weight(variant, self.dense, p_SV)
        return None if expected_SV is None else relative_bias(expected_SV, ideal_SV, self.loss_SV)

    def drawn(
        self,
        choice: str,
        draws: int,
        seed: int,
        choices: int = 1,
        on_progress: Callable[[float], None] = lambda share: None,
    ) -> list[dict[str, Any]]:
        """The bias of each loss over the same drawn logs, and by formula; intervals hold for all choice models at once.

        `spread` is the standard deviation of the loss of one log, relative to the ideal.
        """
        level = 1 - (1 - LEVEL) / (choices * len(VARIANTS))
        built = [variant.build(self.dense.world) for variant in VARIANTS]
        risk_RA = np.empty((draws, len(built)))
        for nth in range(draws):
            slots = enumeration.draw_slots(self.dense.world, choice, seed, nth)
            risk_RA[nth] = [self.risk(estimator, slots) for estimator in built]
            on_progress((nth + 1) / draws)
        p_SV, ideal_SV, rows = closed_form(self.dense, choice), ideal_weight(self.dense, choice), []
        for variant, risk_R in zip(VARIANTS, risk_RA.T, strict=True):
            # L_ideal on the scale of the variant's risk.
            divisor = float(ideal_SV.sum()) if variant.self_normalised else len(self.dense)
            bias_R = risk_R / (float((ideal_SV * self.loss_SV).sum()) / divisor) - 1
            mean, formula = paired(bias_R, np.zeros_like(bias_R), level=level), self.by_formula(variant, p_SV, ideal_SV)
            row = {"choice": choice, "estimator": variant.label, "formula": formula, "mean": mean.difference}
            bounds = {"low": float(mean.low), "high": float(mean.high), "spread": float(bias_R.std(ddof=1))}
            rows.append({**row, **bounds, "draws": draws})
        return rows


def with_agreement(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of drawn logs with whether its interval holds what the formula says, and what the interval alone says."""
    agrees = None if row["formula"] is None else row["low"] <= row["formula"] <= row["high"]
    return {**row, "agrees": agrees, "found": "biased" if row["low"] > 0 or row["high"] < 0 else "none seen"}
