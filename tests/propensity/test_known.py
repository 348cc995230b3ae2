"""True and logged propensities: at the slot's own user, item, step and event."""

import numpy as np
import pytest
import torch

from tests.estimators.toys import Toy, random_world
from unveil.data.slots import Slots
from unveil.errors import UnveilError
from unveil.estimators.base import ESTIMATORS, cloze_risk
from unveil.estimators.base import build as estimator_of
from unveil.propensity.build import build
from unveil.propensity.known import KnownStatic, KnownTemporal, Logged
from unveil.propensity.popularity import TemporalPopularity


@pytest.fixture(scope="module")
def toy() -> Toy:
    return Toy.drawn(random_world(users=30))


def test_what_the_log_recorded_is_what_the_world_knows(toy: Toy) -> None:
    assert toy.log.propensity is not None
    logged = Logged(toy.log.propensity).fit(toy.train)
    torch.testing.assert_close(logged(toy.slots), KnownTemporal(toy.world)(toy.slots))


def test_the_slots_own_step_decides_not_its_place(toy: Toy) -> None:
    known = KnownTemporal(toy.world)
    later = Slots(toy.slots.user_M, toy.slots.item_M, (toy.slots.step_M + 1) % toy.world.n_steps)
    assert not torch.allclose(known(toy.slots), known(later))
    static = KnownStatic(toy.world)
    assert torch.equal(static(toy.slots), static(later))


def test_static_is_the_mean_over_the_steps_of_the_world(toy: Toy) -> None:
    known = KnownTemporal(toy.world)
    theta_M = torch.zeros(len(toy.slots), dtype=torch.float64)
    for step in range(toy.world.n_steps):
        step_M = torch.full_like(toy.slots.step_M, step)
        theta_M += known(Slots(toy.slots.user_M, toy.slots.item_M, step_M)).double() / toy.world.n_steps
    for model in (KnownStatic(toy.world), KnownStatic(toy.world).fit(toy.train)):
        torch.testing.assert_close(model(toy.slots).double(), theta_M, rtol=1e-5, atol=0)


def test_a_propensity_that_rounds_to_nothing_stays_above_zero() -> None:
    world = random_world().with_severity(2000.0)
    slots = Toy.drawn(random_world()).slots
    assert (world.exposure_of(slots.user_M.numpy(), slots.item_M.numpy(), slots.step_M.numpy()) == 0).any()
    assert (KnownTemporal(world)(slots) > 0).all()


def test_logged_propensities_must_be_propensities(toy: Toy) -> None:
    assert toy.log.propensity is not None
    theta_N = toy.log.propensity.copy()
    for wrong in (0.0, 1.5, np.nan):
        theta_N[toy.train.event_N[:2]] = wrong
        with pytest.raises(UnveilError, match="2 training events, first row 1 of the log"):
            Logged(theta_N).fit(toy.train)


def test_a_log_does_not_say_how_likely_other_items_were(toy: Toy) -> None:
    with pytest.raises(UnveilError, match="not of every item"):
        Logged(np.ones(len(toy.log))).of_all(toy.slots)
    nowhere = Slots(toy.slots.user_M, toy.slots.item_M, toy.slots.step_M)
    with pytest.raises(UnveilError, match="for events of the log only"):
        Logged(np.ones(len(toy.log)))(nowhere)


def test_the_hint_names_all_estimators_that_can_use_logged_propensities(toy: Toy) -> None:
    logged = Logged(np.ones(len(toy.log)))
    able = [name for name in ESTIMATORS if _has_a_signal(name, logged, toy)]
    assert set(able) == {"doubly-robust", "itps", "itps-shrunk"}
    with pytest.raises(UnveilError) as refused:
        logged.of_all(toy.slots)
    assert refused.value.hint is not None
    named = refused.value.hint.partition("(")[2].partition(")")[0]
    assert set(named.split(", ")) == set(able)


def _has_a_signal(name: str, theta: Logged, toy: Toy) -> bool:
    """Whether an estimator that needs a propensity can be told this one, in training too."""
    if ESTIMATORS[name].needs not in ("static", "temporal"):
        return False
    try:
        estimator = estimator_of(name, {}, propensity=theta, train=toy.train)
        h_MD, table_VD = torch.zeros(len(toy.slots), 2), torch.zeros(toy.world.n_items, 2)
        cloze_risk(h_MD, table_VD, torch.zeros(toy.world.n_items), estimator(toy.slots))
    except UnveilError:
        return False
    return True


def test_models_are_built_by_name_and_count_in_the_window(toy: Toy) -> None:
    model = build("popularity-temporal", {"half_width": 2}, toy.train, window=4)
    assert isinstance(model, TemporalPopularity)
    assert (model.window, model.half_width) == (4, 2)
    assert isinstance(build("known-static", {}, toy.train, window=4, world=toy.world), KnownStatic)
    assert isinstance(build("logged", {}, toy.train, log=toy.log), Logged)


@pytest.mark.parametrize(
    ("name", "options", "told"),
    [
        ("known-temporal", {}, "'known-temporal' needs a world whose exposure is known, and there is none"),
        ("logged", {}, "'logged' needs a log with a propensity column, and there is none"),
        ("popularity", {}, "unknown propensity: found 'popularity'"),
        ("popularity-static", {"ad": 1.0}, "found 'ad', expected one of window, add. Did you mean 'add'"),
        (
            "popularity-temporal",
            {"half_width": 0.5},
            "half_width: .* found 0.5, expected a whole number",
        ),
    ],
)
def test_what_is_missing_or_wrong_is_said(toy: Toy, name: str, options: dict[str, object], told: str) -> None:
    with pytest.raises(UnveilError, match=told):
        build(name, options, toy.train)
