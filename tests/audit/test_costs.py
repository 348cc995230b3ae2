"""Effective sample sizes: by formula, and by the propensities and estimators that training uses."""

import numpy as np
import pytest
import torch

from tests.audit.logs import generated
from tests.audit.small import sequences_of
from unveil.audit.exposure import CLIPPED, EXPONENTS, costs
from unveil.data.interactions import Sequences
from unveil.data.slots import Slots
from unveil.data.splits import leave_one_out
from unveil.estimators.inverse import IPS, ITPS
from unveil.propensity.popularity import StaticPopularity, TemporalPopularity


def test_by_hand() -> None:
    # Item 0 three times, item 1 once: θ = ¾ and ¼, w = 4/3 three times and 4: (4 + 4)² / (16/3 + 16) of 4.
    found = costs(sequences_of([[0, 0], [0, 1]], 2))
    assert found.of("ips").ess_share == pytest.approx(64 / (16 / 3 + 16) / 4)
    assert found.of("ips").largest_share == pytest.approx(0.5)
    # Both at step 0; items 0 and 1 alone at step 1.
    assert found.alone == 0.5
    assert found.of("itps").ess_share == pytest.approx((2 + 2 + 4 + 4) ** 2 / (4 + 4 + 16 + 16) / 4)


@pytest.mark.parametrize("window", [4, 50])
def test_weights_are_those_of_the_estimators(window: int) -> None:
    train = leave_one_out(Sequences.of(generated())).train
    found = costs(train, window)
    recent = train.recent(window)
    slots = Slots(*(torch.from_numpy(np.asarray(x, np.int64)) for x in (recent.user_N, recent.item_N, recent.step_N)))
    assert found.events == len(recent)
    for each in found.settings:
        if each.estimator == "itps-smoothed":
            continue
        kind = (IPS, StaticPopularity) if each.estimator == "ips" else (ITPS, TemporalPopularity)
        weight_M = kind[0](kind[1](window).fit(train), each.clip, each.exponent)(slots).weight_M.double()
        assert each.ess_share == pytest.approx(float(weight_M.sum() ** 2 / (weight_M**2).sum() / len(recent)), rel=1e-4)


def test_clips_and_exponents_only_calm() -> None:
    found = costs(leave_one_out(Sequences.of(generated(seed=3))).train)
    assert len(found.settings) == 3 * len(EXPONENTS) * len(CLIPPED)
    for name in ("ips", "itps", "itps-smoothed"):
        by_exponent = [found.of(name, exponent).ess_share for exponent in EXPONENTS]
        by_clip = [found.of(name, 1.0, nth).ess_share for nth in range(len(CLIPPED))]
        assert by_exponent == sorted(by_exponent)
        assert by_clip == sorted(by_clip)
        clipped = [found.of(name, 1.0, nth).clipped for nth in range(len(CLIPPED))]
        assert clipped[0] == 0
        assert clipped == sorted(clipped)
