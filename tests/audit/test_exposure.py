"""What a log knows of exposure."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from tests.audit.logs import generated
from tests.audit.small import log_of
from unveil.audit.advice import audit
from unveil.audit.exposure import exposure


def test_a_log_of_what_was_taken_knows_nothing() -> None:
    found = exposure(log_of([[0, 1], [1]], 2))
    assert found.columns == ()
    assert found.impressions is None
    assert found.only_popularity
    everything = replace(log_of([[0, 1]], 2), clicked=np.ones(2, bool))
    assert exposure(everything).only_popularity  # a column of clicks without a row that was left says nothing


def test_impressions_by_hand() -> None:
    log = log_of([[0, 0, 0, 1, 1, 2]], 3)
    log = replace(
        log,
        clicked=np.array([True, True, False, True, False, False]),
        position=np.array([1, 1, 2, 1, 2, 3], np.int32),
    )
    found = exposure(log).impressions
    assert found is not None
    assert found.clicked == 0.5
    assert found.items == 3
    assert found.never_clicked == pytest.approx(1 / 3)
    assert found.correlation == pytest.approx(1)
    assert found.by_position == (1, 0, 0)
    assert not exposure(log).only_popularity


def test_correlations_are_scipys() -> None:
    log = generated(impressions=True)
    found = exposure(log).impressions
    assert found is not None
    assert log.clicked is not None
    shown, taken = (np.bincount(each, minlength=len(log.items)) for each in (log.item, log.item[log.clicked]))
    assert found.correlation == pytest.approx(stats.spearmanr(shown, taken).statistic)
    both = taken > 0
    assert found.explained == pytest.approx(stats.pearsonr(np.log(shown[both]), np.log(taken[both])).statistic ** 2)


def test_logged_propensities_and_random_rows() -> None:
    log = log_of([[0, 1, 0, 1]], 2)
    log = replace(log, propensity=np.array([0.5, 0.5, 0.25, 0.25]), randomised=np.array([True, False, False, False]))
    found = exposure(log)
    assert found.logged_ess == pytest.approx(12**2 / (4 + 4 + 16 + 16) / 4)
    assert found.randomised == 0.25
    assert not found.only_popularity
    assert (found.logged_smallest, found.logged_rare) == (0.25, 0.0)
    none = exposure(replace(log, propensity=np.zeros(4)))
    assert (none.logged_ess, none.logged_smallest, none.logged_rare) == (None, None, None)


@pytest.mark.parametrize(("rare", "warns"), [(0, None), (1, False), (3, True)])
def test_how_far_what_was_taken_overlaps_with_what_was_shown(rare: int, warns: bool | None) -> None:
    """Of fifty events taken some had less than one chance in a hundred; what was left does not count."""
    log = log_of([[n % 5 for n in range(60)]], 5)
    theta_N = np.full(60, 0.5)
    theta_N[:rare] = 0.002
    theta_N[50:] = 0.0001
    log = replace(log, propensity=theta_N, clicked=np.arange(60) < 50)
    found = audit(log)
    assert found.exposure.logged_smallest == (0.002 if rare else 0.5)
    assert found.exposure.logged_rare == rare / 50
    told = [each for each in found.advice if each.about == "exposure"]
    assert [each.figure for each in told if f"the largest weight is {500 if rare else 2}." in each.reason]
    overlap = [each for each in told if "0.01" in each.of]
    assert [each.warning for each in overlap] == ([] if warns is None else [warns])
    for each in overlap:
        assert each.figure == f"{rare / 50:.1%}"
        assert "0.002" in each.of
