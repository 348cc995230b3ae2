"""The true favourite at a case's own user and step: by hand, and slot by slot."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import spearmanr

from tests.evaluation.small import Table
from unveil.data.indexing import Vocabulary
from unveil.data.interactions import Sequences
from unveil.data.splits import EvalCases, leave_one_out
from unveil.evaluation.evaluator import CaseMetric, Evaluator, favourites_of, true_cases, true_relevance_metrics
from unveil.evaluation.metrics import NOBODY, RankCorrelation, Regret, Relevance, higher_is_better, metric
from unveil.evaluation.ranking import Scorer
from unveil.evaluation.result import Evaluation, compare
from unveil.models.baselines import fitted
from unveil.propensity.factors import Factors
from unveil.simulation.builtin import WorldSpec
from unveil.simulation.world import World


def turning() -> World:
    """One user, three items, two steps: γ is .8, .5, .2 at step 0 and .2, .5, .8 at step 1."""
    relevance = Factors.of(np.ones((1, 1)), np.log(4) * np.array([[1.0], [0.0], [-1.0]]), np.array([[1.0], [-1.0]]))
    nothing = Factors.constant(1, 3, 2)
    return World(relevance, nothing, Vocabulary("u"), Vocabulary("abc"), np.zeros(1, np.int32), 1.0, {})


def cases(user: list[int], step: list[int], item: list[int] | None = None) -> EvalCases:
    columns = (user, item or [0] * len(user), step, range(1, len(user) + 1))
    return EvalCases(*(np.array(column, np.int32) for column in columns))


def test_the_target_becomes_the_favourite_at_the_cases_own_step() -> None:
    asked = cases([0, 0], [0, 1], [1, 1])
    true = true_cases(turning(), asked)
    assert true.item_C.tolist() == [0, 2]
    assert true.item_C.dtype == asked.item_C.dtype
    for same in ("user_C", "step_C", "seen_C"):
        assert getattr(true, same) is getattr(asked, same)
    assert asked.item_C.tolist() == [1, 1]


def test_no_cases_stay_no_cases() -> None:
    assert len(true_cases(turning(), cases([], [], []))) == 0


def test_favourites_of_many_blocks_agree_with_a_loop() -> None:
    world, rng = World.builtin(WorldSpec(users=20, items=9, steps=6, shortest=3)), np.random.default_rng(0)
    user, step = rng.integers(20, size=2500), rng.integers(6, size=2500)
    by_hand = [int(world.relevance(user[[n]], step[[n]])[0].argmax()) for n in range(2500)]
    assert favourites_of(world, user, step).tolist() == by_hand


def test_over_the_observed_catalogue_all_is_among_what_occurs_in_the_log() -> None:
    """Targets, negatives and rankings; an item that occurs in held-out events only is observed too."""
    whole = World.builtin(WorldSpec(users=20, items=60, steps=10, shortest=5, severity=1))
    log = whole.log(np.random.default_rng(0)).compact()
    world, split = whole.aligned_with(log), leave_one_out(Sequences.of(log))
    assert 20 < world.n_items < whole.n_items
    held_out = set(split.test.item_C.tolist()) - set(split.train.item_N.tolist())
    assert held_out
    true = true_cases(world, split.test)
    evaluator = Evaluator.of(
        true, split.whole, split.train, length=8, uniform=world.n_items - 1, popular=0, exclude_seen=False
    )
    negative_CN = evaluator.candidates.negatives[f"uniform-{world.n_items - 1}"]
    for case, row in enumerate(negative_CN.tolist()):
        assert {*row, int(true.item_C[case])} == set(range(world.n_items))
    observed = set(log.items.ids)
    for user, step, item in zip(true.user_C, true.step_C, true.item_C, strict=True):
        place = whole.users.index([log.users[int(user)]])
        gamma_V = whole.relevance(place, np.array([step]))[0]
        best = max((i for i in range(whole.n_items) if whole.items[i] in observed), key=lambda i: float(gamma_V[i]))
        assert world.items[int(item)] == whole.items[best]


GAMMA = np.array([[0.8, 0.5, 0.2]], np.float32)
NOTHING = np.zeros((1, 3), np.float32)


def test_relevance_and_regret_of_a_list_by_hand() -> None:
    top = np.array([[1, 0]])
    assert Relevance()(GAMMA, NOTHING, top) == pytest.approx([0.65])
    assert Regret()(GAMMA, NOTHING, top) == pytest.approx([0], abs=1e-6)
    assert Regret()(GAMMA, NOTHING, np.array([[2, 1]])) == pytest.approx([0.3])


def test_an_empty_place_is_worth_nothing() -> None:
    top = np.array([[0, NOBODY, NOBODY, NOBODY]])
    assert Relevance()(GAMMA, NOTHING, top) == pytest.approx([0.8 / 4])
    assert Regret()(GAMMA, NOTHING, top) == pytest.approx([(0.5 + 0.2) / 4])


def test_rank_correlation_by_hand() -> None:
    """With d the differences of ranks and no ties, ρ = 1 − 6 Σ d² / (n (n² − 1)): here Σ d² is 0, 8, 2 and 6."""
    for score, rho in (([3, 2, 1], 1), ([1, 2, 3], -1), ([2, 3, 1], 0.5), ([1, 3, 2], -0.5)):
        found = RankCorrelation()(GAMMA, np.array([score], np.float32), np.zeros((1, 1), int))
        assert found == pytest.approx([rho])


def test_equal_scores_share_their_ranks_and_all_equal_is_no_order() -> None:
    shared = RankCorrelation()(GAMMA, np.array([[5, 5, 1]], np.float32), np.zeros((1, 1), int))
    assert shared == pytest.approx([1.5 / np.sqrt(1.5 * 2)])  # ranks 2.5, 2.5, 1 against 3, 2, 1
    assert RankCorrelation()(GAMMA, NOTHING, np.zeros((1, 1), int)).tolist() == [0]
    assert RankCorrelation()(NOTHING, GAMMA, np.zeros((1, 1), int)).tolist() == [0]


def ranks_by_counting(value: list[float]) -> list[float]:
    return [sum(x < v for x in value) + (sum(x == v for x in value) + 1) / 2 for v in value]


few = st.sampled_from([-np.inf, -1.5, 0.0, 0.25, 7.0])


@given(arrays(np.float32, (4, 9), elements=few), arrays(np.float32, (4, 9), elements=st.floats(0, 1, width=32)))
def test_rank_correlation_agrees_with_scipy_and_with_counting(scores: np.ndarray, gamma: np.ndarray) -> None:
    found = RankCorrelation()(gamma, scores, np.zeros((4, 1), int))
    for row in range(4):
        if len(set(scores[row].tolist())) < 2 or len(set(gamma[row].tolist())) < 2:
            assert found[row] == 0
            continue
        assert found[row] == pytest.approx(spearmanr(np.nan_to_num(scores[row]), gamma[row]).statistic)
        one, other = ranks_by_counting(scores[row].tolist()), ranks_by_counting(gamma[row].tolist())
        assert found[row] == pytest.approx(np.corrcoef(one, other)[0, 1])


def test_a_case_is_judged_at_its_own_user_and_step() -> None:
    asked, which = cases([0, 0], [0, 1]), np.array([1, 0])
    top = torch.tensor([[0, 1], [0, 1]])  # for the case of step 1, then for that of step 0
    scores = torch.tensor([[3.0, 2.0, 1.0]] * 2)
    found = {
        name: metric(which, scores, top).tolist()
        for name, metric in true_relevance_metrics(turning(), asked, 2).items()
    }
    assert found["truth:Relevance@2"] == pytest.approx([(0.2 + 0.5) / 2, (0.8 + 0.5) / 2])
    assert found["truth:Regret@2"] == pytest.approx([0.65 - 0.35, 0], abs=1e-6)
    assert found["truth:RankCorrelation"] == pytest.approx([-1, 1])


@given(seed=st.integers(0, 50), k=st.integers(1, 12))
def test_judges_agree_with_a_loop_over_cases(seed: int, k: int) -> None:
    world, rng = World.builtin(WorldSpec(users=7, items=12, steps=5, shortest=2), seed), np.random.default_rng(seed)
    user, step = (rng.integers(n, size=9).tolist() for n in (7, 5))
    asked, which = cases(user, step), rng.permutation(9)[:6]
    scores = torch.from_numpy(rng.standard_normal((6, 12)))
    top = torch.from_numpy(np.stack([rng.permutation(12)[:k] for _ in which]))
    found = {name: metric(which, scores, top) for name, metric in true_relevance_metrics(world, asked, k).items()}
    for row, case in enumerate(which):
        gamma_V = world.relevance(asked.user_C[[case]], asked.step_C[[case]])[0]
        mean, best = gamma_V[top[row]].mean(), np.sort(gamma_V)[-k:].mean()
        assert float(found[f"truth:Relevance@{k}"][row]) == pytest.approx(float(mean), abs=1e-6)
        assert float(found[f"truth:Regret@{k}"][row]) == pytest.approx(float(best - mean), abs=1e-6)
        rho = spearmanr(scores[row].numpy(), gamma_V).statistic
        assert float(found["truth:RankCorrelation"][row]) == pytest.approx(rho)


def test_they_are_what_an_evaluator_asks_for() -> None:
    given_to_an_evaluator: dict[str, CaseMetric] = dict(true_relevance_metrics(turning(), cases([0], [0]), 2))
    assert list(given_to_an_evaluator) == ["truth:RankCorrelation", "truth:Regret@2", "truth:Relevance@2"]


@pytest.fixture(scope="module")
def evaluations() -> dict[str, Evaluation]:
    """One scorer that knows the truth of the last step, and one that counts."""
    world = World.builtin(WorldSpec(users=60, items=40, steps=12, shortest=5, drift=0.0, personal=0.0))
    split = leave_one_out(Sequences.of(world.log(np.random.default_rng(0))))
    true = true_cases(world, split.test)
    evaluator = Evaluator.of(true, split.whole, split.train, length=12, uniform=5, popular=0, exclude_seen=False)
    evaluator = replace(evaluator, case_metrics=true_relevance_metrics(world, true, 5))
    knowing = Table(np.tile(world.relevance(np.array([0]), np.array([11])), (40, 1)))  # alike for all, at all steps
    scorers: dict[str, Scorer] = {"counts": fitted("popularity", split.train), "knows": knowing}
    return {name: evaluator.evaluate(scorer, top=5, resamples=50) for name, scorer in scorers.items()}


def test_the_truth_itself_has_no_regret_and_the_whole_order(evaluations: dict[str, Evaluation]) -> None:
    knows, counts = evaluations["knows"], evaluations["counts"]
    assert knows.value("truth", "Regret", 5) == pytest.approx(0, abs=1e-6)
    assert knows.value("truth", "RankCorrelation", 0) == pytest.approx(1)
    assert 0 < counts.value("truth", "RankCorrelation", 0) < 1
    assert counts.value("truth", "Regret", 5) > 0.01
    assert counts.frame["truth:RankCorrelation"].mean() == pytest.approx(counts.value("truth", "RankCorrelation", 0))


def test_a_comparison_knows_and_says_the_direction(evaluations: dict[str, Evaluation]) -> None:
    comparison = compare(evaluations)
    for name, higher in (("Regret", False), ("Relevance", True), ("RankCorrelation", True)):
        assert higher_is_better(name) == higher == metric(name).higher_is_better
        figure = comparison.table.filter((pl.col("protocol") == "truth") & (pl.col("metric") == name))
        assert dict(figure.select("model", "place").rows()) == {"knows": 1, "counts": 2}
        assert dict(figure.select("model", "significant").rows()) == {"knows": True, "counts": False}
        assert set(figure["higher_is_better"]) == {higher}
        tests = comparison.tests.filter((pl.col("protocol") == "truth") & (pl.col("metric") == name))
        assert tests["higher_is_better"].to_list() == [higher]
