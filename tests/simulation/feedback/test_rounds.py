"""The loop itself, with learners that remember what they were given."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.data.ragged import sequences_of
from tests.simulation.feedback.small import random_histories
from unveil.data.interactions import Sequences
from unveil.errors import UnveilError
from unveil.evaluation.metrics import NOBODY
from unveil.evaluation.ranking import Scorer
from unveil.models.baselines import Random
from unveil.simulation.feedback.figures import recommended
from unveil.simulation.feedback.responses import response_model
from unveil.simulation.feedback.rounds import (
    AT_RANDOM,
    MOST_POPULAR,
    Learner,
    Loop,
    Retraining,
    Rule,
    State,
    TrainedModel,
    grown,
    load,
    save,
)

ITEMS = 30


@dataclass(frozen=True)
class Diary(Rule):
    """Recommends at random, and writes down what it was trained on."""

    scorer: Callable[[Sequences, int], Scorer] = lambda sequences, seed: Random(sequences.n_items, seed % 1000)
    length: int = 8
    seen: list[tuple[Sequences, int, bool, int | None]] = field(default_factory=list)

    def learn(
        self, sequences: Sequences, seed: int, before: TrainedModel | None, epochs: int | None = None
    ) -> TrainedModel:
        self.seen.append((sequences, seed, before is not None, epochs))
        return TrainedModel(self.scorer(sequences, seed), {"loss": float(len(self.seen))})


def loop_of(response: str = "uniform", retrain: str = "scratch", rounds: int = 4, seed: int = 0, k: int = 5) -> Loop:
    base = sequences_of(random_histories(5, users=15, items=ITEMS), ITEMS)
    return Loop(base, response_model({"name": response}), Retraining.parse(retrain), rounds, k, seed)


def last(states: Iterator[State]) -> State:
    return list(states)[-1]


def test_what_is_taken_is_trained_on_in_the_very_next_round() -> None:
    loop, diary = loop_of(), Diary()
    states = list(loop.go(diary))
    assert [state.round for state in states] == [0, 1, 2, 3, 4]
    assert len(diary.seen) == 5
    for round, (sequences, *_) in enumerate(diary.seen):
        assert len(sequences) == len(loop.base) + round * loop.base.n_users
        if round:
            shown_UK, chosen_U = states[round - 1].lists.top_UK, states[round].chosen_RU[-1]
            newest_U = sequences.item_N[sequences.offset_U1[1:] - 1]
            assert np.array_equal(newest_U, chosen_U)
            assert all(item in shown for item, shown in zip(chosen_U, shown_UK, strict=True))
            assert (sequences.step_N[sequences.offset_U1[1:] - 1] == loop.base.n_steps + round - 1).all()


def test_nobody_is_offered_or_takes_an_item_twice() -> None:
    loop = loop_of(rounds=8)
    for state in loop.go(AT_RANDOM):
        sequences = grown(loop.base, state.chosen_RU)
        for user in range(loop.base.n_users):
            history = sequences.history(user).tolist()
            assert len(set(history)) == len(history)
            assert not set(history) & set(state.lists.top_UK[user])


def test_users_who_have_seen_everything_take_nothing() -> None:
    loop = Loop(sequences_of([[0, 1, 2], [0, 1], [0]], 4), response_model({"name": "uniform"}), rounds=4, k=2)
    state = last(loop.go(MOST_POPULAR))
    assert (state.chosen_RU != NOBODY).sum(0).tolist() == [1, 2, 3]
    assert [record["taken"] for record in state.records[1:]] == pytest.approx([1, 2 / 3, 1 / 3, 0])
    assert state.records[-1]["short"] == 1


def test_luck_belongs_to_user_round_and_replicate_and_not_to_the_model() -> None:
    loop = loop_of()
    assert np.array_equal(loop.uniforms(0, 1), loop_of("popular").uniforms(0, 1))
    for other in (loop.uniforms(0, 2), loop.uniforms(1, 1), loop_of(seed=1).uniforms(0, 1)):
        assert not np.array_equal(loop.uniforms(0, 1), other)
    seeds = {loop.training_seed(replicate, round) for replicate in range(3) for round in range(3)}
    assert len(seeds) == 9


def test_two_models_with_the_same_lists_are_given_the_same_responses() -> None:
    a, b = (last(loop_of(seed=3).go(AT_RANDOM)) for _ in range(2))
    assert np.array_equal(a.chosen_RU, b.chosen_RU)
    other = last(loop_of(seed=4).go(AT_RANDOM))
    assert not np.array_equal(a.lists.top_UK, other.lists.top_UK)
    again = last(loop_of(seed=3).go(AT_RANDOM, replicate=1))
    assert not np.array_equal(a.chosen_RU, again.chosen_RU)


def test_a_list_drawn_at_random_is_drawn_anew_in_every_round_and_replicate() -> None:
    loop = Loop(sequences_of([[0]] * 3, ITEMS), response_model({"name": "uniform"}), rounds=1, k=5)
    nothing = np.full((1, 3), NOBODY, np.int32)
    first, other = (next(loop.go(AT_RANDOM, replicate)) for replicate in (0, 1))
    assert not np.array_equal(first.lists.top_UK, other.lists.top_UK)
    seeds = [loop.training_seed(0, round) for round in (0, 1)]
    lists = [
        recommended(AT_RANDOM.learn(loop.base, seed, None).scorer, grown(loop.base, nothing), 8, 5) for seed in seeds
    ]
    assert not np.array_equal(lists[0].top_UK, lists[1].top_UK)  # of users who took nothing


def test_how_and_when_it_is_trained_again() -> None:
    for how, trainings in {
        "scratch": [(0, False, None), (1, False, None), (2, False, None), (3, False, None), (4, False, None)],
        "warm": [(0, False, None), (1, True, None), (2, True, None), (3, True, None), (4, True, None)],
        "warm:2": [(0, False, None), (1, True, 2), (2, True, 2), (3, True, 2), (4, True, 2)],
        "every:3": [(0, False, None), (3, False, None)],
    }.items():
        loop, diary = loop_of(retrain=how), Diary()
        state = last(loop.go(diary))
        rounds = [(len(s) - len(loop.base)) // loop.base.n_users for s, *_ in diary.seen]
        assert [(r, warm, n) for r, (_, _, warm, n) in zip(rounds, diary.seen, strict=True)] == trainings
        assert len(state.records) == 5
        assert [record.get("loss") is not None for record in state.records] == [round in rounds for round in range(5)]


@pytest.mark.parametrize("wrong", ["", "cold", "warm:0", "every:0", "every", "scratch:2", "every:-1"])
def test_no_such_way_to_retrain(wrong: str) -> None:
    with pytest.raises(UnveilError, match="no such way to retrain"):
        Retraining.parse(wrong)


def test_what_cannot_be_is_refused_before_anything_is_trained() -> None:
    with pytest.raises(UnveilError, match="the response 'relevant' needs a world"):
        loop_of("relevant")
    with pytest.raises(UnveilError, match="k is out of range: found 31, expected between 1 and the 30 items"):
        loop_of(k=31)


@pytest.mark.parametrize("learner", [AT_RANDOM, MOST_POPULAR])
@pytest.mark.parametrize("how", ["scratch", "every:3"])
@pytest.mark.parametrize("stop", [0, 2, 4])
def test_a_loop_that_was_saved_goes_on_to_what_it_would_have_been(
    learner: Learner, how: str, stop: int, tmp_path: Path
) -> None:
    loop = loop_of(retrain=how, rounds=6)
    whole = list(loop.go(learner))
    save(whole[stop], tmp_path / "state")
    resumed = last(loop.go(learner, state=load(tmp_path / "state", loop, learner)))
    assert resumed.records == whole[-1].records
    assert np.array_equal(resumed.chosen_RU, whole[-1].chosen_RU)
    assert np.array_equal(resumed.lists.top_UK, whole[-1].lists.top_UK)


def events(sequences: Sequences) -> list[list[tuple[int, int]]]:
    ends = sequences.offset_U1
    return [
        list(zip(sequences.item_N[a:b].tolist(), sequences.step_N[a:b].tolist(), strict=True))
        for a, b in pairwise(ends)
    ]


def test_each_user_grows_by_what_they_took_at_the_steps_of_the_rounds() -> None:
    base = sequences_of([[0, 1, 2], [3]], 9)
    chosen_RU = np.array([[5, 6], [NOBODY, 7]], np.int32)
    after = grown(base, chosen_RU)
    assert base.n_steps == 3
    assert after.n_steps == 5
    assert events(after) == [[(0, 0), (1, 1), (2, 2), (5, 3)], [(3, 2), (6, 3), (7, 4)]]
    assert len(set(after.event_N.tolist())) == len(after)


def test_without_feedback_nothing_changes() -> None:
    base = sequences_of([[0, 1, 2], [3], []], 9)
    after = grown(base, np.zeros((0, 3), np.int32))
    assert events(after) == events(base)
    assert after.n_steps == base.n_steps


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10**6), rounds=st.integers(0, 5))
def test_it_is_the_same_user_by_user(seed: int, rounds: int) -> None:
    rng = np.random.default_rng(seed)
    base = sequences_of(random_histories(seed), 30)
    chosen_RU = rng.integers(NOBODY, 30, (rounds, base.n_users)).astype(np.int32)
    expected = [
        history + [(int(item), base.n_steps + r) for r, item in enumerate(chosen_RU[:, user]) if item != NOBODY]
        for user, history in enumerate(events(base))
    ]
    assert events(grown(base, chosen_RU)) == expected
