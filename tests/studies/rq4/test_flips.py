"""What flips between rankings, on ranks made up by hand."""

import json

import numpy as np
import pytest

from unveil.evaluation.statistics import paired
from unveil.studies import shipped
from unveil.studies.paper import Published
from unveil.studies.results import STANDARD, Measure, RealResults, frame_of
from unveil.studies.rq4_report import Pair, pairs
from unveil.studies.trial import rank_rows

HIGH, LOW = 1, 11
NDCG = Measure(STANDARD, "popular-100", "NDCG", 10)


def results_from(cells: dict[tuple[str, int], tuple[list[int], list[int]]]) -> RealResults:
    """From the ranks of each arm and replicate, among all items and against popular ones."""
    rows = []
    for (arm, replicate), (full, popular) in cells.items():
        record = {"ranks": {STANDARD: {"full": full, "popular-100": popular}}, "lists": {}}
        at = {"estimator": arm, "replicate": replicate}
        rows += [{**at, **row} for row in rank_rows(record, by_user=False)]
    return RealResults.of(frame_of(rows))


def results(itps: tuple[int, int], control: tuple[int, int]) -> RealResults:
    """Three replicates of four users; the naive model hits half of them everywhere."""
    cells = {}
    for replicate in range(3):
        spare = 2 + replicate  # replicates differ a little
        cells["naive", replicate] = ([2, 3, LOW, spare], [2, 3, LOW, spare])
        for arm, (full, popular) in (("itps", itps), ("control", control)):
            cells[arm, replicate] = ([full] * 3 + [spare], [popular] * 3 + [spare])
    return results_from(cells)


def of(results: RealResults, one: str, other: str) -> Pair:
    return next(pair for pair in pairs(results, NDCG) if (pair.one, pair.other) == (one, other))


def test_a_conclusion_that_reverses_is_called_so() -> None:
    found = results(itps=(LOW, HIGH), control=(LOW, HIGH))
    assert of(found, "itps", "naive").reverses
    assert of(found, "itps", "naive").verdicts == {"full": "below", "popular-100": "above"}
    assert of(found, "itps", "control").verdicts == {"full": "level", "popular-100": "level"}


def test_a_conclusion_that_holds_everywhere_is_called_so() -> None:
    found = results(itps=(HIGH, HIGH), control=(HIGH, HIGH))
    assert of(found, "itps", "naive").steady
    assert set(of(found, "itps", "naive").verdicts.values()) == {"above"}


def test_means_that_turn_are_found_where_the_tests_are_not_significant() -> None:
    itps = [([1, 1], [LOW, 2]), ([1, 2], [3, 3]), ([3, 3], [1, 1])]
    cells = {}
    for replicate, ranks in enumerate(itps):
        cells["itps", replicate] = ranks
        cells["naive", replicate] = cells["control", replicate] = ([2, 2], [2, 2])
    pair = of(results_from(cells), "itps", "naive")
    assert pair.steady
    assert pair.turns
    assert pair.tests["full"].difference > 0 > pair.tests["popular-100"].difference


def test_correction_is_over_all_rankings() -> None:
    """By itself p is 0.030 against popular items; with the ranking of all items beside, twice that."""
    cells = {}
    for replicate, (full, popular) in enumerate([(1, 2), (2, 3), (3, 8)]):
        cells["itps", replicate] = ([full], [1])
        cells["naive", replicate] = ([4 - full], [popular])
    made = results_from(cells)
    alone = made.against(NDCG)["itps"].p
    (pair,) = pairs(made, NDCG)
    assert alone == pytest.approx(0.030, abs=0.001)
    assert pair.tests["popular-100"].p == pytest.approx(2 * alone)
    assert pair.verdicts["popular-100"] == "level"


def test_pairs_are_json() -> None:
    cells = {(arm, r): ([rank], [rank]) for arm, rank in (("naive", 2), ("itps", 1)) for r in range(2)}
    every = pairs(results_from(cells), NDCG)
    assert any(not np.isfinite(test.effect) for pair in every for test in pair.tests.values())
    json.dumps([pair.as_json() for pair in every], allow_nan=False)


def test_every_pair_is_tested_once_under_every_ranking() -> None:
    every = pairs(results(itps=(HIGH, LOW), control=(HIGH, HIGH)), NDCG)
    assert [(pair.one, pair.other) for pair in every] == [("itps", "control"), ("itps", "naive"), ("control", "naive")]
    assert all(list(pair.tests) == ["full", "popular-100"] for pair in every)


def test_a_difference_that_is_not_sure_is_no_verdict() -> None:
    unsure = paired(np.array([0.5, 0.4]), np.array([0.1, 0.5]))
    equal = paired(np.array([0.2, 0.2]), np.array([0.2, 0.2]))
    pair = Pair("itps", "naive", {"full": unsure, "popular-100": equal})
    assert pair.verdicts == {"full": "level", "popular-100": "level"}
    assert pair.steady
    assert not pair.reverses


def test_the_papers_figures_are_for_its_own_ranking() -> None:
    assert Published.real("ml-1m").figure("itps", NDCG) == 0.3844
    assert Published.real("beauty").figure("naive", NDCG._replace(metric="Recall", k=5)) == 0.1516
    assert Published.real("ml-1m").figure("itps", NDCG._replace(protocol="full")) is None
    assert Published.real(None).figure("itps", NDCG) is None
    assert Published.real("ml-1m").figure("control", NDCG) is None


@pytest.mark.parametrize("data", list(shipped("paper")["real"]["data"]))
def test_in_the_papers_table_itps_is_always_best(data: str) -> None:
    rows = Published.real(data).rows
    assert all(rows["itps"][n] == max(row[n] for row in rows.values()) for n in range(4))
