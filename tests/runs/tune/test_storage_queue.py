"""Trials are finished once each, with the settings of their number, whoever works, dies or comes late."""

import os
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import optuna
from hypothesis import given, settings
from hypothesis import strategies as st
from optuna.distributions import CategoricalDistribution
from optuna.trial import FrozenTrial, TrialState

from unveil.files import machine
from unveil.runs.tune.storage import (
    BEAT,
    DEATHS,
    INDEX,
    WORKER,
    ConfigurationSampler,
    TrialQueue,
    heartbeat,
    owner,
)
from unveil.runs.tune.study import Space, random_search

LETTERS = {"a": (1, 2, 3), "b": (1, 2, 3), "c": ("only",)}
SPACE = Space("letters", {name: CategoricalDistribution(values) for name, values in LETTERS.items()})
SETTINGS = random_search(SPACE, 9, 0, lambda _: True)
Begun = tuple[int, optuna.Trial]


@dataclass(frozen=True, eq=False)
class Queue(TrialQueue):
    """Knows which trials' workers are gone."""

    dead: set[int] = field(default_factory=set)

    def is_dead(self, attempt: FrozenTrial) -> bool:
        return attempt.number in self.dead


def queue_of(size: int, study: optuna.Study | None = None) -> Queue:
    """As those who join with so many trials have it: they know the settings of no others."""
    study = study or optuna.create_study(direction="maximize")
    study.sampler = ConfigurationSampler(SETTINGS[:size], SPACE.dimensions)
    return Queue(study, SPACE.dimensions, size)


def alone(grace: float = 90.0) -> TrialQueue:
    """Of one trial, to watch who works on it."""
    return TrialQueue(optuna.create_study(), SPACE.dimensions, 1, grace)


def begin(queue: TrialQueue) -> Begun:
    begun = queue.begin()
    assert begun is not None
    return begun


def complete(queue: TrialQueue, begun: Begun, value: float = 1.0) -> bool:
    return queue.end(begun[1], TrialState.COMPLETE, value)


def fail(queue: TrialQueue, begun: Begun, why: str | None = None) -> bool:
    """Without a reason it is given back."""
    return queue.end(begun[1], TrialState.FAIL, why=why)


def is_finished(queue: TrialQueue) -> bool:
    return sum(each.over for each in queue.trials()) == queue.size


def owners(queue: TrialQueue) -> dict[int, FrozenTrial]:
    found = {index: owner(attempts) for index, attempts in queue.attempts().items()}
    return {index: attempt for index, attempt in found.items() if attempt is not None}


def test_trials_are_begun_in_order_with_their_settings() -> None:
    queue = queue_of(3)
    begun = [begin(queue) for _ in range(3)]
    assert [index for index, _ in begun] == [0, 1, 2]
    assert [attempt.params for _, attempt in begun] == SETTINGS[:3]
    assert queue.begin() is None
    assert not is_finished(queue)
    assert all(complete(queue, each) for each in begun)
    assert is_finished(queue)


def test_a_trial_that_kills_every_worker_is_given_up() -> None:
    queue = queue_of(2)
    for _ in range(DEATHS):
        index, attempt = begin(queue)
        assert index == 0
        queue.dead.add(attempt.number)
    assert begin(queue)[0] == 1  # the study goes on
    last = owners(queue)[0]
    assert last.state == TrialState.FAIL
    assert f"died {DEATHS} times" in last.user_attrs["why"]
    assert last.params == SETTINGS[0]


def test_a_trial_that_is_stopped_often_is_not_given_up() -> None:
    queue = queue_of(1)
    for _ in range(2 * DEATHS):
        begun = begin(queue)
        assert begun[0] == 0
        fail(queue, begun)
    assert complete(queue, begin(queue))


def test_what_is_given_back_is_begun_next_with_the_same_settings() -> None:
    queue = queue_of(2)
    first, second = begin(queue), begin(queue)
    fail(queue, first)
    again = begin(queue)
    assert (again[0], again[1].params, again[1].number) == (0, SETTINGS[0], 2)
    assert queue.begin() is None
    assert complete(queue, second, 0.1)
    assert complete(queue, again, 0.2)
    assert is_finished(queue)
    assert {each.index: each.value for each in queue.trials()} == {0: 0.2, 1: 0.1}


def test_whoever_was_given_up_too_soon_does_not_count() -> None:
    queue = queue_of(1)
    slow = begin(queue)
    queue.dead.add(slow[1].number)
    quick = begin(queue)
    assert quick[0] == 0
    assert not complete(queue, slow, 0.9)
    assert not fail(queue, slow, "too late")
    assert complete(queue, quick, 0.3)
    assert [each.value for each in queue.trials()] == [0.3]


def test_two_who_enqueue_at_once_do_not_make_two_of_one() -> None:
    queue = queue_of(1)
    fail(queue, begin(queue))
    attempts = queue.attempts()[0]
    queue._enqueue(0, attempts)
    queue._enqueue(0, attempts)
    again = begin(queue)
    assert again[0] == 0
    assert queue.begin() is None
    assert complete(queue, again)
    assert is_finished(queue)


def test_a_failure_for_good_is_a_result() -> None:
    queue = queue_of(2)
    assert fail(queue, begin(queue), "not a number")
    assert begin(queue)[0] == 1
    assert queue.trials()[0].state == "failed"


def test_a_study_grows() -> None:
    queue = queue_of(2)
    for _ in range(2):
        complete(queue, begin(queue), 0.0)
    extra = queue.study.ask(dict(queue.dimensions))  # one too many, as when two are quick at the end
    queue.end(extra, TrialState.FAIL)
    larger = queue_of(4, queue.study)
    assert not is_finished(larger)
    begun = [begin(larger), begin(larger)]
    assert [index for index, _ in begun] == [2, 3]
    assert larger.begin() is None
    assert [attempt.params for _, attempt in begun] == SETTINGS[2:4]
    assert all(complete(larger, each, 0.0) for each in begun)
    assert [each.attempts for each in larger.trials()] == [1, 1, 1, 1]  # one too many was never begun


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 5), st.lists(st.tuples(st.integers(0, 2), st.sampled_from("cdkgf")), max_size=40))
def test_in_any_order_of_events_each_trial_is_finished_once(size: int, events: list[tuple[int, str]]) -> None:
    """Three workers, each told to begin, finish, be killed, give back or fail; then one of them does the rest."""
    queue = queue_of(size)
    hands: dict[int, Begun] = {}
    for worker, event in events:
        if event == "c" and worker not in hands:
            if (begun := queue.begin()) is not None:
                hands[worker] = begun
        elif worker in hands and event != "c":
            begun = hands.pop(worker)
            if event == "k":
                queue.dead.add(begun[1].number)
            elif event == "d":
                complete(queue, begun)
            else:
                fail(queue, begun, "no" if event == "f" else None)
    for begun in hands.values():
        complete(queue, begun)
    while (begun := queue.begin()) is not None:
        complete(queue, begun)
    assert is_finished(queue)
    assert list(owners(queue)) == list(range(size))
    assert [trial.params for trial in owners(queue).values()] == SETTINGS[:size]
    attempts = queue.study.get_trials()
    over = [each for each in attempts if each.state == TrialState.COMPLETE or "why" in each.user_attrs]
    assert Counter(each.user_attrs[INDEX] for each in over) == dict.fromkeys(range(size), 1)


def running(**notes: Any) -> FrozenTrial:
    trial = optuna.create_trial(state=TrialState.RUNNING, user_attrs=notes)
    trial.number = 7
    return trial


def test_a_process_of_this_machine_that_is_gone_is_dead_at_once() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        other = {"machine": machine(), "process": process.pid}
        assert not alone().is_dead(running(**{WORKER: other}))
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # dead, and its number still taken
        assert alone().is_dead(running(**{WORKER: other}))
    assert alone().is_dead(running(**{WORKER: other}))
    assert not alone().is_dead(running(**{WORKER: {**other, "machine": "another"}}))


def test_elsewhere_silence_counts_by_our_own_clock() -> None:
    away = {"machine": "another", "process": 1}
    watch = alone(grace=0.05)
    assert not watch.is_dead(running(**{WORKER: away, BEAT: 1}))
    time.sleep(0.06)
    assert not watch.is_dead(running(**{WORKER: away, BEAT: 2}))  # word came
    assert not watch.is_dead(running(**{WORKER: away, BEAT: 2}))
    time.sleep(0.06)
    assert watch.is_dead(running(**{WORKER: away, BEAT: 2}))


def test_who_never_said_a_word_is_waited_for_too() -> None:
    watch = alone(grace=0.05)
    assert not watch.is_dead(running())
    time.sleep(0.06)
    assert watch.is_dead(running())


def test_word_is_left_until_the_trial_is_lost() -> None:
    study = optuna.create_study()
    trial = study.ask()
    with heartbeat(trial, 0.01) as lost:
        for _ in range(500):
            if study.trials[0].user_attrs.get(BEAT, 0) >= 2:
                break
            time.sleep(0.01)
        assert study.trials[0].user_attrs[BEAT] >= 2
        assert not lost.is_set()
        study.tell(trial, state=optuna.trial.TrialState.FAIL)
        assert lost.wait(5)
