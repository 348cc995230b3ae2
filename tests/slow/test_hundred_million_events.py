"""A log of a hundred million events, packed and trained on in a small part of the memory it would take."""

import json
from pathlib import Path

import pytest

from benchmarks.out_of_core import CASES, EVENTS, ITEMS, USERS, Step, packed, trained, weighed, write_log

MOST_MIB = 2 * 1024
STEPS = 20


@pytest.mark.slow
def test_a_hundred_million_events_within_two_gib(tmp_path: Path) -> None:
    write_log(tmp_path / "log")
    assert packed(tmp_path / "log", tmp_path / "packed").peak_mib < MOST_MIB
    training = trained(tmp_path / "packed", STEPS)
    assert training.peak_mib < MOST_MIB
    found = json.loads(training.printed)
    assert (found["users"], found["items"], found["events"]) == (USERS, ITEMS, EVENTS)
    assert found["train"] + 2 * found["test"] == EVENTS
    assert len(found["losses"]) == STEPS
    assert found["losses"][-1] < found["losses"][0]
    weighing = weighed(tmp_path / "packed", CASES, tmp_path / "model")
    assert weighing.peak_mib < MOST_MIB
    assert_weighed(weighing, EVENTS, CASES, tmp_path / "model")


def test_a_small_log_by_the_same_way(tmp_path: Path) -> None:
    write_log(tmp_path / "log", events=6000, users=300, items=200)
    assert "6,000 events, 300 users, 200 items" in packed(tmp_path / "log", tmp_path / "packed").printed
    found = json.loads(trained(tmp_path / "packed", 2).printed)
    assert found["train"] + 2 * found["test"] == 6000
    assert len(found["losses"]) == 2
    assert_weighed(weighed(tmp_path / "packed", 20, tmp_path / "model"), 6000, 20, tmp_path / "model")


def assert_weighed(weighing: Step, events: int, cases: int, model: Path) -> None:
    found = json.loads(weighing.printed)
    assert found["train"] == pytest.approx(0.8 * events, rel=0.001)  # several events share a second, the cut among them
    assert 0 < found["slots"] <= found["train"]
    assert found["spread"] > 1
    assert found["negatives"] == 20 * cases
    assert (model / "histories.safetensors").stat().st_size > 12 * events
