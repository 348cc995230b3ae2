"""Means, intervals, tests, orders and gaps against brute force, on ranks made up by hand."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tests.experiment.reproduce.small import cell, made_up
from unveil.experiment.outcome import STANDARD, TRUE, Estimate
from unveil.experiment.reproduce.published import METRICS, published
from unveil.experiment.reproduce.ranking import ladders
from unveil.experiment.reproduce.results import Figure, Place, Results
from unveil.experiment.reproduce.rows import rows
from unveil.experiment.reproduce.verdict import beside, paper_order, same_order

NDCG = Figure(TRUE, "uniform-100", "NDCG", 10)
RECALL = Figure(TRUE, "uniform-100", "Recall", 10)
THREE = {
    "naive": [[1, 20, 3, 40], [2, 20, 30, 40], [1, 2, 30, 40]],
    "itps": [[1, 2, 3, 40], [1, 2, 3, 40], [1, 1, 3, 40]],
    "ideal": [[1, 1, 1, 2], [1, 1, 2, 40], [1, 1, 1, 1]],
}


def ndcg(ranks: list[int], k: int = 10) -> float:
    return sum(1 / math.log2(rank + 1) for rank in ranks if rank <= k) / len(ranks)


def test_a_figure_is_the_mean_over_replicates_with_students_interval() -> None:
    results = made_up(THREE)
    values = [ndcg(ranks) for ranks in THREE["naive"]]
    found = results.estimate(1.0, "naive", NDCG)
    low, high = stats.t.interval(0.95, 2, np.mean(values), stats.sem(values))
    assert results.units == "replicates"
    assert [found.mean, found.low, found.high, found.n] == [pytest.approx(x) for x in (np.mean(values), low, high, 3)]
    low, high = stats.t.interval(0.90, 2, np.mean(values), stats.sem(values))
    narrow = results.estimate(1.0, "naive", NDCG, 0.90)
    assert [narrow.low, narrow.high] == [pytest.approx(low), pytest.approx(high)]


def test_with_several_worlds_their_means_are_the_units() -> None:
    six = {"naive": [*THREE["naive"], *([[3, 4, 5, 6]] * 3)], "itps": [*THREE["itps"], *([[1, 2, 2, 2]] * 3)]}
    results = made_up(six, worlds=2)
    means = [np.mean([ndcg(ranks) for ranks in six["naive"][at : at + 3]]) for at in (0, 3)]
    found = results.estimate(1.0, "naive", NDCG)
    low, high = stats.t.interval(0.95, 1, np.mean(means), stats.sem(means))
    assert results.units == "worlds"
    assert [found.mean, found.low, found.high, found.n] == [pytest.approx(x) for x in (np.mean(means), low, high, 2)]


def test_with_one_replicate_the_users_are_the_units() -> None:
    results = made_up({arm: every[:1] for arm, every in THREE.items()})
    found, test = results.estimate(1.0, "itps", RECALL), results.against(1.0, "itps", "naive", RECALL)
    assert (results.units, found.n, found.mean) == ("users", 4, 0.75)
    assert test.p == pytest.approx(stats.ttest_rel([1, 1, 1, 0], [1, 0, 1, 0]).pvalue)
    lists = results.estimate(1.0, "itps", Figure(TRUE, "truth", "Relevance", 10))
    assert (lists.mean, lists.low, lists.high) == (0.5, None, None)


def test_the_gap_closed() -> None:
    results = made_up(THREE)
    naive, itps, ideal = (np.mean([ndcg(ranks) for ranks in THREE[arm]]) for arm in THREE)
    closed, nothing = results.gap_closed("itps", NDCG), results.gap_closed("naive", NDCG)
    assert closed is not None
    assert nothing == Estimate(0.0, 0.0, 0.0, 3)
    assert closed.mean == pytest.approx((itps - naive) / (ideal - naive))
    assert made_up({"naive": THREE["ideal"], "ideal": THREE["naive"]}).gap_closed("ideal", NDCG) is None
    assert made_up({"itps": THREE["itps"]}).gap_closed("itps", NDCG) is None


def test_the_gap_over_severities_is_that_of_the_means_where_users_are_the_units() -> None:
    """A harsher log loses users: there are no pairs between severities, and so there is no interval."""
    ranks = {
        1.0: {"naive": [2, 4, 9], "itps": [1, 3, 9], "ideal": [1, 1, 2]},
        4.0: {"naive": [9, 9], "itps": [5, 9], "ideal": [1, 2]},
    }
    cells = {Place(0, p, 0, arm): cell(rank, rank) for p, by_arm in ranks.items() for arm, rank in by_arm.items()}
    results = Results(cells, (1.0, 4.0), 1, 1, ["naive", "itps", "ideal"])
    naive, itps, ideal = (sum(ndcg(by_arm[arm]) for by_arm in ranks.values()) for arm in results.arms)
    both, one = results.gap_closed("itps", NDCG), results.gap_closed("itps", NDCG, [1.0])
    assert both is not None
    assert one is not None
    assert both.mean == pytest.approx((itps - naive) / (ideal - naive))
    assert (both.low, both.high) == (None, None)
    assert one.n == 3


def test_each_arm_is_tested_against_the_next_best_and_corrected_over_the_table() -> None:
    results = made_up(THREE)
    every = ladders(results, 1.0, TRUE, "uniform-100")
    assert [(ladder.figure.metric, ladder.figure.k) for ladder in every] == list(METRICS)
    raw = {}
    for ladder in every:
        assert ladder.order == ["ideal", "itps", "naive"]
        for step in ladder.steps[:-1]:
            one, two = (results.sample(1.0, arm, ladder.figure) for arm in (step.arm, str(step.below)))
            raw[ladder.figure, step.arm] = float(stats.ttest_rel(one, two).pvalue)
    order = sorted(raw, key=lambda key: raw[key])
    assert len(order) == 8
    running = 0.0
    for place, key in enumerate(order):
        running = min(1.0, max(running, (8 - place) * raw[key]))
        step = next(ladder for ladder in every if ladder.figure == key[0]).step(key[1])
        assert step.test is not None
        assert step.test.p == pytest.approx(running)
        assert step.sure == (running < 0.05)
    assert every[0].steps[-1].test is None
    assert not every[0].steps[-1].sure


def test_arms_that_are_the_same_everywhere_share_a_place_and_its_mark() -> None:
    users = {"naive": [[1] * 12], "control": [[1] * 12], "itps": [[40] * 10 + [1, 1]], "ips": [[40] * 10 + [1, 1]]}
    for order in (list(users), list(reversed(users))):
        for ladder in ladders(made_up({arm: users[arm] for arm in order}), 1.0, TRUE, "uniform-100"):
            first, last = ([ladder.step(arm) for arm in pair] for pair in (("naive", "control"), ("itps", "ips")))
            assert [step.sure for step in (*first, *last)] == [True, True, False, False]
            assert first[0].test == first[1].test
            assert {step.below for step in first} == {ladder.order[2]}
            assert all(step.below is None and step.test is None for step in last)


def test_the_papers_figures_stand_beside_ours() -> None:
    results = made_up(THREE)
    found = {(each.arm, each.figure): each for each in beside(results, 1.0, TRUE, "uniform-100")}
    assert len(found) == 12
    each = found["itps", NDCG]
    ours = np.mean([ndcg(ranks) for ranks in THREE["itps"]])
    assert each.paper == 0.6110
    assert each.deviation == pytest.approx(ours / 0.6110 - 1)
    assert each.near == (abs(ours / 0.6110 - 1) <= 0.05)
    assert each.ours.low is not None
    assert each.ours.high is not None
    assert each.covered == (each.ours.low <= 0.6110 <= each.ours.high)
    assert beside(results, 1.0, TRUE, "full") == []
    assert beside(made_up(THREE, severity=2.0), 2.0, TRUE, "uniform-100") == []


def test_the_papers_order() -> None:
    assert paper_order(TRUE, ("NDCG", 10), ["naive", "ips", "itps", "ideal"]) == ["ideal", "itps", "naive", "ips"]
    assert paper_order(STANDARD, ("Recall", 10), ["naive", "ips", "itps"]) == ["itps", "ips", "naive"]
    assert same_order(made_up(THREE), 1.0, NDCG)
    assert not same_order(made_up({"naive": THREE["itps"], "itps": THREE["naive"]}), 1.0, NDCG)


def test_published_figures_are_for_their_own_protocol_severity_and_arms() -> None:
    assert published("ideal", STANDARD, "uniform-100", "NDCG", 5) == 0.5593
    assert published("ideal", STANDARD, "full", "NDCG", 5) is None
    assert published("ideal", STANDARD, "uniform-100", "NDCG", 5, 2.0) is None
    assert published("ideal", STANDARD, "uniform-100", "MRR", 5) is None
    assert published("popularity", TRUE, "uniform-100", "NDCG", 5) is None


def test_rows_have_every_figure_once() -> None:
    results = made_up(THREE)
    table = rows(results, "quick")
    keys = [(r["estimator"], r["severity"], r["evaluation"], r["protocol"], r["metric"], r["k"]) for r in table]
    assert len(keys) == len(set(keys)) == 3 * (2 * 2 * 3 * 2 + 1)
    row = next(r for r in table if r["estimator"] == "itps" and Figure(*(r[f] for f in Figure._fields)) == NDCG)
    assert (row["paper"], row["replicates"], row["worlds"], row["preset"]) == (0.6110, 3, 1, "quick")
    closed = results.gap_closed("itps", NDCG)
    assert closed is not None
    assert [row[f"gap_closed{bound}"] for bound in ("", "_low", "_high")] == [closed.mean, closed.low, closed.high]
    assert all(r["gap_closed"] is None for r in table if r["evaluation"] == STANDARD)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(st.integers(1, 50), min_size=3, max_size=3), min_size=2, max_size=5))
def test_a_metric_of_a_cell_follows_from_its_ranks(every: list[list[int]]) -> None:
    results = made_up({"naive": every})
    assert results.estimate(1.0, "naive", NDCG).mean == pytest.approx(np.mean([ndcg(ranks) for ranks in every]))
    hits = np.mean([[rank <= 10 for rank in ranks] for ranks in every])
    assert results.estimate(1.0, "naive", RECALL).mean == pytest.approx(hits)
