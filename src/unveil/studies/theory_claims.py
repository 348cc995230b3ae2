"""The paper's propositions as claims that are checked, and what minimises each loss."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.data.slots import Slots
from unveil.estimators.base import Estimator, Signal
from unveil.evaluation.statistics import paired
from unveil.simulation.choice import CHOICES, choice_model
from unveil.simulation.generate import draw
from unveil.simulation.world import World
from unveil.studies.theory_loss import (
    CORRECTED,
    IDEAL,
    IPS,
    ITPS,
    NAIVE,
    NORMALISED,
    Compared,
    Enumerated,
    Masking,
    Scores,
    Variant,
    choice_depends_on_exposure,
    clipped,
    expected_weight,
    mistaken,
    relative_bias,
)
from unveil.studies.theory_world import (
    CLOSED_FORMS,
    DenseWorld,
    Relevance,
    Table,
    Tiny,
    event_probability,
    ideal_weight,
    slots_of,
)

#: Propensities are single-precision numbers: below this relative bias there is none.
TOLERANCE = 1e-5

Kind = Literal["unbiased", "biased"]


@dataclass(frozen=True)
class Finding:
    """What is said of a loss, and what its expectation over all logs says. The verdict is computed, never given."""

    topic: str
    claim: str
    setting: str
    claimed: Kind
    compared: Compared
    formula: float | None = None  # the same bias by closed form, where there is one

    @property
    def bias(self) -> float:
        """(E[L] − L_ideal) / L_ideal."""
        return self.compared.bias

    @property
    def found(self) -> Kind:
        """Biased beyond rounding, or not."""
        return "biased" if abs(self.bias) > TOLERANCE else "unbiased"

    @property
    def holds(self) -> bool:
        """Whether the claim is borne out, and the closed form with it."""
        return self.found == self.claimed and self.agrees is not False

    @property
    def agrees(self) -> bool | None:
        """Whether enumeration and closed form give the same number."""
        return None if self.formula is None else abs(self.bias - self.formula) <= TOLERANCE * (1 + abs(self.formula))

    @property
    def verdict(self) -> str:
        """In two words or three."""
        if self.agrees is False:
            return "formula off"
        return "holds" if self.holds else "does not hold"


ALL, EXPOSED = "rational_all", "rational_exposed"
CHANCE_ALL, CHANCE_EXPOSED = "categorical_all", "categorical_exposed"
P1, P2, P3 = "Proposition 1", "Proposition 2", "Proposition 3"
ASSUMED, TRAINED = "Assumptions", "In training"
CLIP, OFF_BY = 0.5, 1.0


@dataclass(frozen=True)
class Propositions:
    """Every claim, checked in the world that it speaks of."""

    tiny: Tiny

    def findings(self) -> list[Finding]:
        """All of them, in the order of the paper."""
        return [*self.first(), *self.second(), *self.third(), *self.assumptions(), *self.training()]

    @cached_property
    def moving(self) -> Enumerated:
        """The world in which θ changes with the step."""
        return self._enumerated(self.tiny.moving())

    def first(self) -> Iterator[Finding]:
        """Proposition 1."""
        shown = self._enumerated(self.tiny.all_shown())
        yield self._check(P1, "the naive loss is biased", "where θ is below 1", "biased", self.moving, NAIVE)
        yield self._check(P1, "it would be unbiased", "if all items were seen (θ = 1)", "unbiased", shown, NAIVE)

    def second(self) -> Iterator[Finding]:
        """Proposition 2, both ways, and how much of the condition is needed."""
        still, unchosen = self._enumerated(self.tiny.still()), self._enumerated(self.tiny.moving_unchosen())
        yield self._check(P2, "IPS is unbiased", "if θ is the same at all steps", "unbiased", still, IPS)
        yield self._check(P2, "IPS is biased", "if θ changes with the step", "biased", self.moving, IPS)
        where = "even if θ changes only for items that nobody chooses"
        yield self._check(P2, "IPS is biased", where, "biased", unchosen, IPS)

    def third(self) -> Iterator[Finding]:
        """Proposition 3, for each kind of user."""
        for choice, who in (
            (ALL, "for the user of the proof, who takes the best of all items"),
            (CHANCE_ALL, "for a user who picks by chance among all items (mean over C)"),
            (EXPOSED, "for the user of the experiment, who takes the best of the exposed"),
            (CHANCE_EXPOSED, "for a user who picks by chance among the exposed"),
        ):
            yield self._check(P3, "ITPS is unbiased", who, "unbiased", self.moving, ITPS, choice)
        who = "where every choice is an interaction (R = 1; the ideal without γ)"
        yield self._check(P3, "ITPS is unbiased", who, "unbiased", self.moving, ITPS, relevance="certain")

    def assumptions(self) -> Iterator[Finding]:
        """What the proof takes for granted."""
        related = self._enumerated(self.tiny.related())
        where = "even if items are shown the more to whom they please, as long as O and R are drawn apart"
        yield self._check(ASSUMED, "ITPS is unbiased", where, "unbiased", related, ITPS)
        where = "if one luck decides both O and R"
        yield self._check(ASSUMED, "ITPS is biased", where, "biased", self.moving, ITPS, relevance="same luck")
        where = f"by θ/θ̂, if told propensities that are off by {OFF_BY:g} logit"
        yield self._check(ASSUMED, "ITPS is biased", where, "biased", self.moving, mistaken(OFF_BY))

    def training(self) -> Iterator[Finding]:
        """What training does beside the equations."""
        dense, itps = self.moving.dense, ITPS.build(self.moving.dense.world)
        bites = (dense.theta_SV[np.arange(len(dense)), dense.favourite_S] < CLIP).any()
        kind: Kind = "biased" if bites else "unbiased"
        where = f"with θ clipped at {CLIP:g}, {'above some θ that matter' if bites else 'below every θ that matters'}"
        yield self._check(TRAINED, f"ITPS is {kind}", where, kind, self.moving, clipped(CLIP))
        where = "if divided by the sum of its weights, against the ideal divided by its own"
        yield self._check(TRAINED, "ITPS is biased", where, "biased", self.moving, NORMALISED)
        plain = self.moving.compare_masked(itps, ALL, Masking(0.2, 0.0, always_mask=False), by_slot=False)
        where = "if events are hidden by chance alone"
        yield Finding(TRAINED, "ITPS is unbiased", where, "unbiased", plain)
        trained = self.moving.compare_masked(itps, ALL, Masking(0.2, 0.1, always_mask=True), by_slot=True)
        where = "if at least one event of a row is hidden, against the ideal with its slots weighted alike"
        yield Finding(TRAINED, "ITPS is unbiased", where, "unbiased", trained)
        where = "as it is trained: on the slots of a log, and not on those without an event"
        yield self._check(TRAINED, "the ideal loss itself is biased", where, "biased", self.moving, IDEAL)

    def _check(
        self,
        topic: str,
        claim: str,
        setting: str,
        claimed: Kind,
        where: Enumerated,
        variant: Variant,
        choice: str = ALL,
        relevance: Relevance = "drawn",
    ) -> Finding:
        compared = where.compare(variant, choice, relevance)
        formula = bias_by_formula(where, variant, choice, relevance)
        return Finding(topic, claim, setting, claimed, compared, formula)

    def _enumerated(self, world: World) -> Enumerated:
        return Enumerated.of(world, self.tiny.seed)


def bias_by_formula(where: Enumerated, variant: Variant, choice: str, relevance: Relevance) -> float | None:
    """The bias from closed form and equations alone; None where one of them is missing."""
    if choice not in CLOSED_FORMS:
        return None
    p_SV = CLOSED_FORMS[choice](where.dense) * _chance_of_relevance(where, relevance)
    expected_SV = expected_weight(variant, where.dense, p_SV)
    ideal_SV = ideal_weight(where.dense, choice_model(choice), relevance)
    return None if expected_SV is None else relative_bias(expected_SV, ideal_SV, where.scores.loss())


def _chance_of_relevance(where: Enumerated, relevance: Relevance) -> Table:
    """P(R = 1 | O = 1): γ, one, or min(θ, γ)/θ."""
    theta_SV, gamma_SV = where.dense.theta_SV, where.dense.gamma_SV
    if relevance == "certain":
        return np.ones_like(gamma_SV)
    return gamma_SV if relevance == "drawn" else np.minimum(theta_SV, gamma_SV) / theta_SV


_LOSSES = (NAIVE, IPS, ITPS)
_RELEVANCE: Sequence[Relevance] = ("drawn", "certain")


@dataclass(frozen=True)
class Chooser:
    """One way of choosing, with or without a draw of relevance."""

    choice: str
    relevance: Relevance
    depends_on_exposure: bool
    bias: Mapping[str, float]
    formula_error: float | None  # largest difference of P(event) from its closed form over slots and items


def choosers(where: Enumerated) -> list[Chooser]:
    """Every choice model of the registry."""
    return [
        Chooser(
            choice,
            relevance,
            choice_depends_on_exposure(where.dense, choice_model(choice)),
            {variant.label: where.compare(variant, choice, relevance).bias for variant in _LOSSES},
            _formula_error(where, choice, relevance),
        )
        for relevance in _RELEVANCE
        for choice in CHOICES
    ]


def _formula_error(where: Enumerated, choice: str, relevance: Relevance) -> float | None:
    if choice not in CLOSED_FORMS:
        return None
    formula_SV = CLOSED_FORMS[choice](where.dense) * (where.dense.gamma_SV if relevance == "drawn" else 1.0)
    listed_SV = event_probability(where.dense, choice_model(choice), relevance)[:, :-1]
    return float(np.abs(formula_SV - listed_SV).max())


#: The iteration for losses with an offset ends when no probability moves by more than this, or after so many rounds.
_STILL, _ROUNDS = 1e-6, 200
_TINY = np.finfo(float).tiny


@dataclass(frozen=True, eq=False)
class Weights:
    """E_SV, and exp b_SV where the loss has an offset."""

    weight_SV: Table
    factor_SV: Table | None

    def by_slot(self) -> Table:
        """The softmax that minimises the loss at each slot by itself."""
        return normalised(self.weight_SV if self.factor_SV is None else self.weight_SV / self.factor_SV)

    def by_user(self, user_S: NDArray[Any]) -> Table:
        """The softmax of each user that minimises the loss over all of the user's slots."""
        pool_US = sparse.csr_matrix((np.ones(len(user_S)), (user_S, np.arange(len(user_S)))))
        if self.factor_SV is None:
            return normalised(pool_US @ self.weight_SV)
        return _shared(self.weight_SV, self.factor_SV, user_S, pool_US)


def expected(estimator: Estimator, dense: DenseWorld, p_SV: Table) -> Weights:
    """E_SV over all logs, where p_SV = P(the slot's event is item i): an estimator looks at each event by itself."""
    weight_SV, rows = np.zeros_like(p_SV), np.arange(len(dense))
    for item in range(p_SV.shape[1]):
        signal = _cross_entropy(estimator(dense.all_with(item)))
        weight_SV[rows, signal.target_M.numpy()] += p_SV[:, item] * signal.weight_M.numpy()
    return Weights(weight_SV, None if signal.offset_MV is None else np.exp(signal.offset_MV[:].double().numpy()))


def observed(estimator: Estimator, dense: DenseWorld, slots: Slots) -> Weights:
    """The weights of one log."""
    signal, row_M = _cross_entropy(estimator(slots)), dense.rows(slots).numpy()
    weight_SV = np.zeros_like(dense.theta_SV)
    weight_SV[row_M, signal.target_M.numpy()] = signal.weight_M.numpy()
    if signal.offset_MV is None:
        return Weights(weight_SV, None)
    factor_SV = np.ones_like(weight_SV)
    factor_SV[row_M] = np.exp(signal.offset_MV[:].double().numpy())
    return Weights(weight_SV, factor_SV)


def _cross_entropy(signal: Signal) -> Signal:
    if any(part is not None for part in (signal.rival_MV, signal.imputed_MV, signal.theta_MV, signal.sample)):
        raise ValueError("this loss is no cross-entropy of one target over all items: its minimum is not known here")
    return signal


def normalised(weight: Table) -> Table:
    """Rows that sum to one; rows without weight stay zero."""
    return np.asarray(weight / np.maximum(weight.sum(1, keepdims=True), _TINY))


def _shared(weight_SV: Table, factor_SV: Table, user_S: NDArray[Any], pool_US: Any) -> Table:
    """x_i ← Σ_s E_si / Σ_s (E_s · factor_si / Σ_j factor_sj x_j): each round lowers the loss, to its one minimum."""
    total_UV, total_S = pool_US @ weight_SV, weight_SV.sum(1)
    x_UV = normalised(pool_US @ (weight_SV / factor_SV))
    for _ in range(_ROUNDS):
        mass_S = np.einsum("sv,sv->s", factor_SV, x_UV[user_S])
        pull_UV = pool_US @ (factor_SV * (total_S / np.maximum(mass_S, _TINY))[:, None])
        before_UV, x_UV = x_UV, normalised(total_UV / np.maximum(pull_UV, _TINY))
        if np.abs(x_UV - before_UV).max() < _STILL:
            break
    return x_UV


SEVERITIES = (1.0, 2.0, 3.0, 4.0)


@dataclass(frozen=True)
class Minimiser:
    """The minimum of one loss against that of the ideal loss, for the user who chooses among the exposed."""

    severity: float
    estimator: str
    bias: float | None  # of the loss itself, relative to the ideal; None where it is no estimate of that
    slot_distance: float  # total variation from the ideal's softmax, mean over slots
    slot_first: float  # share of the slots at which the favourite stands first
    user_distance: float  # the same for a model that knows the user but not the step
    user_first: float
    log_first: float  # user_first after one log instead of infinitely many: mean over draws
    low: float
    high: float


def estimators(world: World) -> Mapping[str, Estimator]:
    """The losses by what they are called, the ideal as it is trained: on the slots of the log."""
    return {variant.label: variant.build(world) for variant in (NAIVE, IPS, ITPS, CORRECTED, IDEAL)}


def minimisers(world: World, choice: str, draws: int, seed: int) -> list[Minimiser]:
    """One for each estimator."""
    dense = DenseWorld(world)
    p_SV = CLOSED_FORMS[choice](dense) * dense.gamma_SV
    ideal = Weights(ideal_weight(dense, choice_model(choice)), None)
    logs = [_log(world, choice, np.random.default_rng([seed, nth])) for nth in range(draws)]
    loss_SV = Scores.informed(dense, seed).loss()
    return [
        _compared(
            label, expected(estimator, dense, p_SV), ideal, dense, loss_SV, _after_one_log(estimator, dense, logs)
        )
        for label, estimator in estimators(world).items()
    ]


def by_choice(world: World, choices: Sequence[str]) -> dict[str, dict[str, float]]:
    """Total variation from the ideal's softmax, mean over slots, under each choice model with a closed form."""
    dense, table = DenseWorld(world), {}
    for choice in (name for name in choices if name in CLOSED_FORMS):
        p_SV = CLOSED_FORMS[choice](dense) * dense.gamma_SV
        ideal_SV = normalised(ideal_weight(dense, choice_model(choice)))
        table[choice] = {
            label: distance(expected(estimator, dense, p_SV).by_slot(), ideal_SV)
            for label, estimator in estimators(world).items()
        }
    return table


def distance(p: Table, q: Table) -> float:
    """Total variation ½ Σ_i |p_i − q_i|, mean over rows: the share of the mass that stands at the wrong items."""
    return float(np.abs(p - q).sum(1).mean() / 2)


def first(p_SV: Table, dense: DenseWorld) -> float:
    """Share of the slots at which the favourite has the highest probability; a row without any knows nothing."""
    return float(((p_SV.argmax(1) == dense.favourite_S) & (p_SV.sum(1) > 0)).mean())


def _compared(
    label: str, found: Weights, ideal: Weights, dense: DenseWorld, loss_SV: Table, first_R: NDArray[np.float64]
) -> Minimiser:
    by_slot_SV, by_user_UV = found.by_slot(), found.by_user(dense.user_S)
    one_log = paired(first_R, np.zeros_like(first_R))
    return Minimiser(
        dense.world.severity,
        label,
        None if found.factor_SV is not None else relative_bias(found.weight_SV, ideal.weight_SV, loss_SV),
        distance(by_slot_SV, ideal.by_slot()),
        first(by_slot_SV, dense),
        distance(by_user_UV, ideal.by_user(dense.user_S)),
        first(_spread(by_user_UV, dense), dense),
        one_log.difference,
        float(one_log.low),
        float(one_log.high),
    )


def _spread(by_user_UV: Table, dense: DenseWorld) -> Table:
    """A user's row at each of the user's slots; every user of a world has slots."""
    return by_user_UV[dense.user_S]


def _log(world: World, choice: str, rng: np.random.Generator) -> Slots:
    events = draw(world, rng, choice_model(choice))
    return slots_of(events.user_N, events.item_N, events.step_N)


def _after_one_log(estimator: Estimator, dense: DenseWorld, logs: Sequence[Slots]) -> NDArray[np.float64]:
    """first_R: how often the favourite stands first when each user's softmax is fitted to one log."""
    fitted = (observed(estimator, dense, slots).by_user(dense.user_S) for slots in logs)
    return np.array([first(_spread(by_user_UV, dense), dense) for by_user_UV in fitted])


@dataclass(frozen=True)
class Example:
    """A slot's items from the best to the worst; every list has a number for each."""

    user: int
    step: int
    choice: str
    items: list[str]
    gamma: list[float]
    theta: list[float]
    taken: list[float]  # P(the slot's event is the item)
    learnt: Mapping[str, list[float]]


def example(world: World, choice: str) -> Example:
    """The slot whose favourite is least likely to be seen."""
    dense = DenseWorld(world)
    slot = int(dense.theta_SV[np.arange(len(dense)), dense.favourite_S].argmin())
    order = np.argsort(-dense.logit_SV[slot], kind="stable")
    p_SV = event_probability(dense, choice_model(choice))[:, :-1]
    learnt = {label: expected(it, dense, p_SV).by_slot() for label, it in estimators(world).items()}

    def row(table_SV: Table) -> list[float]:
        return [float(value) for value in table_SV[slot, order]]

    return Example(
        user=int(dense.user_S[slot]),
        step=int(dense.step_S[slot]),
        choice=choice,
        items=[world.items.ids[int(item)] for item in order],
        gamma=row(dense.gamma_SV),
        theta=row(dense.theta_SV),
        taken=row(p_SV),
        learnt={label: row(table_SV) for label, table_SV in learnt.items()},
    )
