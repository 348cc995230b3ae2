"""What popularity scores: by hand, and by the evaluator that judges every model."""

import numpy as np
import pytest

from tests.audit.logs import generated
from tests.audit.small import sequences_of
from unveil.audit.baselines import BASELINES, baselines, last_period, popularity
from unveil.data.interactions import Sequences
from unveil.data.splits import leave_one_out, temporal_split
from unveil.evaluation.evaluator import Evaluator
from unveil.models.baselines import fitted


def test_ranks_by_hand() -> None:
    # Training counts: item 0 three, item 1 two, items 2 and 3 one, the rest none.
    histories = [[0, 1, 5, 2], [0, 1, 5, 3], [0, 2, 3, 5, 1]]
    split = leave_one_out(sequences_of(histories, 6))
    scores = baselines({"loo": split}, np.random.default_rng(0))
    full = {(s.baseline, s.metric): s for s in scores if s.protocol == "full"}
    # Targets 2, 3, 1. Seen items do not compete, ties go against the target: of {2, 3, 4} 2 is second; of
    # {2, 3, 4} 3 is second; of {1, 4} 1 is first.
    assert full["popularity", "Recall@10"].mean == 1
    assert full["popularity", "NDCG@10"].mean == pytest.approx((2 / np.log2(3) + 1) / 3)
    assert full["popularity", "NDCG@10"].cases == 3


@pytest.mark.parametrize("split", [leave_one_out, temporal_split])
def test_all_figures_are_those_of_the_evaluator(split: type) -> None:
    parts = split(Sequences.of(generated()))
    scores = baselines({"it": parts}, np.random.default_rng(5))
    assert {s.baseline for s in scores} == set(BASELINES)
    judged = Evaluator.of(parts.test, parts.whole, parts.train, length=4, uniform=0, popular=0).evaluate(
        fitted("popularity", parts.train), k=(10,), resamples=10
    )
    for metric in ("Recall", "NDCG"):
        found = [s for s in scores if (s.baseline, s.protocol, s.metric) == ("popularity", "full", f"{metric}@10")]
        assert found[0].mean == pytest.approx(judged.value("full", metric, 10))
        assert found[0].low <= found[0].mean <= found[0].high
    named = {s.protocol.partition("-")[0] for s in scores}
    assert named == {"full", "uniform", "popular"}


def test_the_last_period_is_the_last_tenth() -> None:
    timed = sequences_of([[0] * 10, [1] * 10], 2, [list(range(10)), list(range(100, 110))])
    assert last_period(timed).tolist() == [1, 1]
    log = generated(clock=False)
    ordered = Sequences.of(log)
    late = [ordered.history(user)[-int(np.ceil(n / 10)) :] for user, n in enumerate(ordered.length_U)]
    assert last_period(ordered).tolist() == np.concatenate(late).tolist()


def test_equals_of_late_stand_by_their_whole_popularity() -> None:
    split = leave_one_out(sequences_of([[0, 0, 1, 2, 2, 2], [1, 0, 2, 2, 2]], 3))
    score = popularity(split)["last-period popularity"]
    counts = popularity(split)["popularity"]
    assert counts.tolist() == [3, 2, 2]
    assert score[0] != score[1] or counts[0] == counts[1]
    assert np.floor(score).sum() == len(last_period(split.train))


def test_a_small_catalogue_gets_the_negatives_it_has() -> None:
    split = leave_one_out(sequences_of([[0, 1, 2, 0], [1, 2, 0, 1], [2, 0, 1, 2]], 3))
    assert {s.protocol for s in baselines({"it": split}, np.random.default_rng(0))} == {"full"}
