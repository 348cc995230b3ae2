"""Shares of the gap over worlds and replicates: by hand, and from a plan on a tiny world to its files."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from tests.experiment.reproduce.small import made_up, tiny_study, tiny_world
from tests.pages import faults
from unveil.evaluation.statistics import ratio_interval
from unveil.experiment.beyond.page import sections
from unveil.experiment.beyond.question import Beyond
from unveil.experiment.beyond.shares import everywhere, levels, published, shares
from unveil.experiment.beyond.words import NOWHERE, STUDY, is_estimated, reading, source_of
from unveil.experiment.outcome import TRUE
from unveil.experiment.reproduce.catalogue import QUESTIONS
from unveil.experiment.reproduce.files import write
from unveil.experiment.reproduce.plan import Plan
from unveil.experiment.reproduce.results import Figure, Results
from unveil.experiment.reproduce.run import Answer, answer
from unveil.runs.workers import Inline

RECALL = Figure(TRUE, "uniform-100", "Recall", 10)
HIT, MISS = 1, 50
RECORDED = "corrected@recorded+propensity.batches=20"


def hits(*counts: int, of: int = 10) -> list[list[int]]:
    """Ranks of ten cases, so many of them hits: one list for each world and replicate."""
    return [[HIT] * count + [MISS] * (of - count) for count in counts]


@pytest.fixture
def two_worlds() -> Results:
    """Two worlds of two replicates: naive 2, ideal 8 of ten; corrected closes 5/6 in one world and 2/6 in the other."""
    return made_up(
        {
            "naive": hits(2, 2, 2, 2),
            "corrected": hits(7, 7, 4, 4),
            "corrected@popularity": hits(1, 1, 0, 2),
            "ideal": hits(8, 8, 8, 8),
        },
        worlds=2,
    )


def test_each_world_counts_once_with_the_mean_of_its_replicates(two_worlds: Results) -> None:
    found = next(each for each in shares(two_worlds, RECALL) if each.arm == "corrected")
    assert found.gap is not None
    assert found.gap.n == 2
    assert found.gap.mean == pytest.approx((5 / 6 + 2 / 6) / 2)
    expected = ratio_interval(np.array([0.5, 0.2]), np.array([0.6, 0.6]))
    assert (found.gap.low, found.gap.high) == pytest.approx(expected)
    assert [world.mean for world in found.worlds if world is not None] == pytest.approx([5 / 6, 2 / 6])
    assert found.lowest == pytest.approx(2 / 6)
    assert not found.below


def test_the_spread_of_worlds_is_told_from_that_of_replicates(two_worlds: Results) -> None:
    found = levels(two_worlds, "corrected", RECALL, 1.0)
    assert found is not None
    assert found.replicates == 0
    assert found.worlds == pytest.approx(np.std([0.5, 0.2], ddof=1))
    noisy = levels(two_worlds, "corrected@popularity", RECALL, 1.0)
    assert noisy is not None
    assert noisy.replicates == pytest.approx(np.sqrt(np.var([-0.2, 0.0], ddof=1) / 2))
    assert noisy.worlds == 0, "the means of the worlds are equal"


def test_what_replicates_add_to_the_spread_of_worlds_is_taken_off() -> None:
    found = levels(
        made_up({"naive": hits(2, 2, 2, 2), "itps": hits(8, 6, 3, 5), "ideal": hits(9, 9, 9, 9)}, worlds=2),
        "itps",
        RECALL,
        1.0,
    )
    assert found is not None
    within = np.var([0.6, 0.4], ddof=1)  # as in the other world, 0.1 and 0.3
    assert found.replicates == pytest.approx(np.sqrt(within))
    assert found.worlds == pytest.approx(np.sqrt(np.var([0.5, 0.2], ddof=1) - within / 2))


def test_a_world_by_itself_has_the_interval_of_its_replicates() -> None:
    results = made_up({"naive": hits(2, 2, 2), "itps": hits(3, 4, 5), "ideal": hits(8, 9, 8)})
    (found,) = shares(results, RECALL)
    (world,) = found.worlds
    assert world is not None
    expected = ratio_interval(np.array([0.1, 0.2, 0.3]), np.array([0.6, 0.7, 0.6]))
    assert (world.low, world.high) == pytest.approx(expected)


def test_tests_are_corrected_over_all_arms_and_severities() -> None:
    """Alone ips is surely above naive; among three arms the smallest p counts threefold, and it is not."""
    arms = {"ips": hits(4, 5, 4), "itps": hits(2, 3, 2), "corrected": hits(3, 2, 2)}
    ends = {"naive": hits(2, 2, 2), "ideal": hits(8, 8, 8)}
    raw = {
        arm: ttest_1samp([len([r for r in each if r == HIT]) / 10 - 0.2 for each in ranks], 0).pvalue
        for arm, ranks in arms.items()
    }
    alone = shares(made_up(ends | {"ips": arms["ips"]}), RECALL)[0]
    assert alone.test.p == pytest.approx(raw["ips"])
    assert alone.surely
    together = {each.arm: each for each in shares(made_up(ends | arms), RECALL)}
    assert together["ips"].test.p == pytest.approx(3 * raw["ips"])
    assert together["itps"].test.p == pytest.approx(min(1, 2 * raw["itps"]))
    assert not together["ips"].surely


def test_the_reading_says_who_fell_below_naive_and_who_reached_the_aim(two_worlds: Results) -> None:
    told = " ".join(reading(two_worlds, "true"))
    assert "none closes 60% at every p; the one with the best worst case is corrected" in told
    assert (
        "corrected · popularity (NDCG@10 against 100 uniform items at p = 1; Recall@10 against 100 uniform items"
        in told
    )
    assert "25% of the gap in NDCG@10" in told
    assert "15% of the gap in Recall@10" in told
    assert everywhere(shares(two_worlds, RECALL), 0.5) == ["corrected"]


def test_the_papers_shares_come_from_its_table() -> None:
    assert published(("NDCG", 10)) == pytest.approx((0.6110 - 0.6065) / (0.6247 - 0.6065))
    assert published(("Recall", 10)) == pytest.approx(0.155, abs=0.001)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Answer, Path]:
    world = tiny_world(tmp_path_factory.mktemp("world") / "tiny")
    arms = ("naive", "itps", "corrected", "itps@popularity+clip=10%", "corrected@popularity", RECORDED, "ideal")
    folder = tmp_path_factory.mktemp("beyond") / "run"
    plan = Plan(tiny_study(world), (1.0, 2.0), replicates=2, estimators=arms)
    found = answer(Beyond(), plan, folder, Inline())
    write(found, folder, ["unveil", "reproduce", "beyond"])
    return found, folder


def test_a_variant_is_trained_on_the_log_of_its_estimator(run: tuple[Answer, Path]) -> None:
    results = run[0].results
    logs = {arm: results.cell(2.0, arm)["log"]["fingerprint"] for arm in results.arms}
    assert len(set(logs.values())) == 1
    losses = [results.cell(1.0, arm)["training"]["loss"] for arm in ("corrected", "corrected@popularity")]
    assert losses[0] != losses[1]
    clipped = results.cell(1.0, "itps@popularity+clip=10%")["weights"]["clipped"]
    assert clipped >= 0.1, "ties at the quantile are clipped with it"


def test_what_is_learnt_from_impressions_is_an_arm_of_its_own(run: tuple[Answer, Path]) -> None:
    results = run[0].results
    losses = {
        arm: results.cell(1.0, arm)["training"]["loss"] for arm in ("corrected", "corrected@popularity", RECORDED)
    }
    assert len({tuple(loss) for loss in losses.values()}) == 3
    sizes = {arm: {name: results.cell(1.0, arm)["log"][name] for name in ("events", "catalogue")} for arm in losses}
    assert sizes[RECORDED] == sizes["corrected"], "what was shown and left is no event, and adds no item"


def test_the_files_hold_every_share(run: tuple[Answer, Path]) -> None:
    told = json.loads((run[1] / "results.json").read_text())
    assert told["question"] == "beyond"
    assert {(each["estimator"], each["severity"], each["protocol"]) for each in told["shares"]} == {
        (arm, p, protocol)
        for arm in ("itps", "corrected", "itps@popularity+clip=10%", "corrected@popularity", RECORDED)
        for p in (1, 2)
        for protocol in run[0].results.protocols
    }
    readme = (run[1] / "README.md").read_text()
    assert "closed in NDCG@10 against all items" in readme
    assert "θ is clipped from below at 10% for ITPS · popularity · clip 10%" in readme
    assert (run[1] / "figures" / "gap-closed.svg").is_file()
    page = (run[1] / "index.html").read_text()
    assert "Share of the gap closed" in page
    assert faults(page) == []
    assert "beyond" in QUESTIONS


def test_without_both_ends_there_is_no_gap() -> None:
    alone = made_up({"naive": hits(2, 2), "itps": hits(3, 3)})
    assert "two ends" in reading(alone, "true")[0]
    ends = made_up({"naive": hits(2, 2), "ideal": hits(3, 3)})
    assert "something between them" in reading(ends, "true")[0]
    assert sections(ends) == []


def test_without_a_gap_no_share_is_told() -> None:
    reversed_ = made_up({"naive": hits(8, 8), "itps": hits(3, 3), "ideal": hits(2, 2)})
    told = reading(reversed_, "true")
    assert told[0].startswith(
        "NDCG@10 against 100 uniform items, true propensities: there is no gap to close, as ideal"
    )
    assert not any(": ." in each for each in told)


@pytest.mark.parametrize(
    ("arm", "estimated"),
    [
        ("itps", False),
        ("itps+clip=0.1", False),
        ("itps@true", False),
        ("itps@noisy:1", False),
        ("ips@known-static", False),
        ("itps@logged", False),
        ("itps@popularity+clip=5%", True),
        ("corrected@timing", True),
        ("corrected@recorded", True),
        ("ever", True),
        ("ever-rated+trust=1", True),
    ],
)
def test_the_truth_with_noise_is_no_estimate(arm: str, estimated: bool) -> None:
    assert is_estimated(arm) is estimated


def test_the_truth_beside_the_studys_propensities_is_not_taken_for_an_estimate() -> None:
    found = made_up({"naive": hits(2, 2), "itps@true": hits(7, 7), "corrected@timing": hits(3, 3), "ideal": hits(8, 8)})
    (aim, *_) = reading(found, "popularity")
    assert "estimated ones or none: by the means none closes 25%" in aim
    assert "itps" not in aim.lower()


def test_below_naive_among_all_items_alone_is_said() -> None:
    found = made_up({"naive": hits(2, 2), "itps": hits(3, 3), "ideal": hits(8, 8)})
    assert "No estimator has a mean below that of the naive loss anywhere" in " ".join(reading(found, "true"))
    for at, each in found.cells.items():
        if at.arm == "itps":
            each["ranks"][TRUE]["full"] = [MISS] * 10
    told = " ".join(reading(found, "true"))
    assert "Below the naive loss" in told
    assert "ITPS (NDCG@10 against all items at p = 1; Recall@10 against all items at p = 1)" in told


def test_an_aim_that_is_reached_under_one_ranking_is_not_said_of_another() -> None:
    found = made_up({"naive": hits(2, 2), "corrected": hits(7, 7), "ideal": hits(8, 8)})
    for at, each in found.cells.items():
        if at.arm == "corrected":
            each["ranks"][TRUE]["full"] = [HIT] * 3 + [MISS] * 7
    told = reading(found, "true")
    reached = "by the means at least 60% is closed at every p by corrected"
    assert told[1].startswith(f"Recall@10 against 100 uniform items, true propensities: {reached}")
    assert told[3].startswith("Recall@10 against all items, true propensities: by the means none closes 60% at every p")


def test_that_the_truth_chose_the_epoch_is_said_of_estimates() -> None:
    ends = {"naive": hits(2, 2), "ideal": hits(8, 8)}
    ever = made_up(ends | {"ever": hits(3, 3)})
    assert "could not choose the epoch so" in " ".join(reading(ever, "true"))
    assert "the epoch" not in " ".join(reading(ever, "true", epoch_by="taken"))
    assert "the epoch" not in " ".join(reading(made_up(ends | {"itps": hits(3, 3)}), "true"))


def test_what_needs_no_propensity_has_the_aim_of_estimates() -> None:
    found = made_up({"naive": hits(2, 2), "itps": hits(3, 3), "ever": hits(6, 6), "ideal": hits(8, 8)})
    (aim, *_) = reading(found, "true")
    assert "true propensities: by the means none closes 60% at every p; the one with the best worst case is ITPS" in aim
    assert "estimated ones or none: by the means at least 25% is closed at every p by ever" in aim
    assert source_of("ever") == NOWHERE
    assert source_of("itps+clip=0.1") == STUDY
    assert source_of("itps@popularity+clip=5%") == "popularity+clip=5%"
