"""Means, intervals, tests, orders and gaps against brute force, on ranks made up by hand."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tests.studies.small import answer_of, made_up, record
from unveil.studies.paper import Published
from unveil.studies.results import STANDARD, TRUE, Estimate, Measure
from unveil.studies.rq2 import RQ2
from unveil.studies.semisynthetic import csv_rows

NDCG = Measure(TRUE, "uniform-100", "NDCG", 10)
RECALL = Measure(TRUE, "uniform-100", "Recall", 10)
THREE = {
    "naive": [[1, 20, 3, 40], [2, 20, 30, 40], [1, 2, 30, 40]],
    "itps": [[1, 2, 3, 40], [1, 2, 3, 40], [1, 1, 3, 40]],
    "ideal": [[1, 1, 1, 2], [1, 1, 2, 40], [1, 1, 1, 1]],
}


def ndcg(ranks: list[int], k: int = 10) -> float:
    return sum(1 / math.log2(rank + 1) for rank in ranks if rank <= k) / len(ranks)


def test_a_figure_is_the_mean_over_replicates_with_students_interval() -> None:
    results = made_up(THREE).results
    values = [ndcg(ranks) for ranks in THREE["naive"]]
    found = results.estimate("naive", NDCG)
    low, high = stats.t.interval(0.95, 2, np.mean(values), stats.sem(values))
    assert results.units == "replicates"
    assert [found.mean, found.low, found.high, found.n] == [pytest.approx(x) for x in (np.mean(values), low, high, 3)]
    low, high = stats.t.interval(0.90, 2, np.mean(values), stats.sem(values))
    narrow = results.estimate("naive", NDCG, 0.90)
    assert [narrow.low, narrow.high] == [pytest.approx(low), pytest.approx(high)]


def test_with_several_worlds_their_means_are_the_units() -> None:
    six = {"naive": [*THREE["naive"], *([[3, 4, 5, 6]] * 3)], "itps": [*THREE["itps"], *([[1, 2, 2, 2]] * 3)]}
    results = made_up(six, worlds=2).results
    means = [np.mean([ndcg(ranks) for ranks in six["naive"][at : at + 3]]) for at in (0, 3)]
    found = results.estimate("naive", NDCG)
    low, high = stats.t.interval(0.95, 1, np.mean(means), stats.sem(means))
    assert results.units == "worlds"
    assert [found.mean, found.low, found.high, found.n] == [pytest.approx(x) for x in (np.mean(means), low, high, 2)]


def test_with_one_replicate_the_users_are_the_units() -> None:
    results = made_up({arm: every[:1] for arm, every in THREE.items()}).results
    found, test = results.estimate("itps", RECALL), results.difference("itps", "naive", RECALL)
    assert (results.units, found.n, found.mean) == ("users", 4, 0.75)
    assert test.p == pytest.approx(stats.ttest_rel([1, 1, 1, 0], [1, 0, 1, 0]).pvalue)
    lists = results.estimate("itps", Measure(TRUE, "truth", "Relevance", 10))
    assert (lists.mean, lists.low, lists.high) == (0.5, None, None)


def test_the_gap_closed() -> None:
    results = made_up(THREE).results
    naive, itps, ideal = (np.mean([ndcg(ranks) for ranks in THREE[arm]]) for arm in THREE)
    closed, nothing = results.gap_closed("itps", NDCG), results.gap_closed("naive", NDCG)
    assert closed is not None
    assert nothing == Estimate(0.0, 0.0, 0.0, 3)
    assert closed.mean == pytest.approx((itps - naive) / (ideal - naive))
    assert made_up({"naive": THREE["ideal"], "ideal": THREE["naive"]}).results.gap_closed("ideal", NDCG) is None
    assert made_up({"itps": THREE["itps"]}).results.gap_closed("itps", NDCG) is None


def test_the_gap_over_severities_is_that_of_the_means_where_users_are_the_units() -> None:
    """A more severe log loses users: there are no pairs between severities, and so there is no interval."""
    ranks = {
        1.0: {"naive": [2, 4, 9], "itps": [1, 3, 9], "ideal": [1, 1, 2]},
        4.0: {"naive": [9, 9], "itps": [5, 9], "ideal": [1, 2]},
    }
    arms = ("naive", "itps", "ideal")
    study = RQ2(data="builtin", preset="quick", severities=(1.0, 4.0), replicates=1, estimators=arms)
    records = {f"w0-p{p:g}-r0-{arm}": record(own[arm], own[arm]) for p, own in ranks.items() for arm in arms}
    results = answer_of(study, records).results
    naive, itps, ideal = (sum(ndcg(by_arm[arm]) for by_arm in ranks.values()) for arm in results.arms)
    both, one = results.gap_closed("itps", NDCG), results.at(severity=1.0).gap_closed("itps", NDCG)
    assert both is not None
    assert one is not None
    assert both.mean == pytest.approx((itps - naive) / (ideal - naive))
    assert (both.low, both.high) == (None, None)
    assert one.n == 3


def test_each_arm_is_tested_against_the_next_best_and_corrected_over_the_table() -> None:
    results = made_up(THREE).results
    every = results.against_next(Published.semisynthetic(TRUE).measures)
    assert [each.measure.name for each in every[::3]] == ["Recall@10", "NDCG@10", "Recall@5", "NDCG@5"]
    assert [each.arm for each in every] == 4 * ["ideal", "itps", "naive"]
    raw = {}
    for step in every:
        if step.below is not None:
            one, two = (results.sample(arm, step.measure) for arm in (step.arm, step.below))
            raw[step.measure, step.arm] = float(stats.ttest_rel(one, two).pvalue)
    order = sorted(raw, key=lambda key: raw[key])
    assert len(order) == 8
    running, steps = 0.0, {(step.measure, step.arm): step for step in every}
    for place, key in enumerate(order):
        running = min(1.0, max(running, (8 - place) * raw[key]))
        test = steps[key].test
        assert test is not None
        assert test.p == pytest.approx(running)
        assert steps[key].significant == (running < 0.05)
    assert every[2].test is None
    assert not every[2].significant


def test_arms_that_are_the_same_everywhere_share_a_place_and_its_mark() -> None:
    users = {"naive": [[1] * 12], "ideal": [[1] * 12], "itps": [[40] * 10 + [1, 1]], "ips": [[40] * 10 + [1, 1]]}
    for order in (list(users), list(reversed(users))):
        results = made_up({arm: users[arm] for arm in order}).results
        for measure in Published.semisynthetic(TRUE).measures:
            step = {step.arm: step for step in results.against_next([measure])}
            first, last = [step[arm] for arm in ("naive", "ideal")], [step[arm] for arm in ("itps", "ips")]
            assert [one.significant for one in (*first, *last)] == [True, True, False, False]
            assert first[0].test == first[1].test
            assert {one.below for one in first} == {list(step)[2]}
            assert all(one.below is None and one.test is None for one in last)


def test_the_papers_figures_stand_beside_ours() -> None:
    results, published = made_up(THREE).results, Published.semisynthetic(TRUE)
    found = {(each.arm, each.measure): each for each in published.compare(results)}
    assert len(found) == 12
    each = found["itps", NDCG]
    ours = np.mean([ndcg(ranks) for ranks in THREE["itps"]])
    assert each.paper == 0.6110
    assert each.deviation == pytest.approx(ours / 0.6110 - 1)
    assert each.near == (abs(ours / 0.6110 - 1) <= 0.05)
    assert each.ours.low is not None
    assert each.ours.high is not None
    assert each.covered == (each.ours.low <= 0.6110 <= each.ours.high)
    assert Published.semisynthetic(TRUE, 2.0).compare(results) == []


def test_the_papers_order() -> None:
    true, standard = Published.semisynthetic(TRUE), Published.semisynthetic(STANDARD)
    assert true.order(NDCG, ["naive", "ips", "itps", "ideal"]) == ["ideal", "itps", "naive", "ips"]
    assert standard.order(RECALL, ["naive", "ips", "itps"]) == ["itps", "ips", "naive"]
    assert true.same_order(made_up(THREE).results, NDCG)
    assert not true.same_order(made_up({"naive": THREE["itps"], "itps": THREE["naive"]}).results, NDCG)


def test_published_figures_are_for_their_own_protocol_severity_and_arms() -> None:
    table, five = Published.semisynthetic(STANDARD), Measure(STANDARD, "uniform-100", "NDCG", 5)
    assert table.figure("ideal", five) == 0.5593
    assert table.figure("ideal", five._replace(protocol="full")) is None
    assert Published.semisynthetic(STANDARD, 2.0).figure("ideal", five) is None
    assert table.figure("ideal", five._replace(metric="MRR")) is None
    assert table.figure("popularity", five) is None
    assert Published.semisynthetic(TRUE).gap_closed("itps", NDCG) == pytest.approx((0.6110 - 0.6065) / 0.0182)
    assert Published.semisynthetic(TRUE).gap_closed("itps", RECALL) == pytest.approx(0.155, abs=0.001)


def test_rows_have_every_figure_once() -> None:
    results = made_up(THREE).results
    table = csv_rows(results, "quick")
    keys = [(r["estimator"], r["severity"], r["evaluation"], r["protocol"], r["metric"], r["k"]) for r in table]
    assert len(keys) == len(set(keys)) == 3 * (2 * 2 * 3 * 2 + 1)
    row = next(r for r in table if r["estimator"] == "itps" and Measure(*(r[f] for f in Measure._fields)) == NDCG)
    assert (row["paper"], row["replicates"], row["worlds"], row["preset"]) == (0.6110, 3, 1, "quick")
    closed = results.gap_closed("itps", NDCG)
    assert closed is not None
    assert [row[f"gap_closed{bound}"] for bound in ("", "_low", "_high")] == [closed.mean, closed.low, closed.high]
    assert all(r["gap_closed"] is None for r in table if r["evaluation"] == STANDARD)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(st.integers(1, 50), min_size=3, max_size=3), min_size=2, max_size=5))
def test_a_metric_of_a_cell_follows_from_its_ranks(every: list[list[int]]) -> None:
    results = made_up({"naive": every}).results
    assert results.estimate("naive", NDCG).mean == pytest.approx(np.mean([ndcg(ranks) for ranks in every]))
    hits = np.mean([[rank <= 10 for rank in ranks] for ranks in every])
    assert results.estimate("naive", RECALL).mean == pytest.approx(hits)
