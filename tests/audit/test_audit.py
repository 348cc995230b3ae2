"""The whole audit: logs with little in them, generated ones, real ones."""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from tests.audit.logs import generated
from tests.audit.small import log_of
from unveil.audit import Audit, audit
from unveil.data.interactions import Interactions
from unveil.errors import UnveilError


def about(found: Audit) -> set[str]:
    return {each.about for each in found.advice}


def warned(found: Audit) -> list[str]:
    return [each.about for each in found.advice if each.warning]


def commands(found: Audit) -> str:
    """All that the advice names."""
    return " ".join(each.reason for each in found.advice)


def test_a_generated_log_has_every_figure() -> None:
    found = audit(generated())
    assert found.histories is not None
    assert found.calendar is not None
    assert found.order is not None
    assert found.leakage is not None
    assert {score.split for score in found.baselines} == {"leave-one-out", "temporal"}
    assert {"exposure", "leakage", "ties", "repeats", "histories", "calendar", "costs", "order"} <= about(found)
    assert warned(found)[0] == "exposure"
    assert "popularity" in found.verdict
    assert all(each.figure and each.of and each.reason for each in found.advice)
    json.dumps(asdict(found), allow_nan=False)


def test_the_same_log_gives_the_same_audit_and_another_seed_other_draws() -> None:
    log = generated(users=60)
    one, again, other = audit(log), audit(log), audit(log, seed=1)
    assert one == again
    assert other.order != one.order
    assert other.concentration == one.concentration


@pytest.mark.parametrize(("rejecting", "share"), [(0, None), (1, "2.0% of 50"), (5, "10% of 50")])
def test_the_verdict_calls_few_items_few(rejecting: int, share: str | None) -> None:
    """As the advice does, which then holds a static propensity to be enough."""
    found = audit(generated(users=60))
    assert found.histories is not None
    tested = replace(found.histories.rejecting, items=50, holm=rejecting)
    histories = replace(found.histories, static=tested)
    said = replace(found, histories=histories, calendar=None).verdict
    assert share in said if share else "of 50" not in said
    assert histories.mostly_still == ("hardly" in said or share is None) == (rejecting < 3)


def test_impressions_are_pointed_to() -> None:
    found = audit(generated(impressions=True))
    assert found.exposure.impressions is not None
    assert "exposure" not in warned(found)
    assert "`unveil propensity fit`" in commands(found)
    assert "`propensity.name=position`" in commands(found)
    assert "impressions" in found.verdict


def test_other_columns_are_pointed_to() -> None:
    log = generated()
    rng = np.random.default_rng(0)
    log = replace(
        log,
        propensity=rng.uniform(0.1, 1, len(log)),
        randomised=rng.random(len(log)) < 0.2,
        rating=rng.integers(1, 6, len(log)).astype(np.float32),
    )
    found = audit(log)
    assert "exposure" not in warned(found)
    assert "`--set propensity.name=logged`" in commands(found)
    assert "`--min-rating`" in commands(found)
    assert f"{found.exposure.randomised:.0%}" in [each.figure for each in found.advice if each.about == "exposure"]


def untimed(histories: Sequence[Sequence[int]], n_items: int) -> Interactions:
    return replace(log_of(histories, n_items), time=None)


LITTLE = {
    "one event": log_of([[0]], 1),
    "one user": log_of([list(range(12))], 12),
    "one item": log_of([[0]] * 20, 1),
    "one item, again and again": log_of([[0] * 5] * 20, 1),
    "all repeats": log_of([[n % 3] * 6 for n in range(30)], 3),
    "all ties": log_of([[0, 1, 2, 3]] * 20, 4, [[7] * 4] * 20),
    "no times": untimed([[0, 1, 2, 3], [3, 2, 1, 0]] * 15, 4),
    "short histories": log_of([[0, 1], [1, 0]] * 20, 2),
    "singles": log_of([[n % 15] for n in range(40)], 15),
}


@pytest.mark.parametrize("name", LITTLE)
def test_little_is_no_reason_to_fail(name: str) -> None:
    log = LITTLE[name]
    found = audit(log)
    assert found.log.interactions == len(log)
    assert found.verdict
    assert warned(found)[0] == "exposure"
    json.dumps(asdict(found), allow_nan=False)


def test_what_cannot_be_said_is_not_said() -> None:
    quiet = audit(LITTLE["no times"])
    assert quiet.calendar is None
    assert quiet.leakage is None
    assert quiet.log.ties is None
    assert [each.figure for each in quiet.advice if each.about == "leakage"] == ["none"]
    assert audit(LITTLE["singles"]).order is None
    short = audit(LITTLE["short histories"])  # nothing to leave out, but a cut in time finds some cases
    assert short.leakage is None
    assert {score.split for score in short.baselines} == {"temporal"}
    tied = audit(LITTLE["all ties"])
    assert tied.histories is None
    assert tied.calendar is None
    assert tied.order is not None
    assert tied.order.tied == 1
    assert "ties" in warned(tied)
    copied = log_of([[0, 0, 1, 1, 2, 2]] * 10, 3, [[0, 0, 1, 1, 2, 2]] * 10)
    assert "repeats" in warned(audit(copied))


def test_an_empty_log_is_refused_in_one_sentence() -> None:
    with pytest.raises(UnveilError, match="no interaction"):
        audit(log_of([], 0))
    with pytest.raises(UnveilError, match="no interaction"):
        audit(replace(log_of([[0, 1]], 2), clicked=np.zeros(2, bool)))


@pytest.mark.slow
def test_real_exposures_and_their_clicks(shared_data: Path) -> None:
    found = audit(Interactions.read(shared_data / "kuairand-pure" / "log_standard_4_25_to_5_08_pure.csv.gz"))
    assert found.log.interactions == 100_900
    assert found.exposure.impressions is not None
    assert found.exposure.impressions.rows == 228_329
    assert found.exposure.impressions.clicked == pytest.approx(0.442, abs=0.001)
    assert "exposure" not in warned(found)
    assert found.leakage is not None
    assert found.leakage.later > 0.1


@pytest.mark.slow
def test_real_ties_are_seen(shared_data: Path) -> None:
    found = audit(Interactions.read(shared_data / "ml-100k" / "u.data"))
    assert found.log.ties is not None
    assert found.log.ties.last_share == pytest.approx(0.44, abs=0.001)
    assert found.histories is not None
    assert found.histories.static is not None
    assert found.histories.static.holm > 100  # Figure 1's claim: films have a time of their own
    assert found.order is not None
    assert found.order.whole.p == 0.01
