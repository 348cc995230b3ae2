"""Trials are finished once each, with the settings of their number, whoever works, dies or comes late."""

import subprocess
import sys
import time
from collections import Counter
from typing import Any

import optuna
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optuna.trial import FrozenTrial, TrialState

from unveil.runs.tune.claims import (
    BEAT,
    DEATHS,
    WORKER,
    Claim,
    Claims,
    Heartbeat,
    Liveness,
    SettingsSampler,
    Timing,
    by_index,
    distributions,
    started,
    this_worker,
)
from unveil.runs.tune.space import Choice, Space, random_settings

SPACE = Space("letters", {"a": Choice((1, 2, 3)), "b": Choice((1, 2, 3)), "c": Choice(("only",))})
SETTINGS = random_settings(SPACE, 9, 0, lambda _: True)


class Seen(Liveness):
    """Knows which trials' workers are gone."""

    def __init__(self) -> None:
        super().__init__()
        self.dead: set[int] = set()

    def is_dead(self, trial: FrozenTrial) -> bool:
        return trial.number in self.dead


def ledger(size: int, study: optuna.Study | None = None) -> tuple[Claims, Seen]:
    """As those who join with so many trials have it: they know the settings of no others."""
    spread, watch = distributions(SPACE), Seen()
    study = study or optuna.create_study(direction="maximize")
    study.sampler = SettingsSampler(SETTINGS[:size], spread)
    return Claims(study, spread, size, watch), watch


def taken(book: Claims) -> Claim:
    claim = book.claim()
    assert claim is not None
    return claim


def test_entries_are_taken_in_order_with_their_settings() -> None:
    book, _ = ledger(3)
    claims = [taken(book) for _ in range(3)]
    assert [claim.index for claim in claims] == [0, 1, 2]
    assert [claim.attempt.params for claim in claims] == SETTINGS[:3]
    assert book.claim() is None
    assert not book.finished()
    assert all(book.complete(claim, 0.5) for claim in claims)
    assert book.finished()


def test_an_entry_that_kills_every_worker_is_given_up() -> None:
    book, watch = ledger(2)
    for _ in range(DEATHS):
        claim = taken(book)
        assert claim.index == 0
        watch.dead.add(claim.attempt.number)
    assert taken(book).index == 1  # the study goes on
    last = book.owners()[0]
    assert last.state == TrialState.FAIL
    assert f"died {DEATHS} times" in last.user_attrs["why"]
    assert last.params == SETTINGS[0]


def test_an_entry_that_is_stopped_often_is_not_given_up() -> None:
    book, _ = ledger(1)
    for _ in range(2 * DEATHS):
        claim = taken(book)
        assert claim.index == 0
        book.give_back(claim)
    assert book.complete(taken(book), 1.0)


def test_what_is_given_back_is_taken_next_with_the_same_settings() -> None:
    book, _ = ledger(2)
    first, second = taken(book), taken(book)
    book.give_back(first)
    again = taken(book)
    assert (again.index, again.attempt.params) == (0, SETTINGS[0])
    assert again.attempt.number == 2
    assert book.claim() is None
    assert book.complete(second, 0.1)
    assert book.complete(again, 0.2)
    assert book.finished()
    assert {entry: trial.value for entry, trial in book.owners().items()} == {0: 0.2, 1: 0.1}


def test_whoever_was_given_up_too_soon_does_not_count() -> None:
    book, watch = ledger(1)
    slow = taken(book)
    watch.dead.add(slow.attempt.number)
    quick = taken(book)
    assert quick.index == 0
    assert not book.complete(slow, 0.9)
    assert not book.fail(slow, "too late")
    assert book.complete(quick, 0.3)
    assert [trial.value for trial in book.owners().values()] == [0.3]


def test_two_who_mend_at_once_do_not_make_two_of_one() -> None:
    book, _ = ledger(1)
    first = taken(book)
    book._finish(first.attempt.number, TrialState.FAIL)
    attempts = by_index(book.attempts())[0]
    book._again(0, attempts, died=False)
    book._again(0, attempts, died=False)
    again = taken(book)
    assert again.index == 0
    assert book.claim() is None
    assert book.complete(again, 1.0)
    assert book.finished()


def test_a_failure_for_good_is_a_result() -> None:
    book, _ = ledger(2)
    assert book.fail(taken(book), "not a number")
    assert taken(book).index == 1
    assert book.owners()[0].state == TrialState.FAIL


def test_a_study_grows() -> None:
    book, _ = ledger(2)
    for _ in range(2):
        book.complete(taken(book), 0.0)
    book.study.ask(dict(book.distributions))  # one too many, as when two are quick at the end
    book._finish(2, TrialState.FAIL)
    larger, _ = ledger(4, book.study)
    assert not larger.finished()
    claims = [taken(larger), taken(larger)]
    assert sorted(claim.index for claim in claims) == [2, 3]
    assert larger.claim() is None
    assert [claim.attempt.params for claim in sorted(claims, key=lambda claim: claim.index)] == SETTINGS[2:4]
    assert all(larger.complete(claim, 0.0) for claim in claims)
    assert [each.attempts for each in larger.trials()] == [1, 1, 1, 1]  # one too many was never begun


def end(book: Claims, watch: Seen, claim: Claim, how: str) -> None:
    match how:
        case "d":
            book.complete(claim, 1.0)
        case "f":
            book.fail(claim, "no")
        case "g":
            book.give_back(claim)
        case "k":
            watch.dead.add(claim.attempt.number)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 5), st.lists(st.tuples(st.integers(0, 2), st.sampled_from("cdkgf")), max_size=40))
def test_in_any_order_of_events_each_entry_is_finished_once(size: int, events: list[tuple[int, str]]) -> None:
    """Three workers, each told to claim, finish, be killed, give back or fail; then one of them does the rest."""
    book, watch = ledger(size)
    hands: dict[int, Claim] = {}
    for worker, event in events:
        if event == "c" and worker not in hands:
            claim = book.claim()
            if claim is not None:
                hands[worker] = claim
        elif worker in hands and event != "c":
            end(book, watch, hands.pop(worker), event)
    for claim in hands.values():
        book.complete(claim, 1.0)
    while (claim := book.claim()) is not None:
        book.complete(claim, 1.0)
    assert book.finished()
    assert list(book.owners()) == list(range(size))
    assert [trial.params for trial in book.owners().values()] == SETTINGS[:size]
    complete = [t for t in book.attempts() if t.state == TrialState.COMPLETE or "why" in t.user_attrs]
    assert Counter(trial.user_attrs["entry"] for trial in complete) == dict.fromkeys(range(size), 1)


def running(**notes: Any) -> FrozenTrial:
    trial = optuna.create_trial(state=optuna.trial.TrialState.RUNNING, user_attrs=notes)
    trial.number = 7
    return trial


def test_a_process_of_this_machine_is_asked_for() -> None:
    mine = this_worker()
    if not mine["machine"]:
        pytest.skip("this system does not tell its processes by /proc")
    watch = Liveness(Timing(grace=-1.0))
    assert not watch.is_dead(running(**{WORKER: mine}))
    assert watch.is_dead(running(**{WORKER: {**mine, "begun": "1"}}))  # its number went to another process


def test_a_process_that_is_gone_is_dead_at_once() -> None:
    if not this_worker()["machine"]:
        pytest.skip("this system does not tell its processes by /proc")
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        other = {**this_worker(), "process": process.pid, "begun": started(process.pid)}
        assert not Liveness().is_dead(running(**{WORKER: other}))
        process.kill()
        while started(process.pid):
            time.sleep(0.01)
        assert Liveness().is_dead(running(**{WORKER: other}))  # killed, and not yet waited for
    assert Liveness().is_dead(running(**{WORKER: other}))


def test_elsewhere_silence_counts_by_our_own_clock() -> None:
    away = {"machine": "another", "process": 1, "begun": "1"}
    watch = Liveness(Timing(grace=0.05))
    assert not watch.is_dead(running(**{WORKER: away, BEAT: 1}))
    time.sleep(0.06)
    assert not watch.is_dead(running(**{WORKER: away, BEAT: 2}))  # word came
    assert not watch.is_dead(running(**{WORKER: away, BEAT: 2}))
    time.sleep(0.06)
    assert watch.is_dead(running(**{WORKER: away, BEAT: 2}))


def test_who_never_said_a_word_is_waited_for_too() -> None:
    watch = Liveness(Timing(grace=0.05))
    assert not watch.is_dead(running())
    time.sleep(0.06)
    assert watch.is_dead(running())


def test_word_is_left_until_the_trial_is_lost() -> None:
    study = optuna.create_study()
    trial = study.ask()
    with Heartbeat(trial, Timing(beat=0.01)) as heartbeat:
        for _ in range(500):
            if study.trials[0].user_attrs.get(BEAT, 0) >= 2:
                break
            time.sleep(0.01)
        assert study.trials[0].user_attrs[BEAT] >= 2
        assert not heartbeat.lost.is_set()
        study.tell(trial, state=optuna.trial.TrialState.FAIL)
        assert heartbeat.lost.wait(5)
