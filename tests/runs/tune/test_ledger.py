"""Entries are finished once each, with the settings of their number, whoever works, dies or comes late."""

from collections import Counter

import optuna
from hypothesis import given, settings
from hypothesis import strategies as st
from optuna.trial import FrozenTrial, TrialState

from unveil.runs.tune.claims import DEATHS, Claim, Ledger, Watch, by_entry, records
from unveil.runs.tune.search import ByEntry, distributions
from unveil.runs.tune.space import Choice, Space, random_settings

SPACE = Space("letters", {"a": Choice((1, 2, 3)), "b": Choice((1, 2, 3)), "c": Choice(("only",))})
SETTINGS = random_settings(SPACE, 9, 0, lambda _: True)


class Seen(Watch):
    """Knows which trials' workers are gone."""

    def __init__(self) -> None:
        super().__init__()
        self.dead: set[int] = set()

    def is_dead(self, trial: FrozenTrial) -> bool:
        return trial.number in self.dead


def ledger(size: int, study: optuna.Study | None = None) -> tuple[Ledger, Seen]:
    """As those who join with so many trials have it: they know the settings of no others."""
    spread, watch = distributions(SPACE), Seen()
    study = study or optuna.create_study(direction="maximize")
    study.sampler = ByEntry(SETTINGS[:size], spread)
    return Ledger(study, spread, size, watch), watch


def taken(book: Ledger) -> Claim:
    claim = book.claim()
    assert claim is not None
    return claim


def test_entries_are_taken_in_order_with_their_settings() -> None:
    book, _ = ledger(3)
    claims = [taken(book) for _ in range(3)]
    assert [claim.entry for claim in claims] == [0, 1, 2]
    assert [claim.trial.params for claim in claims] == SETTINGS[:3]
    assert book.claim() is None
    assert not book.finished()
    assert all(book.done(claim, 0.5) for claim in claims)
    assert book.finished()


def test_an_entry_that_kills_every_worker_is_given_up() -> None:
    book, watch = ledger(2)
    for _ in range(DEATHS):
        claim = taken(book)
        assert claim.entry == 0
        watch.dead.add(claim.trial.number)
    assert taken(book).entry == 1  # the study goes on
    last = book.owners()[0]
    assert last.state == TrialState.FAIL
    assert f"died {DEATHS} times" in last.user_attrs["why"]
    assert last.params == SETTINGS[0]


def test_an_entry_that_is_stopped_often_is_not_given_up() -> None:
    book, _ = ledger(1)
    for _ in range(2 * DEATHS):
        claim = taken(book)
        assert claim.entry == 0
        book.give_back(claim.trial)
    assert book.done(taken(book), 1.0)


def test_what_is_given_back_is_taken_next_with_the_same_settings() -> None:
    book, _ = ledger(2)
    first, second = taken(book), taken(book)
    book.give_back(first.trial)
    again = taken(book)
    assert (again.entry, again.trial.params) == (0, SETTINGS[0])
    assert again.trial.number == 2
    assert book.claim() is None
    assert book.done(second, 0.1)
    assert book.done(again, 0.2)
    assert book.finished()
    assert {entry: trial.value for entry, trial in book.owners().items()} == {0: 0.2, 1: 0.1}


def test_whoever_was_given_up_too_soon_does_not_count() -> None:
    book, watch = ledger(1)
    slow = taken(book)
    watch.dead.add(slow.trial.number)
    quick = taken(book)
    assert quick.entry == 0
    assert not book.done(slow, 0.9)
    assert not book.failed(slow, "too late")
    assert book.done(quick, 0.3)
    assert [trial.value for trial in book.owners().values()] == [0.3]


def test_two_who_mend_at_once_do_not_make_two_of_one() -> None:
    book, _ = ledger(1)
    first = taken(book)
    book._tell(first.trial.number, TrialState.FAIL)
    attempts = by_entry(book.trials())[0]
    book._again(0, attempts, died=False)
    book._again(0, attempts, died=False)
    again = taken(book)
    assert again.entry == 0
    assert book.claim() is None
    assert book.done(again, 1.0)
    assert book.finished()


def test_a_failure_for_good_is_a_result() -> None:
    book, _ = ledger(2)
    assert book.failed(taken(book), "not a number")
    assert taken(book).entry == 1
    assert book.owners()[0].state == TrialState.FAIL


def test_a_study_grows() -> None:
    book, _ = ledger(2)
    for _ in range(2):
        book.done(taken(book), 0.0)
    book.study.ask(dict(book.distributions))  # one too many, as when two are quick at the end
    book._tell(2, TrialState.FAIL)
    larger, _ = ledger(4, book.study)
    assert not larger.finished()
    claims = [taken(larger), taken(larger)]
    assert sorted(claim.entry for claim in claims) == [2, 3]
    assert larger.claim() is None
    assert [claim.trial.params for claim in sorted(claims, key=lambda claim: claim.entry)] == SETTINGS[2:4]
    assert all(larger.done(claim, 0.0) for claim in claims)
    assert [each.attempts for each in records(larger.trials(), 4)] == [1, 1, 1, 1]  # one too many was never begun


def end(book: Ledger, watch: Seen, claim: Claim, how: str) -> None:
    match how:
        case "d":
            book.done(claim, 1.0)
        case "f":
            book.failed(claim, "no")
        case "g":
            book.give_back(claim.trial)
        case "k":
            watch.dead.add(claim.trial.number)


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
        book.done(claim, 1.0)
    while (claim := book.claim()) is not None:
        book.done(claim, 1.0)
    assert book.finished()
    assert list(book.owners()) == list(range(size))
    assert [trial.params for trial in book.owners().values()] == SETTINGS[:size]
    complete = [t for t in book.trials() if t.state == TrialState.COMPLETE or "why" in t.user_attrs]
    assert Counter(trial.user_attrs["entry"] for trial in complete) == dict.fromkeys(range(size), 1)
