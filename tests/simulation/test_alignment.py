"""A log and the part of a world that it shows; logs of other worlds are told apart, and why."""

from dataclasses import replace

import numpy as np
import pytest

from unveil.data.interactions import Interactions
from unveil.data.vocabulary import Vocabulary
from unveil.errors import UnveilError
from unveil.simulation.builtin import WorldSpec
from unveil.simulation.world import World

SPEC = WorldSpec(users=30, items=40, steps=12, shortest=2)
WORLD = World.builtin(SPEC)


def log_of(world: World) -> Interactions:
    """As a file would have it: only users and items that occur."""
    return world.log(np.random.default_rng(0)).compact()


def test_the_part_that_is_shown_is_the_world_at_these_users_and_items() -> None:
    log = log_of(WORLD).where(np.arange(60)).compact()
    part = WORLD.aligned_with(log)
    assert 1 < part.n_items < WORLD.n_items
    assert (part.users, part.items) == (log.users, log.items)
    user_U, item_V = WORLD.users.index(log.users.ids), WORLD.items.index(log.items.ids)
    step_U = np.full(len(user_U), 7)
    here = np.arange(len(user_U))
    for name in ("exposure", "relevance"):
        whole = getattr(WORLD, name)(user_U, step_U)
        np.testing.assert_allclose(getattr(part, name)(here, step_U), whole[:, item_V], rtol=1e-5)
    np.testing.assert_array_equal(part.start_U, WORLD.start_U[user_U])


@pytest.mark.parametrize("severity", [0.5, 1.0, 3.0, 4.25])
def test_a_log_of_another_severity_is_told_by_it(severity: float) -> None:
    log = log_of(WORLD.with_severity(severity))
    told = f"it was drawn at severity {severity:g}, and the world has 2. .*--save-world"
    with pytest.raises(UnveilError, match=told):
        WORLD.aligned_with(log)
    assert WORLD.with_severity(severity).aligned_with(log).n_users == len(log.users)


@pytest.mark.parametrize("other", [WORLD.with_foresight(1), World.builtin(SPEC, seed=1)])
def test_a_log_of_another_exposure_is_refused(other: World) -> None:
    with pytest.raises(UnveilError, match="its propensities are not the exposure of this world"):
        WORLD.aligned_with(log_of(other))


def test_propensities_that_say_nothing_are_refused() -> None:
    log = log_of(WORLD)
    with pytest.raises(UnveilError, match="its propensities are not the exposure of this world"):
        WORLD.aligned_with(replace(log, propensity=np.ones(len(log))))


def test_a_log_without_propensities_is_taken_at_its_word() -> None:
    log = replace(log_of(WORLD), propensity=None)
    assert WORLD.aligned_with(log).n_items == len(log.items)


def test_what_else_does_not_fit_is_said() -> None:
    log = log_of(WORLD)
    assert log.step is not None
    strangers = Vocabulary([f"x{number:03d}" for number in range(len(log.users))])
    for other, why in (
        (replace(log, users=strangers), "its user 'x000' is not in the world"),
        (replace(log, step=log.step + 12), "and the world's last is 11"),
        (replace(log, step=None), "does not say at which step"),
    ):
        with pytest.raises(UnveilError, match=why):
            WORLD.aligned_with(other)
