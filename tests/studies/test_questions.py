"""What RQ1, RQ2 and RQ3 find and say of figures made up so that the right answer is known."""

import re
from typing import Any

import numpy as np
import pytest

from tests.studies.small import answer_of, made_up, record, said
from unveil.studies.engine import Answer
from unveil.studies.results import STANDARD, TRUE, Measure
from unveil.studies.rq1 import RQ1
from unveil.studies.rq2 import RQ2, slope
from unveil.studies.rq3 import RQ3, swapped_pairs
from unveil.studies.semisynthetic import SemiSynthetic

NDCG = Measure(TRUE, "uniform-100", "NDCG", 10)
#: Four arms whose ranks leave no doubt, in three replicates that differ a little.
CLEAR = {
    "naive": [[4, 4, 4, 4], [4, 4, 4, 5], [4, 4, 5, 5]],
    "ips": [[8, 8, 8, 8], [8, 8, 8, 9], [8, 8, 9, 9]],
    "itps": [[2, 2, 2, 2], [2, 2, 2, 3], [2, 2, 3, 3]],
    "ideal": [[1, 1, 1, 1], [1, 1, 1, 2], [1, 1, 2, 2]],
}
#: By the log, IPS and naive change places.
BY_LOG = {**CLEAR, "naive": CLEAR["ips"], "ips": CLEAR["naive"]}


def found(answer: Answer) -> dict[str, Any]:
    return dict(answer.study.findings(answer))


def test_rq1_says_that_the_papers_order_is_there_when_it_is() -> None:
    text = said(made_up(CLEAR))
    assert "NDCG@10 is ideal, ITPS, naive, IPS" in text
    assert "under NDCG@10, NDCG@5" in text  # some recalls are equal
    assert "ITPS scores above the naive baseline" in text
    assert "IPS scores below the naive baseline" in text
    assert re.search(r"none of the gap is closed: −\d+% \[−\d+%, −\d+%\] \(the paper: −57%\)", text)
    assert "(the paper: 25%)" in text
    assert "the same order: ideal" in text


def test_rq1_says_that_it_is_not_when_it_is_not() -> None:
    text = said(made_up({**CLEAR, "itps": CLEAR["ips"], "ips": CLEAR["itps"]}))
    assert "NDCG@10 is ideal, IPS, naive, ITPS" in text
    assert "none of the four metrics" in text
    assert "ITPS scores below the naive baseline" in text


def test_what_may_be_chance_is_not_called_a_difference() -> None:
    alike = {**CLEAR, "itps": [[4, 4, 4, 5], [4, 4, 4, 4], [4, 4, 5, 5]]}
    assert "ITPS cannot be distinguished from the naive baseline" in said(made_up(alike))


@pytest.mark.parametrize("kind", [RQ1, RQ3])
def test_at_another_severity_the_paper_has_nothing_to_be_set_beside(kind: type[SemiSynthetic]) -> None:
    """The paper's tables are of p = 1."""
    severe = made_up(CLEAR, BY_LOG, kind=kind, severity=3.0)
    assert "the paper" not in said(severe).lower()
    verdict = found(severe)["verdict"]
    empty = {"cells": [], "within_5_percent": 0, "of": 0, "orders": {}, "same_order": None}
    assert verdict == (empty if kind is RQ1 else {TRUE: empty, STANDARD: empty})
    if kind is RQ3:
        assert {flip["paper"] for flip in found(severe)["flips"]} == {None}


def test_a_share_of_a_gap_that_may_be_chance_says_so() -> None:
    near = {**CLEAR, "ideal": [[1, 1, 1, 1], [9, 9, 9, 9], [3, 3, 3, 3]]}  # above naive on average, and no more
    assert "(the gap itself may be chance" in said(made_up(near))
    assert "may be chance" not in said(made_up(CLEAR))


def test_the_verdict_counts_and_orders() -> None:
    verdict = found(made_up(CLEAR))["verdict"]
    assert verdict["of"] == len(verdict["cells"]) == 16
    near = sum(abs(each["mean"] / each["paper"] - 1) <= 0.05 for each in verdict["cells"])
    assert verdict["within_5_percent"] == near
    assert verdict["same_order"] is False  # equal recalls stand in no order
    order = ["ideal", "itps", "naive", "ips"]
    assert verdict["orders"]["NDCG@10"] == {"ours": order, "paper": order, "same": True}


def along(ranks: dict[str, dict[float, int]]) -> Answer:
    severities = tuple(next(iter(ranks.values())))
    study = RQ2(data="builtin", preset="quick", severities=severities, replicates=3, estimators=tuple(ranks))
    records = {
        f"w0-p{p:g}-r{r}-{arm}": record([rank, rank + r, rank], [rank] * 3)
        for arm, by_p in ranks.items()
        for p, rank in by_p.items()
        for r in range(3)
    }
    return answer_of(study, records)


def test_rq2_slopes_are_least_squares_and_the_steepest_is_named() -> None:
    answer = along(
        {
            "naive": {1.0: 2, 2.0: 3, 4.0: 4},
            "itps": {1.0: 1, 2.0: 2, 4.0: 8},
            "ideal": dict.fromkeys((1.0, 2.0, 4.0), 1),
        }
    )
    results = answer.results
    means = [results.at(severity=p).mean("itps", NDCG) for p in (1, 2, 4)]
    assert slope(results, "itps", NDCG) == pytest.approx(np.polyfit([1, 2, 4], means, 1)[0])
    assert "ITPS falls most, and ideal not at all." in said(answer)
    assert "at p = 1 that of ITPS; at p = 2 that of ITPS; at p = 4 that of naive" in said(answer)
    own = found(answer)
    assert own["best"]["4"]["NDCG@10"][0] == "ideal"
    closed = results.at(severity=1.0).gap_closed("itps", NDCG)
    assert closed is not None
    assert own["gap_closed_by_severity"]["itps"]["1"] == closed.mean


def test_rq2_with_one_severity_has_no_slope() -> None:
    answer = made_up(CLEAR, kind=RQ2)
    assert slope(answer.results, "itps", NDCG) is None
    assert "changes by" not in said(answer)


def test_rq3_shows_the_ranks_that_flip() -> None:
    answer = made_up(CLEAR, BY_LOG, kind=RQ3)
    moves = {
        (flip["estimator"], flip["metric"], flip["k"]): flip
        for flip in found(answer)["flips"]
        if flip["protocol"] == "uniform-100"
    }
    naive, ips = (moves[arm, "NDCG", 10] for arm in ("naive", "ips"))
    assert [naive[name] for name in ("rank_true", "rank_standard", "moves", "paper")] == [3, 4, "down", "down"]
    assert [ips[name] for name in ("rank_true", "rank_standard", "moves", "paper")] == [4, 3, "up", "up"]
    assert moves["itps", "NDCG", 10]["moves"] == "same"
    assert moves["naive", "NDCG", 5]["paper"] == "same"
    assert "IPS higher than the ground truth does, and naive lower" in said(answer)
    assert "both evaluations put ITPS first" in said(answer)


def test_rq3_distinguishes_what_changes_places_from_what_may_be_chance() -> None:
    sure = made_up(CLEAR, BY_LOG, kind=RQ3)
    assert [(pair["above"], pair["below"], pair["sure"]) for pair in found(sure)["turned"]] == [("naive", "ips", True)]
    assert "naive and IPS (significant under both evaluations)" in said(sure)
    near = [[2, 2, 2, 4], [2, 2, 3, 3], [2, 2, 2, 2]]  # by the log as good as ITPS, but for chance
    by_log = {**CLEAR, "naive": near, "itps": [[2, 2, 3, 4], [2, 2, 2, 3], [2, 2, 2, 3]]}
    perhaps = made_up(CLEAR, by_log, kind=RQ3)
    pairs = [(pair["above"], pair["below"], pair["sure"]) for pair in found(perhaps)["turned"]]
    assert pairs == [("itps", "naive", False)]
    assert "ITPS and naive (possibly by chance)" in said(perhaps)
    assert "chooses naive, and the ground truth ITPS, though that may be chance" in said(perhaps)


def test_the_pairs_that_change_places_are_corrected_together() -> None:
    """Both tests of each pair are one family: Holm by hand."""
    results = made_up(CLEAR, BY_LOG, kind=RQ3).results
    (pair,) = swapped_pairs(results, NDCG)
    raw = [results.difference("naive", "ips", NDCG._replace(evaluation=e)).p for e in (TRUE, STANDARD)]
    small, large = sorted(raw)
    assert sorted([pair["p_true"], pair["p_standard"]]) == pytest.approx([2 * small, max(2 * small, large)])
    assert swapped_pairs(made_up(CLEAR, kind=RQ3).results, NDCG) == []


@pytest.mark.parametrize("kind", [RQ1, RQ2, RQ3])
def test_networks_that_differ_are_owned_up_to(kind: type[SemiSynthetic]) -> None:
    """Under `paper` each loss has the network that was tuned for it; under the other presets all share one."""
    assert "network" not in said(made_up(CLEAR, BY_LOG, kind=kind))
    text = said(made_up(CLEAR, BY_LOG, kind=kind, preset="paper"))
    assert "naive: width 16, blocks 1, batch 32, masked 0.15; IPS: width 64, blocks 2, batch 16, masked 0.1" in text


def test_rq3_says_when_nothing_flips() -> None:
    text = said(made_up(CLEAR, kind=RQ3))
    assert "change places" not in text
    assert "would not have misled" in text


def test_the_caution_says_what_the_units_are() -> None:
    assert "3 replicates of one world" in said(made_up(CLEAR))
    assert "over users" in said(made_up({arm: every[:1] for arm, every in CLEAR.items()}))
    both = {arm: [*every, *every] for arm, every in CLEAR.items()}
    assert "2 worlds of 3 replicates each" in said(made_up(both, worlds=2))
    once = {arm: every[:2] for arm, every in CLEAR.items()}
    assert "2 worlds of 1 replicate each" in said(made_up(once, worlds=2))


def test_a_single_arm_is_set_in_no_order() -> None:
    text = said(along({"naive": {1.0: 2, 2.0: 3}}))
    assert "changes by: naive −" in text
    assert "most" not in text
    assert "highest" not in text
    alone = made_up({"naive": CLEAR["naive"]})
    assert said(alone).startswith(f"NDCG@10 on true relevance: naive {alone.results.mean('naive', NDCG):.3f}.")
    assert "the order of the means" not in said(alone)
