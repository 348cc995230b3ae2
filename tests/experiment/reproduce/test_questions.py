"""What each question says of figures made up so that the right words are known."""

import re
from dataclasses import replace

import numpy as np
import pytest

from tests.experiment.reproduce.small import cell, made_up
from unveil.experiment.outcome import STANDARD, TRUE
from unveil.experiment.reproduce.plan import Plan
from unveil.experiment.reproduce.question import Question
from unveil.experiment.reproduce.results import Figure, Place, Results
from unveil.experiment.reproduce.rq1 import RQ1, verdict
from unveil.experiment.reproduce.rq2 import RQ2, slope
from unveil.experiment.reproduce.rq3 import RQ3, flips
from unveil.experiment.reproduce.run import Answer
from unveil.experiment.reproduce.study import Study
from unveil.experiment.reproduce.turned import turned
from unveil.experiment.reproduce.words import caution
from unveil.experiment.reproduce.worlds import Source

NDCG = Figure(TRUE, "uniform-100", "NDCG", 10)
#: Four arms whose ranks leave no doubt, in three replicates that differ a little.
CLEAR = {
    "naive": [[4, 4, 4, 4], [4, 4, 4, 5], [4, 4, 5, 5]],
    "ips": [[8, 8, 8, 8], [8, 8, 8, 9], [8, 8, 9, 9]],
    "itps": [[2, 2, 2, 2], [2, 2, 2, 3], [2, 2, 3, 3]],
    "ideal": [[1, 1, 1, 1], [1, 1, 1, 2], [1, 1, 2, 2]],
}
#: By the log, IPS and naive change places.
BY_LOG = {**CLEAR, "naive": CLEAR["ips"], "ips": CLEAR["naive"]}


def answer(question: Question, results: Results) -> Answer:
    plan = Plan(Study(preset="quick"), tuple(results.severities), replicates=results.replicates)
    return Answer(question, plan, Source("made up", "0" * 64, "made up"), results, [], 1.0, 0)


def test_rq1_says_that_the_papers_order_is_there_when_it_is() -> None:
    said = " ".join(RQ1().reading(answer(RQ1(), made_up(CLEAR))))
    assert "order of the means by NDCG@10 is ideal, ITPS, naive, IPS" in said
    assert "stand in that order here under NDCG@10, NDCG@5" in said  # some recalls are equal
    assert "ITPS scores above the naive loss" in said
    assert "IPS scores below the naive loss" in said
    assert re.search(r"none of the gap is closed: −\d+% \[−\d+%, −\d+%\] \(the paper: −57%\)", said)
    assert "(the paper: 25%)" in said
    assert "the same order: ideal" in said


def test_rq1_says_that_it_is_not_when_it_is_not() -> None:
    turned = {**CLEAR, "itps": CLEAR["ips"], "ips": CLEAR["itps"]}
    said = " ".join(RQ1().reading(answer(RQ1(), made_up(turned))))
    assert "order of the means by NDCG@10 is ideal, IPS, naive, ITPS" in said
    assert "stand in that order here nowhere" in said
    assert "ITPS scores below the naive loss" in said


def test_what_may_be_chance_is_not_called_a_difference() -> None:
    alike = {**CLEAR, "itps": [[4, 4, 4, 5], [4, 4, 4, 4], [4, 4, 5, 5]]}
    assert "ITPS cannot be told from the naive loss" in " ".join(RQ1().reading(answer(RQ1(), made_up(alike))))


@pytest.mark.parametrize("question", [RQ1(), RQ3()], ids=lambda question: question.name)
def test_at_another_severity_the_paper_has_nothing_to_be_set_beside(question: Question) -> None:
    """The paper's tables are of p = 1."""
    harsh = answer(question, made_up(CLEAR, BY_LOG, severity=3.0))
    assert "the paper" not in " ".join(question.reading(harsh)).lower()
    assert verdict(harsh.results, 3.0, TRUE) | {"cells": []} == {
        "cells": [],
        "within_5_percent": 0,
        "of": 0,
        "orders": {},
        "same_order": None,
    }
    assert {flip.paper for flip in flips(harsh.results, 3.0, "uniform-100")} == {None}


def test_a_share_of_a_gap_that_may_be_chance_says_so() -> None:
    near = {**CLEAR, "ideal": [[1, 1, 1, 1], [9, 9, 9, 9], [3, 3, 3, 3]]}  # above naive on average, and no more
    assert "(the gap itself may be chance, so" in " ".join(RQ1().reading(answer(RQ1(), made_up(near))))
    assert "may be chance" not in " ".join(RQ1().reading(answer(RQ1(), made_up(CLEAR))))


def test_the_verdict_counts_and_orders() -> None:
    found = verdict(made_up(CLEAR), 1.0, TRUE)
    assert found["of"] == len(found["cells"]) == 16
    assert found["within_5_percent"] == sum(abs(each["mean"] / each["paper"] - 1) <= 0.05 for each in found["cells"])
    assert found["same_order"] is False  # equal recalls stand in no order
    assert found["orders"]["NDCG@10"] == {
        "ours": ["ideal", "itps", "naive", "ips"],
        "paper": ["ideal", "itps", "naive", "ips"],
        "same": True,
    }


def along(ranks: dict[str, dict[float, int]]) -> Results:
    cells = {
        Place(0, p, r, arm): cell([rank, rank + r, rank], [rank] * 3)
        for arm, by_p in ranks.items()
        for p, rank in by_p.items()
        for r in range(3)
    }
    return Results(cells, list(next(iter(ranks.values()))), 1, 3, list(ranks))


def test_rq2_slopes_are_least_squares_and_the_steepest_is_named() -> None:
    results = along({"naive": {1: 2, 2: 3, 4: 4}, "itps": {1: 1, 2: 2, 4: 8}, "ideal": {1: 1, 2: 1, 4: 1}})
    means = [results.estimate(p, "itps", NDCG).mean for p in (1, 2, 4)]
    assert slope(results, "itps", NDCG) == pytest.approx(np.polyfit([1, 2, 4], means, 1)[0])
    said = " ".join(RQ2().reading(answer(RQ2(), results)))
    assert "): ITPS falls most, and ideal not at all." in said
    assert "at p = 1 ITPS; at p = 2 ITPS; at p = 4 naive" in said
    found = RQ2().findings(answer(RQ2(), results))
    assert found["best"]["4"]["NDCG@10"][0] == "ideal"
    closed = results.gap_closed("itps", NDCG, [1.0])
    assert closed is not None
    assert found["gap_closed_by_severity"]["itps"]["1"] == closed.mean


def test_rq2_with_one_severity_has_no_slope() -> None:
    assert slope(made_up(CLEAR), "itps", NDCG) is None
    assert "changes by" not in " ".join(RQ2().reading(answer(RQ2(), made_up(CLEAR))))


def test_rq3_shows_the_ranks_that_flip() -> None:
    results = made_up(CLEAR, BY_LOG)
    moves = {(flip.arm, flip.metric): flip for flip in flips(results, 1.0, "uniform-100")}
    naive, ips = (moves[arm, ("NDCG", 10)] for arm in ("naive", "ips"))
    assert (naive.true, naive.standard, naive.arrow, naive.paper) == (3, 4, "↓", "↓")
    assert (ips.true, ips.standard, ips.arrow, ips.paper) == (4, 3, "↑", "↑")
    assert moves["itps", ("NDCG", 10)].arrow == ""
    assert moves["naive", ("NDCG", 5)].paper == ""
    said = " ".join(RQ3().reading(answer(RQ3(), results)))
    assert "ranks IPS higher than the truth does, and naive lower" in said
    assert "both put ITPS first" in said


def test_rq3_tells_what_changes_places_surely_from_what_may_be_chance() -> None:
    sure = made_up(CLEAR, BY_LOG)
    assert [(pair.above, pair.below, pair.sure) for pair in turned(sure, 1.0)] == [("naive", "ips", True)]
    assert "naive and IPS surely" in " ".join(RQ3().reading(answer(RQ3(), sure)))
    near = [[2, 2, 2, 4], [2, 2, 3, 3], [2, 2, 2, 2]]  # by the log as good as ITPS, but for luck
    perhaps = made_up(CLEAR, {**CLEAR, "naive": near, "itps": [[2, 2, 3, 4], [2, 2, 2, 3], [2, 2, 2, 3]]})
    assert [(pair.above, pair.below, pair.sure) for pair in turned(perhaps, 1.0)] == [("itps", "naive", False)]
    said = " ".join(RQ3().reading(answer(RQ3(), perhaps)))
    assert "these change places: ITPS and naive perhaps by chance" in said
    assert "would have us choose naive, and the truth ITPS, though that may be chance" in said
    assert RQ3().findings(answer(RQ3(), perhaps))["turned"][0]["sure"] is False


def test_the_pairs_that_change_places_are_corrected_together() -> None:
    """Both tests of each pair are one family: Holm by hand."""
    found = turned(made_up(CLEAR, BY_LOG), 1.0)[0]
    raw = [made_up(CLEAR, BY_LOG).against(1.0, "naive", "ips", NDCG._replace(evaluation=e)).p for e in (TRUE, STANDARD)]
    small, large = sorted(raw)
    assert sorted([found.p_true, found.p_standard]) == pytest.approx([2 * small, max(2 * small, large)])
    assert turned(made_up(CLEAR), 1.0) == []


@pytest.mark.parametrize("question", [RQ1(), RQ2(), RQ3()], ids=lambda question: question.name)
def test_networks_that_differ_are_owned_up_to(question: Question) -> None:
    """Under `paper` each loss has the network that was tuned for it; under the other presets all share one."""
    found = answer(question, made_up(CLEAR, BY_LOG))
    assert "network" not in " ".join(question.reading(found))
    said = " ".join(question.reading(replace(found, plan=Plan(Study(preset="paper")))))
    assert "naive: width 16, blocks 1, batch 32, masked 0.15; IPS: width 64, blocks 2, batch 16, masked 0.1" in said
    assert "of loss and network together" in said


def test_rq3_says_when_nothing_flips() -> None:
    said = " ".join(RQ3().reading(answer(RQ3(), made_up(CLEAR))))
    assert "change places" not in said
    assert "the same order: here the standard evaluation would not have misled" in said


def test_the_caution_says_what_the_units_are() -> None:
    assert "3 replicates of one world" in caution(made_up(CLEAR))
    assert "over users" in caution(made_up({arm: every[:1] for arm, every in CLEAR.items()}))
    both = {arm: [*every, *every] for arm, every in CLEAR.items()}
    assert "2 worlds of 3 replicates each" in caution(made_up(both, worlds=2))
    once = {arm: every[:2] for arm, every in CLEAR.items()}
    assert "2 worlds of 1 replicate each" in caution(made_up(once, worlds=2))


def test_a_single_arm_is_set_in_no_order() -> None:
    alone = along({"naive": {1: 2, 2: 3}})
    said = " ".join(RQ2().reading(answer(RQ2(), alone)))
    assert "changes by: naive −" in said
    assert "most" not in said
    assert "highest" not in said
    alone = along({"naive": {1: 2}})
    first, *others = RQ1().reading(answer(RQ1(), alone))
    assert first == f"NDCG@10 on true relevance: naive {alone.estimate(1, 'naive', NDCG).mean:.3f}."
    assert not any("order" in each and "world" not in each for each in others)


def test_a_network_may_have_other_epochs_and_batches() -> None:
    """What a preset says of a network goes before what it says of all, and after it what the user says."""
    for changes, epochs, batch in (
        ((), 120, 64),
        (("model.name=bert4rec",), 120, 64),
        (("model.name=sasrec",), 24, 16),
        (("model.name=gru4rec",), 45, 64),
        (("model.name=sasrec", "training.epochs=7"), 7, 16),
        (("model.name=sasrec", "task.batch_size=64"), 24, 64),
    ):
        recipe = Study(preset="converged", changes=changes).recipe("itps", 0)
        assert (recipe.training.epochs, recipe.task.batch_size, recipe.training.lr) == (epochs, batch, 2e-3)
        assert recipe.estimator["clip"] == 0.02
