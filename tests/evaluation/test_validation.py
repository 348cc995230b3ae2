from dataclasses import fields, is_dataclass, replace

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.data.logs import log_of
from tests.evaluation.small import random_histories
from unveil.data.sequences import Sequences
from unveil.data.slots import Slots
from unveil.data.splits import EvalCases, Split, leave_one_out, temporal_split
from unveil.errors import UnveilError
from unveil.evaluation.evaluator import Evaluator
from unveil.evaluation.validation import ValidationEvaluator
from unveil.models.baselines import Random


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
    assert validate.evaluate(scorer).summary.equals(whole.evaluate(scorer).summary)


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
    validate = replace(ValidationEvaluator.of(split, length=6), of_takes=False)
    assert validate.explained_by(lambda slots: torch.rand(len(slots), split.whole.n_items)) is validate


def test_another_metric_and_protocol_can_be_chosen() -> None:
    split = SPLITS["leave one out"]
    validate = ValidationEvaluator.of(split, length=6, metric_name="Recall", k=5, protocol="uniform-10", uniform=10)
    scorer = Random(split.whole.n_items)
    assert validate(scorer) == pytest.approx(validate.evaluate(scorer).value("uniform-10", "Recall", 5))


def test_what_does_not_exist_is_refused() -> None:
    split = SPLITS["leave one out"]
    with pytest.raises(UnveilError, match="no such protocol: found 'uniform-10', expected one of full"):
        ValidationEvaluator.of(split, length=6, protocol="uniform-10")
    with pytest.raises(UnveilError, match="not a metric of the target's rank: found 'Gini'"):
        ValidationEvaluator.of(split, length=6, metric_name="Gini")
