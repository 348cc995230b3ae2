"""Tests."""

from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor, nn

from tests.data.logs import log_of
from tests.evaluation.small import Table, histories_of, random_histories
from tests.scorers import Constant
from unveil.data.interactions import Interactions, Sequences
from unveil.data.slots import Slots
from unveil.data.splits import EvalCases, Split, leave_one_out, temporal_split
from unveil.errors import UnveilError
from unveil.evaluation.evaluator import Evaluator, ValidationEvaluator
from unveil.evaluation.metrics import NOBODY
from unveil.models.baselines import Random, fitted


def split_of(seed: int, n_users: int = 30) -> Split:
    return leave_one_out(random_histories(np.random.default_rng(seed), n_users=n_users))


def evaluator_of(split: Split, *, exclude_seen: bool = True, length: int = 8) -> Evaluator:
    return Evaluator.of(
        split.test, split.whole, split.train, length=length, uniform=10, popular=5, exclude_seen=exclude_seen
    )


def test_by_hand() -> None:
    """Two users, six items, the score of an item is its index: the higher, the better."""
    split = leave_one_out(histories_of([5, 0, 1, 4], [0, 1, 2, 3], n_items=6))
    rising = Table(np.tile(np.arange(6, dtype=np.float32), (6, 1)))
    evaluator = Evaluator.of(split.test, split.whole, split.train, length=4, uniform=2, popular=0)
    result = evaluator.evaluate(rising, k=(1, 2), top=2)
    assert result.frame["full:rank"].to_list() == [1, 3]  # user 0 has seen item 5; items 4 and 5 are above item 3
    assert result.frame["top"].to_list() == [[4, 3], [5, 4]]
    assert result.value("full", "Recall", 1) == 0.5
    assert result.value("full", "MRR", 2) == 0.5
    assert result.frame["step"].to_list() == [3, 3]
    # training counts: item 0 twice, 1 and 5 once; lists [4, 3] and [5, 4]
    assert result.value("lists", "ARP", 2) == pytest.approx((0 + 0 + 1 + 0) / 4)
    assert result.value("lists", "Coverage", 2) == 3 / 6


@settings(max_examples=25)
@given(seed=st.integers(0, 5_000), levels=st.sampled_from([1, 3, 1000]), exclude_seen=st.booleans())
def test_against_a_loop_over_cases(seed: int, levels: int, exclude_seen: bool) -> None:
    split = split_of(seed, n_users=12)
    scorer = Table.drawn(np.random.default_rng(seed), split.whole.n_items, levels)
    evaluator = evaluator_of(split, exclude_seen=exclude_seen)
    frame = evaluator.evaluate(scorer, resamples=10).frame
    for row in frame.iter_rows(named=True):
        context = split.whole.history(row["user"])[: row["seen"]].tolist()
        score, seen = scorer.value_VV[context[-1]], set(context) if exclude_seen else set()
        rivals = [i for i in range(split.whole.n_items) if i != row["item"] and i not in seen]
        assert row["full:rank"] == 1 + sum(score[i] >= score[row["item"]] for i in rivals)
        best = sorted((i for i in range(split.whole.n_items) if i not in seen), key=lambda i: (-score[i], i))
        assert row["top"] == best[:10]
        assert row["full:NDCG@10"] == (1 / np.log2(1 + row["full:rank"]) if row["full:rank"] <= 10 else 0)
    for name, negative_CN in evaluator.candidates.negatives.items():
        for row, negatives in zip(frame.iter_rows(named=True), negative_CN, strict=True):
            score = scorer.value_VV[split.whole.history(row["user"])[row["seen"] - 1]]
            assert row[f"{name}:rank"] == 1 + (score[negatives] >= score[row["item"]]).sum()


@pytest.mark.parametrize("batch_size", [1, 7, 1000])
@pytest.mark.parametrize("bucket", [True, False])
def test_does_not_depend_on_the_batches(batch_size: int, bucket: bool) -> None:
    split = split_of(3)
    evaluator, scorer = evaluator_of(split), Random(split.whole.n_items)
    reference = evaluator.evaluate(scorer)
    other = replace(evaluator, batch_size=batch_size, bucket=bucket).evaluate(scorer)
    assert other.frame.equals(reference.frame)
    assert other.summary.equals(reference.summary)


def test_a_constant_scorer_earns_nothing() -> None:
    split = split_of(4)
    evaluator = Evaluator.of(split.test, split.whole, split.train, length=8, uniform=10, popular=10)
    of_ranks = evaluator.evaluate(Constant(split.whole.n_items)).summary.filter(pl.col("protocol") != "lists")
    assert len(of_ranks) == 3 * 3 * 2
    assert of_ranks["mean"].to_list() == [0] * len(of_ranks)


def test_averages_over_users_not_cases_or_batches() -> None:
    whole = histories_of([0, 1, 2, 3], [4, 5], n_items=6)
    cases = EvalCases(*(np.array(c, np.int32) for c in ([0, 0, 0, 1], [1, 2, 3, 5], [1, 2, 3, 1], [1, 2, 3, 1])))
    evaluator = Evaluator.of(cases, whole, whole, length=4, uniform=0, popular=0)
    falling = Table(np.tile(-np.arange(6, dtype=np.float32), (6, 1)))  # always right about user 0, never about user 1
    result = replace(evaluator, batch_size=2).evaluate(falling, k=(1,), top=1)
    assert result.frame["full:rank"].to_list() == [1, 1, 1, 5]
    assert result.value("full", "Recall", 1) == 0.5
    assert result.summary["n"].to_list() == [2] * len(result.summary)


def test_a_replaced_target_is_judged_as_any_other() -> None:
    split = split_of(5)
    first_C = split.whole.item_N[split.whole.offset_U1[split.test.user_C]]  # each target one that was seen before
    cases = replace(split.test, item_C=first_C)
    evaluator = Evaluator.of(cases, split.whole, split.train, length=8, uniform=10, popular=5)
    frame = evaluator.evaluate(Table(np.tile(-np.arange(40, dtype=np.float32), (40, 1)))).frame
    first_choice = frame.filter(pl.col("item") == 0)
    assert len(first_choice) > 3
    assert first_choice["full:rank"].to_list() == [1] * len(first_choice)
    assert not any(0 in top for top in first_choice["top"].to_list())


def test_a_judge_adds_its_own_column() -> None:
    split = split_of(6)

    def last_place(case_B: NDArray[np.int64], scores_BV: Tensor, top_BK: Tensor) -> Tensor:
        return torch.from_numpy(case_B).double() + top_BK[:, -1] / 100

    evaluator = replace(evaluator_of(split), case_metrics={"truth:Place@10": last_place}, batch_size=4)
    frame = evaluator.evaluate(Random(split.whole.n_items)).frame
    expected = [c + top[-1] / 100 for c, top in enumerate(frame["top"].to_list())]
    assert frame["truth:Place@10"].to_list() == pytest.approx(expected)


class Net(nn.Module):
    def scores(self, token_BL: Tensor) -> Tensor:
        assert not self.training
        assert not torch.is_grad_enabled()
        return torch.zeros(len(token_BL), 40)


@pytest.mark.parametrize("training", [True, False])
def test_a_network_is_judged_at_rest_and_left_as_it_was(training: bool) -> None:
    net = Net().train(training)
    evaluator_of(split_of(1)).evaluate(net, resamples=1)
    assert net.training == training


def test_progress_ends_at_the_number_of_cases() -> None:
    told: list[int] = []
    replace(evaluator_of(split_of(1)), batch_size=7).evaluate(Constant(40), progress=told.append)
    assert told == [7, 14, 21, 28, 30]


def test_a_user_who_has_seen_nearly_all_gets_a_short_list() -> None:
    split = leave_one_out(histories_of([0, 1, 2, 3], n_items=4))
    evaluator = Evaluator.of(split.test, split.whole, split.train, length=4, uniform=0, popular=0)
    result = evaluator.evaluate(Constant(4), k=(1,), top=3)
    assert result.frame["top"].to_list() == [[3, NOBODY, NOBODY]]
    assert result.value("full", "Recall", 1) == 1  # the only candidate


@dataclass(frozen=True)
class Broken:
    scores_BV: Tensor

    def scores(self, token_BL: Tensor) -> Tensor:
        return self.scores_BV.expand(len(token_BL), -1)


@pytest.mark.parametrize(
    ("scores_V", "message"),
    [
        (torch.tensor([0.0] * 39 + [torch.nan]), "Broken: some scores are not numbers"),
        (torch.zeros(41), "Broken: scores of the wrong shape"),
    ],
)
def test_scores_that_cannot_be_ranked_are_refused(scores_V: Tensor, message: str) -> None:
    with pytest.raises(UnveilError, match=message):
        evaluator_of(split_of(1)).evaluate(Broken(scores_V))


def test_bad_requests_are_refused() -> None:
    split = split_of(1)
    evaluator = evaluator_of(split)
    with pytest.raises(UnveilError, match=r"k is out of range: found 41, expected between 1 and the 40 items"):
        evaluator.evaluate(Constant(40), k=(41,))
    with pytest.raises(UnveilError, match="drawn for other cases"):
        replace(evaluator, cases=split.valid)
    with pytest.raises(UnveilError, match="no cases"):
        nobody = EvalCases(*(np.zeros(0, np.int32) for _ in range(4)))
        Evaluator.of(nobody, split.whole, split.train, length=8)


def popularity_of(sequences: Sequences) -> tuple[float, float, float]:
    split = leave_one_out(sequences)
    evaluator = Evaluator.of(split.test, split.whole, split.train, length=50)
    result = evaluator.evaluate(fitted("popularity", split.train))
    full, uniform, popular = (result.value(name, "Recall", 10) for name in ("full", "uniform-100", "popular-100"))
    return full, uniform, popular


def test_popularity_on_generated_histories() -> None:
    rng = np.random.default_rng(0)
    sequences = random_histories(rng, n_users=500, n_items=800, longest=30, repeats=False)
    full, uniform, popular = popularity_of(sequences)
    assert 10 / 800 < full < popular < uniform


def test_popularity_on_ml_1m(shared_data: Path) -> None:
    full, uniform, popular = popularity_of(Sequences.of(Interactions.read(shared_data / "ml-1m" / "ml-1m.txt.gz")))
    assert full == pytest.approx(0.0369, abs=0.0005)
    assert uniform == pytest.approx(0.435, abs=0.02)
    assert popular == pytest.approx(0.138, abs=0.02)


def split_in_time() -> Split:
    rng = np.random.default_rng(1)
    rows = [(f"u{rng.integers(20)}", f"i{rng.integers(15)}", int(time)) for time in rng.permutation(600)]
    return temporal_split(Sequences.of(log_of(rows)), targets="all")


SPLITS = {
    "leave one out": leave_one_out(random_histories(np.random.default_rng(0))),
    "in time": split_in_time(),
}


@pytest.mark.parametrize("name", SPLITS)
def test_says_what_the_whole_evaluation_of_the_validation_cases_says(name: str) -> None:
    split = SPLITS[name]
    validate = ValidationEvaluator.of(split, length=6)
    scorer = Random(split.whole.n_items)
    whole = Evaluator.of(split.valid, split.whole, split.train, length=6, uniform=0, popular=0)
    assert validate(scorer) == pytest.approx(whole.evaluate(scorer).value("full", "NDCG", 10))
    assert validate.evaluator.evaluate(scorer).summary.equals(whole.evaluate(scorer).summary)


def held(thing: object) -> list[object]:
    """Everything that can be reached from an object through its fields."""
    inner = [getattr(thing, field.name) for field in fields(thing)] if is_dataclass(thing) else []
    return [thing, *(deeper for part in inner for deeper in held(part))]


@pytest.mark.parametrize("name", SPLITS)
def test_no_test_event_can_be_reached(name: str) -> None:
    split = SPLITS[name]
    test_event = {
        int(split.whole.event_N[split.whole.offset_U1[u] + n])
        for u, n in zip(split.test.user_C, split.test.seen_C, strict=True)
    }
    reachable = held(ValidationEvaluator.of(split, length=6))
    histories = [part for part in reachable if isinstance(part, Sequences)]
    assert len(histories) == 1
    assert not test_event & set(histories[0].event_N.tolist())
    assert [part for part in reachable if isinstance(part, EvalCases)] == [split.valid]
    assert not any(isinstance(part, Split) for part in reachable)


def test_takes_are_ranked_by_what_is_expected_to_be_taken() -> None:
    """The shift is asked for at each case's own user and step, and added to all scores."""
    split = SPLITS["in time"]
    asked: list[Slots] = []

    def towards_what_was_taken(slots: Slots) -> Tensor:
        asked.append(slots)
        return torch.nn.functional.one_hot(slots.item_M, split.whole.n_items).float()

    scorer = Random(split.whole.n_items)  # between 0 and 1
    validate = ValidationEvaluator.of(split, length=6)
    assert validate(scorer) < 0.9
    assert validate.explained_by(towards_what_was_taken)(scorer) == 1
    cases, order = split.valid, np.lexsort
    found = np.concatenate([torch.stack([s.user_M, s.item_M, s.step_M]).numpy() for s in asked], axis=1)
    expected = np.stack([cases.user_C, cases.item_C, cases.step_C])
    np.testing.assert_array_equal(found[:, order(found)], expected[:, order(expected)])


def test_the_truth_is_ranked_by_scores_alone() -> None:
    split = SPLITS["leave one out"]
    validate = replace(ValidationEvaluator.of(split, length=6), of_interactions=False)
    assert validate.explained_by(lambda slots: torch.rand(len(slots), split.whole.n_items)) is validate


def test_another_metric_and_protocol_can_be_chosen() -> None:
    split = SPLITS["leave one out"]
    validate = ValidationEvaluator.of(split, length=6, monitor="Recall@5", protocol="uniform-10")
    scorer = Random(split.whole.n_items)
    assert validate(scorer) == pytest.approx(validate.evaluator.evaluate(scorer).value("uniform-10", "Recall", 5))


def test_what_does_not_exist_is_refused() -> None:
    split = SPLITS["leave one out"]
    with pytest.raises(UnveilError, match="no such protocol: found 'some-10', expected full, uniform-N or popular-N"):
        ValidationEvaluator.of(split, length=6, protocol="some-10")
    with pytest.raises(UnveilError, match="not a metric of the target's rank: found 'Gini'"):
        ValidationEvaluator.of(split, length=6, monitor="Gini@10")
