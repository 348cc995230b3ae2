"""The paper's propositions as claims that are checked, and what minimises each loss.

Shapes: S slots of the world, U users, V items, R drawn logs.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.data.slots import Slots
from unveil.estimators.base import Estimator, Signal
from unveil.evaluation.statistics import paired
from unveil.simulation.choice import CHOICES
from unveil.simulation.theory import enumeration, losses
from unveil.simulation.theory.enumeration import DenseWorld, Relevance, Table, closed_form, ideal_weight
from unveil.simulation.theory.losses import IDEAL, IPS, ITPS, NAIVE, Compared, LossComparison, Masking, Variant
from unveil.simulation.world import World

#: Propensities are single-precision numbers: below this relative bias there is none.
TOLERANCE = 1e-5

Kind = Literal["unbiased", "biased"]
ALL, EXPOSED = "rational_all", "rational_exposed"
CHANCE_ALL, CHANCE_EXPOSED = "categorical_all", "categorical_exposed"
P1, P2, P3, ASSUMED, TRAINED = "Proposition 1", "Proposition 2", "Proposition 3", "Assumptions", "In training"
CLIP = 0.5
_TINY = np.finfo(float).tiny
SEVERITIES = (1.0, 2.0, 3.0, 4.0)


def with_verdict(finding: Mapping[str, Any]) -> dict[str, Any]:
    """A claim about a loss's expectation over all logs, with its verdict; `formula` is the bias by closed form."""
    bias, formula = Compared(**finding["compared"]).bias, finding["formula"]
    found: Kind = "biased" if abs(bias) > TOLERANCE else "unbiased"
    verdict = "holds" if found == finding["claimed"] else "does not hold"
    if formula is not None and abs(bias - formula) > TOLERANCE * (1 + abs(formula)):
        verdict = "formula off"
    return {**finding, "bias": bias, "found": found, "holds": verdict == "holds", "verdict": verdict}


class Claim(NamedTuple):
    """What is said of a loss, in which of the tiny worlds, and for which users."""

    topic: str
    subject: str
    claimed: Kind
    setting: str
    variant: Variant
    world: str = "moving"
    choice: str = ALL
    relevance: Relevance = "drawn"
    masking: Masking | None = None


def claims(clip_matters: bool) -> list[Claim]:
    """All of them, in the order of the paper; whether a clip biases depends on the θ of the favourites."""
    biased: Kind = "biased" if clip_matters else "unbiased"
    clip = f"with θ clipped at {CLIP:g}, {'above some' if clip_matters else 'below all'} θ of the favourites"
    clipped, divided = losses.clipped(CLIP), "if it and the ideal are divided by the sums of their weights"
    noisy = Variant("ITPS, θ ± 1 logit", "itps", noise=1.0)
    chance, masked = Masking(0.2, 0.0, always_mask=False), Masking(0.2, 0.1)
    return [
        Claim(P1, "the naive loss is", "biased", "where θ is below 1", NAIVE),
        Claim(P1, "it would be", "unbiased", "if all items were seen (θ = 1)", NAIVE, "all_shown"),
        Claim(P2, "IPS is", "unbiased", "if θ is the same at all steps", IPS, "still"),
        Claim(P2, "IPS is", "biased", "if θ changes with the step", IPS),
        Claim(P2, "IPS is", "biased", "even if θ changes only for items that nobody chooses", IPS, "moving_unchosen"),
        Claim(P3, "ITPS is", "unbiased", "for users who choose the best of all items (the proof)", ITPS),
        Claim(P3, "ITPS is", "unbiased", "for users who choose by chance among all items", ITPS, choice=CHANCE_ALL),
        Claim(P3, "ITPS is", "unbiased", "for users who choose the best exposed item", ITPS, choice=EXPOSED),
        Claim(P3, "ITPS is", "unbiased", "for users who choose an exposed item by chance", ITPS, choice=CHANCE_EXPOSED),
        Claim(P3, "ITPS is", "unbiased", "if R = 1, against the ideal without γ", ITPS, relevance="certain"),
        Claim(ASSUMED, "ITPS is", "unbiased", "if θ follows γ, but O and R are independent", ITPS, "related"),
        Claim(ASSUMED, "ITPS is", "biased", "if one random number decides O and R", ITPS, relevance="shared draw"),
        Claim(ASSUMED, "ITPS is", "biased", "by θ/θ̂, if θ̂ is off by 1 logit", noisy),
        Claim(TRAINED, "ITPS is", biased, clip, clipped),
        Claim(TRAINED, "ITPS is", "biased", divided, losses.NORMALISED),
        Claim(TRAINED, "ITPS is", "unbiased", "if events are masked by chance alone", ITPS, masking=chance),
        Claim(TRAINED, "ITPS is", "unbiased", "if each row has a masked event (ideal alike)", ITPS, masking=masked),
        Claim(TRAINED, "the ideal loss itself is", "biased", "as it is trained, on slots with an event", IDEAL),
    ]


def enumerated(severity: float = 1.0, seed: int = 0) -> dict[str, LossComparison]:
    """The tiny worlds by name, with all their logs."""
    return {name: LossComparison.of(world, seed) for name, world in enumeration.tiny_worlds(severity, seed).items()}


def findings(worlds: Mapping[str, LossComparison]) -> Iterator[dict[str, Any]]:
    """Every claim, checked in the world that it speaks of."""
    dense = worlds["moving"].dense
    for each in claims(bool((dense.theta_SV[np.arange(len(dense)), dense.favourite_S] < CLIP).any())):
        where, users = worlds[each.world], (each.choice, each.relevance)
        p_SV, ideal_SV = closed_form(where.dense, *users), ideal_weight(where.dense, *users)
        yield {
            "topic": each.topic,
            "claim": f"{each.subject} {each.claimed}",
            "setting": each.setting,
            "claimed": each.claimed,
            "compared": vars(where.compare(each.variant, *users, each.masking)),
            "formula": where.by_formula(each.variant, p_SV, ideal_SV) if each.masking is None else None,
        }


def choosers(where: LossComparison) -> Iterator[dict[str, Any]]:
    """The bias of each loss under every choice model; `formula_error` is the largest of P(event) by formula."""
    relevances: Sequence[Relevance] = ("drawn", "certain")
    for relevance, choice in product(relevances, CHOICES):
        listed_SV = enumeration.event_probability(where.dense, choice, relevance)[:, :-1]
        formula_SV = closed_form(where.dense, choice, relevance)
        yield {
            "choice": choice,
            "relevance": relevance,
            "depends_on_exposure": choice_depends_on_exposure(where.dense, choice),
            "bias": {each.label: where.compare(each, choice, relevance).bias for each in (NAIVE, IPS, ITPS)},
            "formula_error": None if formula_SV is None else float(np.abs(formula_SV - listed_SV).max()),
        }


def choice_depends_on_exposure(dense: DenseWorld, choice: str) -> bool:
    """Whether P(C | O) differs between everything seen and one item hidden."""
    shape, probability = dense.logit_SV.shape, CHOICES[choice]().probability
    whole_SV = probability(dense.logit_SV, np.ones(shape, bool))
    parts = (np.broadcast_to(seen_V, shape) for seen_V in ~np.eye(shape[1], dtype=bool))
    return not all(np.allclose(probability(dense.logit_SV, seen_SV), whole_SV) for seen_SV in parts)


@dataclass(frozen=True, eq=False)
class Weights:
    """E_SV, and exp b_SV where the loss has an offset."""

    weight_SV: Table
    factor_SV: Table | None = None

    def by_slot(self) -> Table:
        """The softmax that minimises the loss at each slot by itself."""
        return normalised(self.weight_SV if self.factor_SV is None else self.weight_SV / self.factor_SV)

    def by_user(self, user_S: NDArray[Any]) -> Table:
        """The softmax of each user that minimises the loss over all of the user's slots.

        With an offset, iterate to the one minimum: x_i ← Σ_s E_si / Σ_s (E_s · factor_si / Σ_j factor_sj x_j).
        """
        pool_US = sparse.csr_matrix((np.ones(len(user_S)), (user_S, np.arange(len(user_S)))))
        total_UV, total_S = pool_US @ self.weight_SV, self.weight_SV.sum(1)
        if self.factor_SV is None:
            return normalised(total_UV)
        x_UV = normalised(pool_US @ (self.weight_SV / self.factor_SV))
        for _ in range(200):
            mass_S = np.einsum("sv,sv->s", self.factor_SV, x_UV[user_S])
            pull_UV = pool_US @ (self.factor_SV * (total_S / np.maximum(mass_S, _TINY))[:, None])
            before_UV, x_UV = x_UV, normalised(total_UV / np.maximum(pull_UV, _TINY))
            if np.abs(x_UV - before_UV).max() < 1e-6:
                break
        return x_UV


def normalised(weight: Table) -> Table:
    """Rows that sum to one; rows without weight stay zero."""
    return np.asarray(weight / np.maximum(weight.sum(1, keepdims=True), _TINY))


def observed(estimator: Estimator, dense: DenseWorld, slots: Slots) -> Weights:
    """The weights of one log."""
    signal, row_M = _cross_entropy(estimator(slots)), dense.rows(slots).numpy()
    weight_SV = np.zeros_like(dense.theta_SV)
    weight_SV[row_M, signal.target_M.numpy()] = signal.weight_M.numpy()
    if signal.offset_MV is None:
        return Weights(weight_SV)
    factor_SV = np.ones_like(weight_SV)
    factor_SV[row_M] = np.exp(signal.offset_MV[:].double().numpy())
    return Weights(weight_SV, factor_SV)


def expected(estimator: Estimator, dense: DenseWorld, p_SV: Table) -> Weights:
    """E_SV over all logs, where p_SV = P(the slot's event is item i): an estimator looks at each event by itself."""
    weight_SV, rows = np.zeros_like(p_SV), np.arange(len(dense))
    for item in range(p_SV.shape[1]):
        signal = _cross_entropy(estimator(dense.all_with(item)))
        weight_SV[rows, signal.target_M.numpy()] += p_SV[:, item] * signal.weight_M.numpy()
    return Weights(weight_SV, None if signal.offset_MV is None else np.exp(signal.offset_MV[:].double().numpy()))


def _cross_entropy(signal: Signal) -> Signal:
    if any(part is not None for part in (signal.rival_MV, signal.imputed_MV, signal.theta_MV, signal.sample)):
        raise ValueError("this loss is no cross-entropy of one target over all items: its minimum is not known here")
    return signal


def estimators(world: World) -> Mapping[str, Estimator]:
    """The losses by what they are called, the ideal as it is trained: on the slots of the log."""
    return {each.label: each.build(world) for each in (NAIVE, IPS, ITPS, losses.CORRECTED, IDEAL)}


def minimisers(world: World, draws: int, seed: int) -> Iterator[dict[str, Any]]:
    """The minimum of each loss against that of the ideal loss, for users who choose among the exposed."""
    compared = LossComparison.of(world, seed)
    dense, loss_SV = compared.dense, compared.loss_SV
    user_S, p_SV = dense.user_S, closed_form(dense, EXPOSED)
    assert p_SV is not None
    ideal = Weights(ideal_weight(dense, EXPOSED))
    logs = [enumeration.draw_slots(world, EXPOSED, seed, nth) for nth in range(draws)]
    for label, estimator in estimators(world).items():
        found = expected(estimator, dense, p_SV)
        by_slot_SV, by_user_UV = found.by_slot(), found.by_user(user_S)
        first_R = np.array([first(observed(estimator, dense, log).by_user(user_S)[user_S], dense) for log in logs])
        one_log, is_estimate = paired(first_R, np.zeros_like(first_R)), found.factor_SV is None
        yield {
            "severity": world.severity,
            "estimator": label,
            # Of the loss itself, relative to the ideal; None where it is no estimate of that.
            "bias": losses.relative_bias(found.weight_SV, ideal.weight_SV, loss_SV) if is_estimate else None,
            "slot_distance": distance(by_slot_SV, ideal.by_slot()),
            "slot_first": first(by_slot_SV, dense),
            # The same for a model that knows the user but not the step.
            "user_distance": distance(by_user_UV, ideal.by_user(user_S)),
            "user_first": first(by_user_UV[user_S], dense),
            # After one log instead of infinitely many: mean over draws.
            "log_first": one_log.difference,
            "low": float(one_log.low),
            "high": float(one_log.high),
        }


def by_choice(world: World) -> dict[str, dict[str, float]]:
    """Total variation from the ideal's softmax, mean over slots, under each choice model with a closed form."""
    dense, known = DenseWorld(world), estimators(world).items()
    table: dict[str, dict[str, float]] = {}
    for choice in CHOICES:
        if (p_SV := closed_form(dense, choice)) is not None:
            ideal_SV = normalised(ideal_weight(dense, choice))
            table[choice] = {name: distance(expected(loss, dense, p_SV).by_slot(), ideal_SV) for name, loss in known}
    return table


def distance(p: Table, q: Table) -> float:
    """Total variation ½ Σ_i |p_i − q_i|, mean over rows: the share of the mass that stands at the wrong items."""
    return float(np.abs(p - q).sum(1).mean() / 2)


def first(p_SV: Table, dense: DenseWorld) -> float:
    """Share of the slots at which the favourite has the highest probability; a row without any knows nothing."""
    return float(((p_SV.argmax(1) == dense.favourite_S) & (p_SV.sum(1) > 0)).mean())


def example(dense: DenseWorld) -> dict[str, Any]:
    """The slot whose favourite is least likely to be seen: its items from the best to the worst, a number for each."""
    slot = int(dense.theta_SV[np.arange(len(dense)), dense.favourite_S].argmin())
    order = np.argsort(-dense.logit_SV[slot], kind="stable")
    p_SV = enumeration.event_probability(dense, EXPOSED)[:, :-1]
    softmax = {label: expected(it, dense, p_SV).by_slot() for label, it in estimators(dense.world).items()}
    return {
        "user": int(dense.user_S[slot]),
        "step": int(dense.step_S[slot]),
        "choice": EXPOSED,
        "items": [dense.world.items.ids[int(item)] for item in order],
        "gamma": dense.gamma_SV[slot, order].tolist(),
        "theta": dense.theta_SV[slot, order].tolist(),
        "taken": p_SV[slot, order].tolist(),  # P(the slot's event is the item)
        "learnt": {label: p_SV[slot, order].tolist() for label, p_SV in softmax.items()},
    }
