"""Losses of fixed scores: as the trainer computes them, by the paper's equations, and their mean over all logs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unveil.data.slots import Slots
from unveil.estimators.base import Estimator, Signal, cloze_risk, estimator
from unveil.estimators.build import build
from unveil.evaluation.statistics import paired
from unveil.models.base import Output
from unveil.propensity.base import PROPENSITIES, PropensityModel
from unveil.runs.workers import OnProgress
from unveil.simulation.choice import NOTHING, ChoiceModel, choice_model
from unveil.simulation.generate import draw
from unveil.simulation.world import World
from unveil.studies.theory_world import (
    CLOSED_FORMS,
    DenseWorld,
    Relevance,
    Table,
    all_logs,
    event_probability,
    ideal_weight,
    log_probability,
    slots_of,
)
from unveil.training.learner import normaliser


@dataclass(frozen=True, eq=False)
class Variant:
    """An estimator with its options; it uses the true propensities unless others are named."""

    label: str
    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    propensity: str | None = None
    propensity_options: Mapping[str, Any] = field(default_factory=dict)

    def build(self, world: World) -> Estimator:
        """The estimator as training would build it."""
        return build(self.name, self.options, propensity=self.theta(world), world=world)

    def theta(self, world: World) -> PropensityModel | None:
        """The propensity that the estimator uses."""
        needs = estimator(self.name).needs
        if needs not in ("static", "temporal"):
            return None
        return PROPENSITIES.build(self.propensity or f"known-{needs}", self.propensity_options, world)


def clipped(clip: float) -> Variant:
    """ITPS with no propensity below the clip."""
    return Variant(f"ITPS, θ ≥ {clip:g}", "itps", {"clip": clip})


def mistaken(sd: float) -> Variant:
    """ITPS with propensities that are off by a normal number of logits."""
    return Variant(f"ITPS, θ ± {sd:g} logit", "itps", propensity="noisy-temporal", propensity_options={"sd": sd})


NAIVE = Variant("naive", "naive")
IPS = Variant("IPS", "ips")
ITPS = Variant("ITPS", "itps")
IDEAL = Variant("ideal", "ideal")
CORRECTED = Variant("corrected", "corrected")
NORMALISED = Variant("ITPS normalised", "itps", {"self_normalised": True})


@dataclass(frozen=True, eq=False)
class Scores:
    """f at every slot, in the three factors that a model hands to the loss: h_SD · table_VDᵀ + bias_V."""

    h_SD: Tensor
    table_VD: Tensor
    bias_V: Tensor

    @classmethod
    def informed(cls, dense: DenseWorld, seed: int, known: float = 0.5, width: int = 4) -> Self:
        """f = known · (logit of γ) + noise: a model that has learnt some of the truth, in double precision.

        No proposition depends on what the scores are; but with scores that know nothing, mass on a wrong item would
        cost no more than on the right one, and some biases would not show.
        """
        truth = dense.world.relevance_logits
        rng = torch.Generator().manual_seed(seed)
        row_SK = torch.from_numpy(truth.P_UK[dense.user_S] * truth.W_TK[dense.step_S]).double()
        noise_SD = torch.randn(len(dense), width, generator=rng, dtype=torch.float64)
        noise_VD = torch.randn(len(truth.Q_VK), width, generator=rng, dtype=torch.float64) / width**0.5
        table_VD = torch.hstack([torch.from_numpy(truth.Q_VK).double(), noise_VD])
        return cls(torch.hstack([known * row_SK, noise_SD]), table_VD, torch.zeros(len(table_VD), dtype=torch.float64))

    def at(self, row_M: Tensor) -> Output:
        """What the loss is given for these slots."""
        return Output(self.h_SD[row_M], self.table_VD, self.bias_V)

    def loss(self) -> Table:
        """−log softmax(f)[i] of every slot and item, by the plain formula."""
        logit_SV = self.h_SD @ self.table_VD.T + self.bias_V
        return (-torch.log_softmax(logit_SV, 1)).numpy()


@dataclass(frozen=True)
class Masking:
    """The settings of `ClozeTask` that decide what is hidden."""

    mask_probability: float = 0.2
    last_share: float = 0.0
    always_mask: bool = True

    def chance(self, slots: Slots) -> Tensor:
        """P(hidden) of every event of a whole log, given the log; within a user the slots stand in time order.

        ρ, plus the chance (1 − ρ)^n that nothing of the n events was drawn, shared out among them; and the rows in
        which the last event alone is hidden.
        """
        user_M = slots.user_M.numpy()
        length_M = np.bincount(user_M, minlength=1)[user_M]
        last_M = np.append(user_M[1:] != user_M[:-1], [True] * bool(len(user_M)))
        rho = self.mask_probability
        drawn_M = rho + ((1 - rho) ** length_M / length_M if self.always_mask else 0.0)
        return torch.from_numpy(self.last_share * last_M + (1 - self.last_share) * drawn_M)


def risk(
    estimator: Estimator, slots: Slots, dense: DenseWorld, scores: Scores, masking: Masking | None = None
) -> float:
    """The risk of one log in one batch; with `masking`, its mean over what is hidden.

    It is divided by the slots of the world, a constant, for all but the self-normalised: the mean weight of a batch
    times its slots, and so the sum of its weights. A batch without slots is passed over: it adds nothing.
    """
    if not len(slots):
        return 0.0
    signal = estimator(slots)
    if masking is not None:
        signal = replace(signal, weight_M=signal.weight_M * masking.chance(slots))
    expected = len(slots) if estimator.self_normalised else len(dense)
    divisor, _ = normaliser(estimator, signal, len(slots), expected)
    return float(cloze_risk(*scores.at(dense.rows(slots)), signal, normaliser=divisor))


def risks(
    estimator: Estimator,
    item_GS: NDArray[Any],
    dense: DenseWorld,
    scores: Scores,
    masking: Masking | None = None,
) -> NDArray[np.float64]:
    """The risk of every log."""
    return np.array([risk(estimator, dense.slots(item_S), dense, scores, masking) for item_S in item_GS])


def weighted_risk(weight_SV: Table, scores: Scores, divisor: float) -> float:
    """The same loss with every item a target at every slot, each by its weight: a risk that is an expectation."""
    every = torch.arange(len(weight_SV))
    total = 0.0
    for item in range(weight_SV.shape[1]):
        signal = Signal(torch.full_like(every, item), torch.from_numpy(weight_SV[:, item]))
        total += float(cloze_risk(*scores.at(every), signal, normaliser=divisor))
    return total


def expected_weight(variant: Variant, dense: DenseWorld, p_SV: Table) -> Table | None:
    """E_SV of a variant; None where its loss is no sum over events that are weighted each by itself."""
    if variant.options.get("self_normalised"):
        return None
    if variant.name == "itps":
        return np.asarray(p_SV / np.maximum(_theta(variant, dense), variant.options.get("clip", 0.0)))
    plain = {"naive": naive, "ips": ips, "ideal": ideal}
    return plain[variant.name](dense, p_SV) if variant.name in plain else None


def naive(dense: DenseWorld, p_SV: Table) -> Table:
    """E[Y_i] (eq. of L_Cloze)."""
    return p_SV


def ips(dense: DenseWorld, p_SV: Table) -> Table:
    """E[Y_i] / θ_si, θ_si the mean of θ_sit over all T steps (eq. of L_IPS)."""
    world, user_U = dense.world, np.arange(dense.world.n_users)
    total_UV = np.zeros((world.n_users, world.n_items))
    for step in range(world.n_steps):
        total_UV += world.exposure(user_U, np.full(len(user_U), step))
    return p_SV / (total_UV / world.n_steps)[dense.user_S]


def ideal(dense: DenseWorld, p_SV: Table) -> Table:
    """P(there is an event) · γ of the favourite: in training L_ideal, too, is summed over the log's slots alone."""
    favourite_SV = np.arange(p_SV.shape[1]) == dense.favourite_S[:, None]
    return np.where(favourite_SV, dense.gamma_SV * p_SV.sum(1, keepdims=True), 0.0)


def relative_bias(expected_SV: Table, ideal_SV: Table, loss_SV: Table) -> float:
    """(E[L] − L_ideal) / L_ideal of fixed scores, whose losses −log softmax(f)[i] are given."""
    return float((expected_SV * loss_SV).sum() / (ideal_SV * loss_SV).sum()) - 1


def _theta(variant: Variant, dense: DenseWorld) -> Table:
    """θ_sit, or what the estimator uses instead (eq. of L_ITPS)."""
    if variant.propensity is None:
        return dense.theta_SV
    theta = variant.theta(dense.world)
    assert theta is not None
    theta_SV: Table = theta.of_all(dense.all_with(0)).double().numpy()
    return theta_SV


@dataclass(frozen=True)
class Compared:
    """E[L] and L_ideal on one scale."""

    expected: float
    ideal: float

    @property
    def bias(self) -> float:
        """(E[L] − L_ideal) / L_ideal: free of the scale."""
        return self.expected / self.ideal - 1


@dataclass(frozen=True, eq=False)
class Enumerated:
    """A world, all its logs, and the scores they are judged by.

    Every risk is divided by the number of slots S = |S| · T, the same for all: the paper divides by |S| · |I| · T, and
    training by the expected number of events times the mean weight; all of these are constants, and the bias is
    relative. Only a self-normalised risk divides by its own weights: it is held against the ideal divided by its own.
    """

    dense: DenseWorld
    scores: Scores
    _cache: dict[Variant, tuple[Estimator, NDArray[np.float64]]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, world: World, seed: int = 0) -> "Enumerated":
        """With scores that know some of the truth."""
        dense = DenseWorld(world)
        return cls(dense, Scores.informed(dense, seed))

    @cached_property
    def item_GS(self) -> NDArray[np.int64]:
        """Every log."""
        return all_logs(len(self.dense), self.dense.world.n_items)

    def compare(self, variant: Variant, choice: str, relevance: Relevance = "drawn") -> Compared:
        """E[L] over all logs, and L_ideal."""
        if variant not in self._cache:
            estimator = variant.build(self.dense.world)
            self._cache[variant] = estimator, self.risks(estimator)
        estimator, risk_G = self._cache[variant]
        return self.compare_with(risk_G, estimator, choice, relevance)

    def risks(self, estimator: Estimator) -> NDArray[np.float64]:
        """The risk of every log: the same however the user chooses."""
        return risks(estimator, self.item_GS, self.dense, self.scores)

    def compare_with(
        self, risk_G: NDArray[np.float64], estimator: Estimator, choice: str, relevance: Relevance = "drawn"
    ) -> Compared:
        """The same with risks that are at hand."""
        p_G = log_probability(self.item_GS, event_probability(self.dense, choice_model(choice), relevance))
        ideal_SV = ideal_weight(self.dense, choice_model(choice), relevance)
        if not estimator.self_normalised:
            return Compared(float(p_G @ risk_G), self.ideal(ideal_SV, len(self.dense)))
        # An empty log has no mean: the expectation is over those with events.
        some_G = (self.item_GS != NOTHING).any(1)
        return Compared(float(p_G @ risk_G / p_G[some_G].sum()), self.ideal(ideal_SV, float(ideal_SV.sum())))

    def ideal(self, weight_SV: Table, divisor: float) -> float:
        """The risk with these weights of all items at all slots."""
        return weighted_risk(weight_SV, self.scores, divisor)

    def compare_masked(self, estimator: Estimator, choice: str, masking: Masking, *, by_slot: bool) -> Compared:
        """E[L] over logs and over what is hidden, against ρ · L_ideal; or `by_slot`, with each slot of the ideal

        weighted by how likely its event is to be hidden, given that there is one.
        """
        p_SV1 = event_probability(self.dense, choice_model(choice))
        p_G = log_probability(self.item_GS, p_SV1)
        S = len(self.dense)
        mean = float(p_G @ risks(estimator, self.item_GS, self.dense, self.scores, masking))
        hidden_S = self._hidden(p_G, masking) if by_slot else np.full(S, masking.mask_probability)
        ideal_SV = ideal_weight(self.dense, choice_model(choice)) * hidden_S[:, None]
        return Compared(mean, self.ideal(ideal_SV, S))

    def _hidden(self, p_G: NDArray[np.float64], masking: Masking) -> NDArray[np.float64]:
        """P(hidden | an event) of each slot."""
        hidden_S, event_S = np.zeros(len(self.dense)), np.zeros(len(self.dense))
        for p, item_S in zip(p_G, self.item_GS, strict=True):
            slots = self.dense.slots(item_S)
            row_M = self.dense.rows(slots).numpy()
            hidden_S[row_M] += p * masking.chance(slots).numpy()
            event_S[row_M] += p
        return hidden_S / event_S


def choice_depends_on_exposure(dense: DenseWorld, choice: ChoiceModel) -> bool:
    """Whether P(C | O) differs between everything seen and one item hidden."""
    seen_SV = np.ones(dense.logit_SV.shape, bool)
    whole_SV = choice.probability(dense.logit_SV, seen_SV)
    for item in range(dense.world.n_items):
        part_SV = seen_SV.copy()
        part_SV[:, item] = False
        if not np.allclose(choice.probability(dense.logit_SV, part_SV), whole_SV):
            return True
    return False


#: The clip is that of the paper's code.
VARIANTS = (NAIVE, IPS, ITPS, clipped(0.2), NORMALISED, IDEAL)
#: All intervals of a run together are to be right with this probability.
LEVEL = 0.95


@dataclass(frozen=True)
class Estimated:
    """The relative bias of one loss under one choice model, from draws and, where there is one, by formula."""

    choice: str
    estimator: str
    formula: float | None
    mean: float
    low: float
    high: float
    spread: float  # standard deviation of the loss of one log, relative to the ideal
    draws: int

    @property
    def agrees(self) -> bool | None:
        """Whether the interval holds what the formula says."""
        return None if self.formula is None else self.low <= self.formula <= self.high

    @property
    def found(self) -> str:
        """What the interval alone tells."""
        return "biased" if self.low > 0 or self.high < 0 else "none seen"


@dataclass(frozen=True, eq=False)
class MonteCarlo:
    """A world, the scores its logs are judged by, and how many logs are drawn for each choice model."""

    dense: DenseWorld
    scores: Scores
    draws: int
    seed: int

    def run(self, choice: str, choices: int = 1, on_progress: OnProgress = lambda share: None) -> list[Estimated]:
        """A row for each loss; draws are shared by all. Intervals hold together for so many choice models."""
        level = 1 - (1 - LEVEL) / (choices * len(VARIANTS))
        ideal_SV = ideal_weight(self.dense, choice_model(choice))
        risk_RA = self.risks(choice, [variant.build(self.dense.world) for variant in VARIANTS], on_progress)
        formulas = self.formulas(choice, ideal_SV)
        return [
            _row(choice, variant, risk_R / self._ideal(variant, ideal_SV) - 1, formula, level)
            for variant, risk_R, formula in zip(VARIANTS, risk_RA.T, formulas, strict=True)
        ]

    def risks(
        self, choice: str, estimators: Sequence[Estimator], on_progress: OnProgress = lambda share: None
    ) -> NDArray[np.float64]:
        """risk_RA: every estimator's risk of every log."""
        risk_RA = np.empty((self.draws, len(estimators)))
        for nth in range(self.draws):
            events = draw(self.dense.world, np.random.default_rng([self.seed, nth]), choice_model(choice))
            slots = slots_of(events.user_N, events.item_N, events.step_N)
            risk_RA[nth] = [risk(estimator, slots, self.dense, self.scores) for estimator in estimators]
            on_progress((nth + 1) / self.draws)
        return risk_RA

    def _ideal(self, variant: Variant, ideal_SV: Table) -> float:
        """L_ideal on the scale of the variant's risk."""
        divisor = float(ideal_SV.sum()) if variant is NORMALISED else len(self.dense)
        return float((ideal_SV * self.scores.loss()).sum()) / divisor

    def formulas(self, choice: str, ideal_SV: Table) -> list[float | None]:
        """The bias of each variant by closed form, where there is one."""
        if choice not in CLOSED_FORMS:
            return [None] * len(VARIANTS)
        p_SV, loss_SV = CLOSED_FORMS[choice](self.dense) * self.dense.gamma_SV, self.scores.loss()
        expected = [expected_weight(variant, self.dense, p_SV) for variant in VARIANTS]
        return [None if E_SV is None else relative_bias(E_SV, ideal_SV, loss_SV) for E_SV in expected]


def _row(choice: str, variant: Variant, bias_R: NDArray[np.float64], formula: float | None, level: float) -> Estimated:
    found, spread = paired(bias_R, np.zeros_like(bias_R), level=level), float(bias_R.std(ddof=1))
    low, high = float(found.low), float(found.high)
    return Estimated(choice, variant.label, formula, found.difference, low, high, spread, len(bias_R))
