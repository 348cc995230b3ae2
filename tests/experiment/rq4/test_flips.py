"""What flips between rankings, on ranks made up by hand."""

import json
from typing import Any

import numpy as np
import pytest

from unveil.evaluation.statistics import paired
from unveil.experiment.outcome import STANDARD
from unveil.experiment.reproduce.results import Figure
from unveil.experiment.reproduce.words import against_base
from unveil.experiment.rq4.control import Control
from unveil.experiment.rq4.flips import DOUBTED, TURNED, Pair, box, pairs
from unveil.experiment.rq4.flips import told as flips_told
from unveil.experiment.rq4.published import PUBLISHED, published
from unveil.experiment.rq4.results import AS_IT_IS, RealResults

HIGH, LOW = 1, 11


def cell(full: list[int], popular: list[int]) -> dict[str, Any]:
    return {"ranks": {STANDARD: {"full": full, "popular-100": popular}}, "lists": {}, "weights": None}


def results(itps: tuple[int, int], control: tuple[int, int]) -> RealResults:
    """Three replicates of four users; the naive model hits half of them everywhere."""
    cells = {}
    for replicate in range(3):
        spare = 2 + replicate  # replicates differ a little
        cells["naive", replicate] = cell([2, 3, LOW, spare], [2, 3, LOW, spare])
        for arm, (full, popular) in (("itps", itps), ("control", control)):
            cells[arm, replicate] = cell([full] * 3 + [spare], [popular] * 3 + [spare])
    return RealResults.of(cells, ["naive", "itps", "control"], 3)


def test_a_conclusion_that_reverses_is_called_so() -> None:
    told = box(results(itps=(LOW, HIGH), control=(LOW, HIGH)))
    assert told[0] == "Reversed: ITPS scores above naive against 100 popular items, below it against all items."
    assert "ITPS cannot be told from naive − λ log popularity" in told[-1]


def test_a_conclusion_that_holds_everywhere_is_called_so() -> None:
    told = box(results(itps=(HIGH, HIGH), control=(HIGH, HIGH)))
    assert len(told) == 1
    assert "ITPS scores above naive" in told[0]


def test_means_that_turn_are_told_where_the_tests_are_not_sure() -> None:
    itps = [([1, 1], [LOW, 2]), ([1, 2], [3, 3]), ([3, 3], [1, 1])]
    cells = {}
    for replicate, ranks in enumerate(itps):
        cells["itps", replicate] = cell(*ranks)
        cells["naive", replicate] = cells["control", replicate] = cell([2, 2], [2, 2])
    made = RealResults.of(cells, ["naive", "itps", "control"], 3)
    pair = next(each for each in pairs(made) if (each.one, each.other) == ("itps", "naive"))
    assert pair.steady
    assert pair.tests["full"].difference > 0 > pair.tests["popular-100"].difference
    told = box(made)
    assert told[-1].startswith(TURNED)
    assert f"ITPS less naive +{pair.tests['full'].difference:.4f} against all items, −" in told[-1]
    assert not any(line.startswith(("Reversed", "Under some")) for line in told)


def test_a_pair_that_only_the_milder_correction_calls_sure_is_told() -> None:
    """By itself p is 0.030 against popular items; with the ranking of all items beside, twice that."""
    cells = {}
    for replicate, (full, popular) in enumerate([(1, 2), (2, 3), (3, 8)]):
        cells["itps", replicate] = cell([full], [1])
        cells["naive", replicate] = cell([4 - full], [popular])
    made = RealResults.of(cells, ["naive", "itps"], 3)
    alone = against_base(made, AS_IT_IS, Figure(STANDARD, "popular-100", "NDCG", 10))["itps"].p
    (pair,) = pairs(made)
    assert alone == pytest.approx(0.030, abs=0.001)
    assert pair.tests["popular-100"].p == pytest.approx(2 * alone)
    assert box(made)[-1] == f"{DOUBTED}: ITPS over naive against 100 popular items."


def test_nothing_is_doubted_where_both_corrections_agree() -> None:
    told = box(results(itps=(LOW, HIGH), control=(LOW, HIGH)))
    assert not any(line.startswith(DOUBTED) for line in told)


def test_what_programs_are_told_is_json() -> None:
    cells = {(arm, r): cell([rank], [rank]) for arm, rank in (("naive", 2), ("itps", 1)) for r in range(2)}
    sure = RealResults.of(cells, ["naive", "itps"], 2)
    assert any(not np.isfinite(test.effect) for pair in pairs(sure) for test in pair.tests.values())
    json.dumps(flips_told(sure), allow_nan=False)


def test_every_pair_is_tested_once_under_every_ranking() -> None:
    every = pairs(results(itps=(HIGH, LOW), control=(HIGH, HIGH)))
    assert [(pair.one, pair.other) for pair in every] == [("itps", "control"), ("itps", "naive"), ("control", "naive")]
    assert all(list(pair.tests) == ["full", "popular-100"] for pair in every)


def test_a_difference_that_is_not_sure_is_no_verdict() -> None:
    unsure = paired(np.array([0.5, 0.4]), np.array([0.1, 0.5]))
    equal = paired(np.array([0.2, 0.2]), np.array([0.2, 0.2]))
    pair = Pair("itps", "naive", {"full": unsure, "popular-100": equal})
    assert pair.verdicts == {"full": "level", "popular-100": "level"}
    assert pair.steady
    assert not pair.reverses


def test_the_control_takes_the_weakest_of_equal_strengths_for_each_ranking() -> None:
    chosen = Control((0.0, 0.5, 1.0), {"full": [0.3, 0.3, 0.1], "popular-100": [0.1, 0.2, 0.4]})
    assert chosen.best == {"full": 0.0, "popular-100": 1.0}


def test_the_papers_figures_are_for_its_own_ranking() -> None:
    assert published("ml-1m", "itps", Figure(STANDARD, "popular-100", "NDCG", 10)) == 0.3844
    assert published("beauty", "naive", Figure(STANDARD, "popular-100", "Recall", 5)) == 0.1516
    assert published("ml-1m", "itps", Figure(STANDARD, "full", "NDCG", 10)) is None
    assert published(None, "itps", Figure(STANDARD, "popular-100", "NDCG", 10)) is None
    assert published("ml-1m", "control", Figure(STANDARD, "popular-100", "NDCG", 10)) is None


@pytest.mark.parametrize("data", list(PUBLISHED))
def test_in_the_papers_table_itps_is_always_best(data: str) -> None:
    rows = PUBLISHED[data].rows
    assert all(rows["itps"][n] == max(row[n] for row in rows.values()) for n in range(4))
