"""What can be tried on a log."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from unveil.estimators.inverse import ITPS
from unveil.propensity.base import PROPENSITIES
from unveil.simulation.builtin import WorldSpec
from unveil.simulation.world import World
from unveil.studies.advise import EFFORTS, scenarios
from unveil.studies.arms import Variant, family
from unveil.studies.candidates import (
    LogShape,
    candidates,
    from_a_log,
    probe,
    some_users,
)
from unveil.studies.decision import Scenario, mean_over_strata


def test_every_combination_that_fits_together() -> None:
    found = candidates(("itps", "ips", "corrected", "itps-shrunk"), ("popularity", "logged"), ("", "5%"))
    assert found.usable == (
        "naive",
        "itps@popularity",
        "itps@popularity+clip=5%",
        "itps@logged",
        "itps@logged+clip=5%",
        "ips@popularity",
        "ips@popularity+clip=5%",
        "corrected@popularity",
        "itps-shrunk@popularity",
        "itps-shrunk@logged",
    ), "logged propensities are temporal, and of the taken item alone; what cuts by itself is not clipped"
    assert candidates(("wmf-distilled", "wmf-distilled-rated"), ("popularity",), ("5%",)).usable == (
        "naive",
        "wmf-distilled",
        "wmf-distilled-rated",
    )
    assert found.ceilings == ("itps@true", "ips@true", "corrected@true", "itps-shrunk@true", "ideal")
    for arm in found.arms:
        Variant.of(arm)


@pytest.mark.parametrize("effort", EFFORTS.values(), ids=EFFORTS)
def test_efforts_name_what_there_is(effort: Mapping[str, Any]) -> None:
    found = candidates(effort["estimators"], ("popularity",), effort["clips"])
    assert len(found.usable) > len(effort["estimators"])
    assert len(scenarios(effort["choices"], effort["severities"])) == len(effort["choices"]) * len(effort["severities"])


@pytest.mark.parametrize("effort", EFFORTS.values(), ids=EFFORTS)
def test_an_effort_can_be_sure_of_something(effort: Mapping[str, Any]) -> None:
    """A gain of five standard deviations of its units stands out from all candidates that a rated log allows."""
    every = dict.fromkeys(family(name) for name in from_a_log() if PROPENSITIES[name].source in ("nothing", "ratings"))
    tried = candidates(effort["estimators"], effort["propensities"] or tuple(every), effort["clips"]).usable
    shape = len(effort["choices"]) * len(effort["severities"]), effort["worlds"], effort["replicates"]
    noise_ZWR = np.random.default_rng(0).normal(size=shape)
    found = mean_over_strata(noise_ZWR)
    deviation = found.difference / found.effect
    p = mean_over_strata(noise_ZWR - found.difference + 5 * deviation).p
    assert len(tried) > 10
    assert p * (len(tried) - 1) < 0.05


def test_what_says_that_it_cuts_its_weights_is_not_clipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ITPS, "cuts", True)
    assert candidates(("itps", "ips"), ("popularity",), ("5%",)).usable[1:] == (
        "itps@popularity",
        "ips@popularity+clip=5%",
    )


def test_a_propensity_is_probed_by_building_it() -> None:
    log = World.builtin(WorldSpec(users=12, items=10, steps=8), 0).log(np.random.default_rng(0))
    names = from_a_log()
    assert "known-temporal" not in names
    some = ["popularity-temporal", "timing", "logged", "learnt-temporal"]
    assert set(some) < set(names)
    found = probe(some, log, 20)
    assert found["popularity-temporal"] == found["timing"] == ""
    assert found["logged"] == "", "a drawn log carries its propensities"
    assert "learnt exposure" in found["learnt-temporal"]


def test_scenarios_draw_apart() -> None:
    found = scenarios(("rational_exposed", "categorical_exposed"), (1.0, 3.0), (0.25,))
    assert len({each.seed for each in found}) == 4
    assert found[0].key == "rational_exposed-p1-l0.25"
    assert str(Scenario("rational_exposed", 3.0)) == "rational, exposed, p = 3"


def test_some_users_of_a_log_and_how_it_looks() -> None:
    log = World.builtin(WorldSpec(users=30, items=10, steps=8), 0).log(np.random.default_rng(0))
    some = some_users(log, 5, seed=1)
    assert len(some.users) == 5
    assert set(some.users.ids) <= set(log.users.ids)
    assert np.bincount(some.user).min() >= 3
    assert some == some_users(log, 5, seed=1)
    looks = LogShape.of(some)
    assert looks.events == len(some)
    assert looks.length == pytest.approx(len(some) / 5)
    count_V = np.sort(np.bincount(some.item))[::-1]
    assert looks.head == pytest.approx(count_V[0] / len(some), abs=1e-6)
