"""How far from the truth each loss leads a model that minimises it. Shapes: S slots, V items, U users, R draws."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unveil.data.slots import Slots
from unveil.estimators.base import Estimator
from unveil.evaluation.stats import paired
from unveil.experiment.theory.closed_form import CLOSED_FORMS
from unveil.experiment.theory.equations import relative_bias
from unveil.experiment.theory.laid_open import LaidOpen, Table, slots_of
from unveil.experiment.theory.learnt import Weights, expected, normalised, observed
from unveil.experiment.theory.outcomes import ideal_weight
from unveil.experiment.theory.scores import Scores
from unveil.experiment.theory.variants import CORRECTED, IDEAL, IPS, ITPS, NAIVE
from unveil.simulation.choice import choice_model
from unveil.simulation.generate import draw
from unveil.simulation.world import World

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
    laid = LaidOpen(world)
    p_SV = CLOSED_FORMS[choice](laid) * laid.gamma_SV
    ideal = Weights(ideal_weight(laid, choice_model(choice)), None)
    logs = [_log(world, choice, np.random.default_rng([seed, nth])) for nth in range(draws)]
    loss_SV = Scores.informed(laid, seed).loss()
    return [
        _compared(label, expected(estimator, laid, p_SV), ideal, laid, loss_SV, _after_one_log(estimator, laid, logs))
        for label, estimator in estimators(world).items()
    ]


def by_choice(world: World, choices: Sequence[str]) -> dict[str, dict[str, float]]:
    """Total variation from the ideal's softmax, mean over slots, under each choice model with a closed form."""
    laid, table = LaidOpen(world), {}
    for choice in (name for name in choices if name in CLOSED_FORMS):
        p_SV = CLOSED_FORMS[choice](laid) * laid.gamma_SV
        ideal_SV = normalised(ideal_weight(laid, choice_model(choice)))
        table[choice] = {
            label: distance(expected(estimator, laid, p_SV).by_slot(), ideal_SV)
            for label, estimator in estimators(world).items()
        }
    return table


def distance(p: Table, q: Table) -> float:
    """Total variation ½ Σ_i |p_i − q_i|, mean over rows: the share of the mass that stands at the wrong items."""
    return float(np.abs(p - q).sum(1).mean() / 2)


def first(p_SV: Table, laid: LaidOpen) -> float:
    """Share of the slots at which the favourite has the highest probability; a row without any knows nothing."""
    return float(((p_SV.argmax(1) == laid.favourite_S) & (p_SV.sum(1) > 0)).mean())


def _compared(
    label: str, found: Weights, ideal: Weights, laid: LaidOpen, loss_SV: Table, first_R: NDArray[np.float64]
) -> Minimiser:
    by_slot_SV, by_user_UV = found.by_slot(), found.by_user(laid.user_S)
    one_log = paired(first_R, np.zeros_like(first_R))
    return Minimiser(
        laid.world.severity,
        label,
        None if found.factor_SV is not None else relative_bias(found.weight_SV, ideal.weight_SV, loss_SV),
        distance(by_slot_SV, ideal.by_slot()),
        first(by_slot_SV, laid),
        distance(by_user_UV, ideal.by_user(laid.user_S)),
        first(_spread(by_user_UV, laid), laid),
        one_log.difference,
        float(one_log.low),
        float(one_log.high),
    )


def _spread(by_user_UV: Table, laid: LaidOpen) -> Table:
    """A user's row at each of the user's slots; every user of a world has slots."""
    return by_user_UV[laid.user_S]


def _log(world: World, choice: str, rng: np.random.Generator) -> Slots:
    events = draw(world, rng, choice_model(choice))
    return slots_of(events.user_N, events.item_N, events.step_N)


def _after_one_log(estimator: Estimator, laid: LaidOpen, logs: Sequence[Slots]) -> NDArray[np.float64]:
    """first_R: how often the favourite stands first when each user's softmax is fitted to one log."""
    fitted = (observed(estimator, laid, slots).by_user(laid.user_S) for slots in logs)
    return np.array([first(_spread(by_user_UV, laid), laid) for by_user_UV in fitted])
