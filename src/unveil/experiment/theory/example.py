"""One slot of a tiny world, item by item: what is shown, what is taken, and what each loss would learn from it."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from unveil.experiment.theory.laid_open import LaidOpen, Table
from unveil.experiment.theory.learnt import expected
from unveil.experiment.theory.minimisers import estimators
from unveil.experiment.theory.outcomes import event_probability
from unveil.simulation.choice import choice_model
from unveil.simulation.world import World


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
    laid = LaidOpen(world)
    slot = int(laid.theta_SV[np.arange(len(laid)), laid.favourite_S].argmin())
    order = np.argsort(-laid.logit_SV[slot], kind="stable")
    p_SV = event_probability(laid, choice_model(choice))[:, :-1]
    learnt = {label: expected(it, laid, p_SV).by_slot() for label, it in estimators(world).items()}

    def row(table_SV: Table) -> list[float]:
        return [float(value) for value in table_SV[slot, order]]

    return Example(
        user=int(laid.user_S[slot]),
        step=int(laid.step_S[slot]),
        choice=choice,
        items=[world.items.ids[int(item)] for item in order],
        gamma=row(laid.gamma_SV),
        theta=row(laid.theta_SV),
        taken=row(p_SV),
        learnt={label: row(table_SV) for label, table_SV in learnt.items()},
    )
