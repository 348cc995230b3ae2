"""Expectations over all logs: against an independent sum, with a real model, and able to catch a wrong estimator."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
import torch

from tests.estimators.toys import random_world
from unveil.data.slots import Slots, mask_token
from unveil.estimators.base import Estimator, Need, Signal, cloze_risk
from unveil.estimators.naive import Ideal
from unveil.models.bert4rec import BERT4Rec, BERT4RecConfig
from unveil.propensity.base import PropensityModel
from unveil.propensity.known import KnownTemporal
from unveil.simulation.choice import CHOICES
from unveil.simulation.theory.claims import TOLERANCE, with_verdict
from unveil.simulation.theory.enumeration import DenseWorld, event_probability, ideal_weight, tiny_worlds
from unveil.simulation.theory.losses import (
    IDEAL,
    IPS,
    ITPS,
    NAIVE,
    NORMALISED,
    LossComparison,
    Variant,
    clipped,
)
from unveil.simulation.world import World


@dataclass(frozen=True, eq=False)
class Squared:
    """A wrong estimator: w = 1/θ²."""

    propensity: PropensityModel
    name: ClassVar[str] = "squared"
    needs: ClassVar[Need] = "temporal"
    self_normalised: ClassVar[bool] = False

    def __call__(self, slots: Slots) -> Signal:
        return Signal(slots.item_M, self.propensity(slots) ** -2)


class Given(Variant):
    """An estimator that is already built."""

    def build(self, world: World) -> Estimator:
        built: Estimator = self.options["built"]
        return built


@pytest.fixture(scope="module")
def tiny() -> LossComparison:
    return LossComparison.of(tiny_worlds(severity=2.0, seed=1)["moving"])


@pytest.mark.parametrize("choice", list(CHOICES))
@pytest.mark.parametrize("variant", [NAIVE, IPS, ITPS, clipped(0.4), IDEAL], ids=lambda variant: variant.label)
def test_the_expectation_is_the_sum_over_slots_and_items(tiny: LossComparison, variant: Variant, choice: str) -> None:
    # These losses add up over slots, so the expectation over logs is one over the events of each slot.
    dense, h_SD, estimator = tiny.dense, tiny.h_SD, variant.build(tiny.dense.world)
    p_SV1 = event_probability(dense, choice)
    total = 0.0
    for slot in range(len(dense)):
        for item in range(dense.world.n_items):
            one = Slots(*(torch.tensor([index]) for index in (int(dense.user_S[slot]), item, int(dense.step_S[slot]))))
            risk = cloze_risk(h_SD[[slot]], tiny.table_VD, tiny.bias_V, estimator(one), normaliser=len(dense))
            total += p_SV1[slot, item] * float(risk)
    assert tiny.compare(variant, choice).expected == pytest.approx(total, rel=1e-9)


@pytest.mark.parametrize("choice", ["rational_all", "rational_exposed"])
def test_the_ideal_is_that_of_the_ideal_estimator(tiny: LossComparison, choice: str) -> None:
    every = tiny.dense.all_with(0)
    risk = cloze_risk(tiny.h_SD, tiny.table_VD, tiny.bias_V, Ideal(tiny.dense.world)(every), normaliser=len(every))
    assert tiny.compare(ITPS, choice).ideal == pytest.approx(float(risk), rel=1e-6)


def test_the_plain_formula_of_the_loss_is_the_loss(tiny: LossComparison) -> None:
    weight_SV = ideal_weight(tiny.dense, "categorical_all")
    assert tiny.ideal(weight_SV, 3.0) == pytest.approx(float((weight_SV * tiny.loss_SV).sum()) / 3.0)


def test_a_wrong_estimator_is_caught(tiny: LossComparison) -> None:
    wrong = Squared(KnownTemporal(tiny.dense.world))
    compared = tiny.compare(Given("wrong", "itps", {"built": wrong}), "rational_all")
    claimed = {"claimed": "unbiased", "formula": None}
    found = with_verdict({**claimed, "compared": vars(compared)})
    assert found["bias"] > 0.5
    assert (found["found"], found["verdict"]) == ("biased", "does not hold")
    right = with_verdict({**claimed, "compared": vars(tiny.compare(ITPS, "rational_all"))})
    assert (right["found"], right["verdict"]) == ("unbiased", "holds")


def test_a_slot_looked_up_at_the_wrong_step_is_caught(tiny: LossComparison) -> None:
    class OneStepOff(KnownTemporal):
        def __call__(self, slots: Slots) -> torch.Tensor:
            return super().__call__(replace(slots, step_M=1 - slots.step_M))

    wrong = ITPS.build(tiny.dense.world)
    wrong = type(wrong)(OneStepOff(tiny.dense.world))  # type: ignore[call-arg]
    assert abs(tiny.compare(Given("wrong", "itps", {"built": wrong}), "rational_all").bias) > 0.01


def test_a_formula_that_differs_from_the_enumeration_is_told() -> None:
    claimed = {"claimed": "biased", "compared": {"expected": 1.5, "ideal": 1.0}}
    close, off = (with_verdict({**claimed, "formula": formula}) for formula in (0.5, 0.6))
    assert (close["verdict"], off["verdict"]) == ("holds", "formula off")
    assert not off["holds"]


@pytest.mark.parametrize("seed", range(3))
def test_a_real_model_on_a_fixed_context_shows_the_same(seed: int) -> None:
    dense = DenseWorld(random_world(users=1, items=3, steps=3, seed=seed))
    model = BERT4Rec(BERT4RecConfig(width=8, blocks=1, heads=2, length=3, dropout=0.0), 3, seed=seed).eval()
    token_BL = torch.tensor([[0, mask_token(3), 2], [1, 1, mask_token(3)], [mask_token(3), 0, 1]])
    with torch.no_grad():
        h_MD, table_VD, bias_V = model.head(model(token_BL, (torch.arange(3), torch.tensor([1, 2, 0]))))
    whole = LossComparison(dense, h_MD.double(), table_VD.detach().double(), bias_V.detach().double())
    assert abs(whole.compare(ITPS, "rational_all").bias) < TOLERANCE
    assert abs(whole.compare(ITPS, "rational_exposed").bias) > 0.01
    assert abs(whole.compare(NAIVE, "rational_all").bias) > 0.05


def test_self_normalised_in_a_world_of_one_slot_is_exact() -> None:
    # Only the favourite is ever taken, and whatever its weight, the weighted mean of one loss is that loss.
    whole = LossComparison.of(random_world(users=1, items=2, steps=1))
    assert whole.compare(NORMALISED, "rational_all").bias == pytest.approx(0, abs=1e-9)
    assert abs(whole.compare(NORMALISED, "rational_exposed").bias) > 0.01


def test_risks_of_a_log_without_events_are_zero(tiny: LossComparison) -> None:
    empty = np.flatnonzero((tiny.item_GS < 0).all(1))
    assert len(empty) == 1
    for variant in (NAIVE, NORMALISED, IDEAL):
        assert tiny.risks(variant)[empty[0]] == 0.0
