"""What every registered propensity promises. A new one is tested here by being registered."""

from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import torch

from tests.estimators.toys import Toy, random_world
from unveil.data.interactions import Interactions, Sequences
from unveil.data.slots import Slots
from unveil.errors import UnveilError
from unveil.propensity import time_of_day
from unveil.propensity.base import OF_EVENTS, PROPENSITIES, PropensityModel, Source
from unveil.propensity.build import build
from unveil.propensity.time_of_day_fit import ExposureFit, Learning, fit
from unveil.serving.exposure import exposure_table

TOY = Toy.drawn(random_world(users=30))
_DAY = 86_400_000_000


@pytest.fixture(scope="module")
def learnt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An exposure learnt from the toy log, as if every event were an impression and every step a day."""
    folder = tmp_path_factory.mktemp("learnt")
    clicks = TOY.log.to_frame().select(user_id="user", item_id="item")
    clicks.sample(fraction=0.5, seed=1).write_csv(folder / "random.csv")
    time_of_day.write(fit(_clocked(), ExposureFit(1, 1, learning=Learning(width=3, epochs=2))).model, folder, {})
    return folder


def _clocked() -> Interactions:
    assert TOY.log.step is not None
    rating = np.random.default_rng(1).normal(size=len(TOY.log)).astype(np.float32)
    day = TOY.log.step.astype(np.int64) * _DAY
    return replace(TOY.log, time=day, exposed=np.ones(len(TOY.log), bool), rating=rating)


def _placed() -> Interactions:
    """The same rows at positions, each once more as what was shown elsewhere and left; events keep their rows."""
    log = _clocked()
    twice = log.where(np.tile(np.arange(len(log)), 2))
    clicked = np.arange(len(twice)) < len(log)
    position = np.random.default_rng(2).integers(1, 4, len(twice)).astype(np.int32)
    return replace(twice, clicked=clicked, position=position)


@pytest.fixture(params=list(PROPENSITIES))
def model(request: pytest.FixtureRequest, learnt: Path) -> PropensityModel:
    given = {"path": str(learnt), "slice": str(learnt / "random.csv"), "batches": 40}
    options = {name: given[name] for name in PROPENSITIES.options(request.param) if name in given}
    log = _placed() if PROPENSITIES[request.param].source in ("positions", "impressions") else _clocked()
    return build(request.param, options, TOY.train, window=50, log=log, world=TOY.world)


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
        assert model.source in OF_EVENTS
        return
    assert theta_MV.shape == (40, TOY.world.n_items)
    assert ((theta_MV > 0) & (theta_MV <= 1)).all()
    torch.testing.assert_close(theta_MV.gather(1, slots.item_M[:, None])[:, 0], model(slots))


def test_a_static_propensity_does_not_know_the_step_and_a_temporal_one_does(model: PropensityModel) -> None:
    turned = Slots(TOY.slots.user_M, TOY.slots.item_M, TOY.slots.step_M.flip(0), TOY.slots.event_M)
    same = torch.equal(model(turned), model(TOY.slots))
    by_event = model.source in OF_EVENTS or isinstance(model, time_of_day.TimeOfDay)
    assert same == (model.kind == "static" or by_event)


def test_a_slot_is_judged_by_itself(model: PropensityModel) -> None:
    whole = model(TOY.slots)
    parts = [model(TOY.slots.part(at, at + 7)) for at in range(0, len(TOY.slots), 7)]
    torch.testing.assert_close(torch.cat(parts), whole)
    assert len(model(TOY.slots.part(0, 0))) == 0


def test_fitting_returns_the_model_itself_and_changes_nothing_the_second_time(model: PropensityModel) -> None:
    before = model(TOY.slots)
    assert model.fit(TOY.train) is model
    assert torch.equal(model(TOY.slots), before)


def test_those_who_serve_get_a_value_for_every_item(model: PropensityModel) -> None:
    table = exposure_table(model, Sequences.of(_clocked()), TOY.train)
    assert table is not None
    assert table.source.startswith(model.name)
    known = ~np.isnan(table.theta_SV)
    assert known.all() or model.source in OF_EVENTS
    assert ((table.theta_SV[known] > 0) & (table.theta_SV[known] <= 1)).all()


def test_it_says_what_it_is(model: PropensityModel) -> None:
    assert model.kind in ("static", "temporal")
    assert model.source in get_args(Source)
    assert type(model).__doc__
    assert PROPENSITIES[model.name] is type(model)
