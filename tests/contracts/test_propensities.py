"""What every registered propensity promises. A new one is tested here by being registered."""

import pytest
import torch

from tests.estimators.toys import Toy, random_world
from unveil.data.slots import Slots
from unveil.errors import UnveilError
from unveil.propensity.base import PROPENSITIES, PropensityModel
from unveil.propensity.build import build

TOY = Toy.drawn(random_world(users=30))


@pytest.fixture(params=list(PROPENSITIES))
def model(request: pytest.FixtureRequest) -> PropensityModel:
    return build(request.param, {}, TOY.train, window=50, log=TOY.log, world=TOY.world)


def test_every_value_is_a_probability_above_zero(model: PropensityModel) -> None:
    theta_M = model(TOY.slots)
    assert theta_M.shape == (len(TOY.slots),)
    assert theta_M.dtype == torch.float32
    assert ((theta_M > 0) & (theta_M <= 1)).all()


def test_all_items_and_the_slots_own_agree(model: PropensityModel) -> None:
    slots = TOY.slots.part(0, 40)
    try:
        theta_MV = model.of_all(slots)
    except UnveilError:
        assert model.source == "logged"
        return
    assert theta_MV.shape == (40, TOY.world.n_items)
    assert ((theta_MV > 0) & (theta_MV <= 1)).all()
    torch.testing.assert_close(theta_MV.gather(1, slots.item_M[:, None])[:, 0], model(slots))


def test_a_static_propensity_does_not_know_the_step_and_a_temporal_one_does(model: PropensityModel) -> None:
    turned = Slots(TOY.slots.user_M, TOY.slots.item_M, TOY.slots.step_M.flip(0), TOY.slots.event_M)
    same = torch.equal(model(turned), model(TOY.slots))
    assert same == (model.kind == "static" or model.source == "logged")


def test_a_slot_is_judged_by_itself(model: PropensityModel) -> None:
    whole = model(TOY.slots)
    parts = [model(TOY.slots.part(at, at + 7)) for at in range(0, len(TOY.slots), 7)]
    torch.testing.assert_close(torch.cat(parts), whole)
    assert len(model(TOY.slots.part(0, 0))) == 0


def test_fitting_returns_the_model_itself_and_changes_nothing_the_second_time(model: PropensityModel) -> None:
    before = model(TOY.slots)
    assert model.fit(TOY.train) is model
    assert torch.equal(model(TOY.slots), before)


def test_it_says_what_it_is(model: PropensityModel) -> None:
    assert model.kind in ("static", "temporal")
    assert model.source in ("nothing", "logged", "truth")
    assert type(model).__doc__
    assert PROPENSITIES[model.name] is type(model)
