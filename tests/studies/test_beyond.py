"""Shares of the gap over worlds and replicates: by hand, and from a study of a tiny world to its files."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from tests.pages import faults
from tests.studies.small import made_up as any_made_up
from tests.studies.small import said, tiny, tiny_world
from unveil.errors import UnveilError
from unveil.evaluation.statistics import ratio_interval
from unveil.runs.workers import Inline
from unveil.studies.beyond import NONE, STUDY, Beyond, is_estimated, levels, shares, source_of
from unveil.studies.engine import Answer, run, write
from unveil.studies.results import TRUE, Measure

RECALL = Measure(TRUE, "uniform-100", "Recall", 10)
HIT, MISS = 1, 50
RECORDED = "corrected@recorded+propensity.batches=20"
SHOWN = "impressions+loss=pointwise"


def hits(*counts: int, of: int = 10) -> list[list[int]]:
    """Ranks of ten cases, so many of them hits: one list for each world and replicate."""
    return [[HIT] * count + [MISS] * (of - count) for count in counts]


def made_up(arms: dict[str, list[list[int]]], **fields: Any) -> Answer:
    return any_made_up(arms, kind=Beyond, **fields)


@pytest.fixture
def two_worlds() -> Answer:
    """Two worlds of two replicates: naive 2, ideal 8 of ten; corrected closes 5/6 in one world and 2/6 in the other."""
    arms = {
        "naive": hits(2, 2, 2, 2),
        "corrected": hits(7, 7, 4, 4),
        "corrected@popularity": hits(1, 1, 0, 2),
        "ideal": hits(8, 8, 8, 8),
    }
    return made_up(arms, worlds=2)


def test_each_world_counts_once_with_the_mean_of_its_replicates(two_worlds: Answer) -> None:
    found = next(each for each in shares(two_worlds.results, RECALL) if each.arm == "corrected")
    assert found.gap is not None
    assert found.gap.n == 2
    assert found.gap.mean == pytest.approx((5 / 6 + 2 / 6) / 2)
    expected = ratio_interval(np.array([0.5, 0.2]), np.array([0.6, 0.6]))
    assert (found.gap.low, found.gap.high) == pytest.approx(expected)
    assert [world.mean for world in found.worlds if world is not None] == pytest.approx([5 / 6, 2 / 6])
    assert not found.below


def test_the_variance_of_worlds_is_kept_from_that_of_replicates(two_worlds: Answer) -> None:
    here = two_worlds.results.at(severity=1.0)
    assert levels(here, "corrected", RECALL) == pytest.approx((np.std([0.5, 0.2], ddof=1), 0))
    noisy = levels(here, "corrected@popularity", RECALL)
    within = np.sqrt(np.var([-0.2, 0.0], ddof=1) / 2)
    assert noisy == pytest.approx((0, within)), "the means of the worlds are equal"
    other = made_up({"naive": hits(2, 2, 2, 2), "itps": hits(8, 6, 3, 5), "ideal": hits(9, 9, 9, 9)}, worlds=2)
    within = np.var([0.6, 0.4], ddof=1)  # as in the other world, 0.1 and 0.3
    between = np.sqrt(np.var([0.5, 0.2], ddof=1) - within / 2)
    assert levels(other.results, "itps", RECALL) == pytest.approx((between, np.sqrt(within)))


def test_a_world_by_itself_has_the_interval_of_its_replicates() -> None:
    answer = made_up({"naive": hits(2, 2, 2), "itps": hits(3, 4, 5), "ideal": hits(8, 9, 8)})
    (found,) = shares(answer.results, RECALL)
    (world,) = found.worlds
    assert world is not None
    expected = ratio_interval(np.array([0.1, 0.2, 0.3]), np.array([0.6, 0.7, 0.6]))
    assert (world.low, world.high) == pytest.approx(expected)


def test_tests_are_corrected_over_all_arms_and_severities() -> None:
    """Alone ips is significantly above naive; among three arms the smallest p counts threefold, and it is not."""
    arms = {"ips": hits(4, 5, 4), "itps": hits(2, 3, 2), "corrected": hits(3, 2, 2)}
    ends = {"naive": hits(2, 2, 2), "ideal": hits(8, 8, 8)}
    raw = {
        arm: ttest_1samp([len([r for r in each if r == HIT]) / 10 - 0.2 for each in ranks], 0).pvalue
        for arm, ranks in arms.items()
    }
    alone = shares(made_up(ends | {"ips": arms["ips"]}).results, RECALL)[0]
    assert alone.test.p == pytest.approx(raw["ips"])
    assert alone.significant
    together = {each.arm: each for each in shares(made_up(ends | arms).results, RECALL)}
    assert together["ips"].test.p == pytest.approx(3 * raw["ips"])
    assert together["itps"].test.p == pytest.approx(min(1, 2 * raw["itps"]))
    assert not together["ips"].significant


def test_the_text_says_who_is_below_naive_and_who_reached_the_aim(two_worlds: Answer) -> None:
    text = said(two_worlds)
    assert "no estimator closes 60% at every p; the best worst case is that of corrected" in text
    assert "corrected · popularity (NDCG@10 against 100 uniform items at p = 1; Recall@10 against 100 uniform" in text
    assert "25% of the gap in NDCG@10" in text
    assert "15% of the gap in Recall@10" in text


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Answer, Path]:
    world = tiny_world(tmp_path_factory.mktemp("world") / "tiny")
    arms = ("naive", "itps", "corrected", "itps@popularity+clip=10%", "corrected@popularity", RECORDED, SHOWN, "ideal")
    folder = tmp_path_factory.mktemp("beyond") / "run"
    found = run(tiny(Beyond, world, severities=(1.0, 2.0), estimators=arms), folder, Inline())
    write(found, folder, ["unveil", "reproduce", "beyond"])
    return found, folder


def test_a_variant_is_trained_on_the_log_of_its_estimator(done: tuple[Answer, Path]) -> None:
    answer = done[0]
    logs = {answer.where(severity=2.0, estimator=arm)[0]["log"]["fingerprint"] for arm in answer.results.arms}
    assert len(logs) == 1
    arms = ("corrected", "corrected@popularity", RECORDED, SHOWN)
    own = {arm: answer.where(severity=1.0, estimator=arm)[0] for arm in arms}
    assert len({tuple(record["training"]["loss"]) for record in own.values()}) == 4
    sizes = [{name: own[arm]["log"][name] for name in ("events", "catalogue")} for arm in (RECORDED, "corrected")]
    assert sizes[0] == sizes[1], "impressions without a click are no events, and add no item"
    clipped = answer.where(severity=1.0, estimator="itps@popularity+clip=10%")[0]["weights"]["clipped"]
    assert clipped >= 0.1, "ties at the quantile are clipped with it"


def test_the_files_hold_every_share(done: tuple[Answer, Path]) -> None:
    found = json.loads((done[1] / "results.json").read_text())
    assert found["question"] == "beyond"
    assert {(each["estimator"], each["severity"], each["protocol"]) for each in found["shares"]} == {
        (arm, p, protocol)
        for arm in ("itps", "corrected", "itps@popularity+clip=10%", "corrected@popularity", RECORDED, SHOWN)
        for p in (1, 2)
        for protocol in done[0].results.protocols
    }
    readme = (done[1] / "README.md").read_text()
    assert "closed in NDCG@10 against all items" in readme
    assert "θ is clipped from below at 10% for ITPS · popularity · clip 10%" in readme
    assert (done[1] / "figures" / "gap-closed.svg").is_file()
    assert faults((done[1] / "index.html").read_text()) == []


def test_without_a_gap_there_is_no_share() -> None:
    text = said(made_up({"naive": hits(8, 8), "itps": hits(3, 3), "ideal": hits(2, 2)}))
    assert text.startswith("NDCG@10 against 100 uniform items, true propensities: there is no gap to close, as ideal")


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
        ("wmf-distilled", True),
        ("wmf-distilled-rated+trust=1", True),
    ],
)
def test_the_truth_with_noise_is_no_estimate(arm: str, estimated: bool) -> None:
    assert is_estimated(arm) is estimated


def test_the_truth_beside_the_studys_propensities_is_no_estimate() -> None:
    arms = {"naive": hits(2, 2), "itps@true": hits(7, 7), "corrected@timing": hits(3, 3), "ideal": hits(8, 8)}
    first = said(made_up(arms, propensity="popularity")).partition("Recall@10")[0]
    assert "estimated ones or none: by the means no estimator closes 25%" in first
    assert "itps" not in first.lower()


def test_below_naive_among_all_items_alone_is_said() -> None:
    answer = made_up({"naive": hits(2, 2), "itps": hits(3, 3), "ideal": hits(8, 8)})
    assert "No estimator has a mean below that of the naive baseline anywhere" in said(answer)
    worse = made_up({"naive": hits(2, 2), "itps": hits(3, 3), "ideal": hits(8, 8)})
    for record in worse.where(estimator="itps"):
        record["ranks"][TRUE]["full"] = [MISS] * 10
    assert "Below the naive baseline" in said(worse)
    assert "ITPS (NDCG@10 against all items at p = 1; Recall@10 against all items at p = 1)" in said(worse)


def test_an_aim_that_is_reached_under_one_ranking_is_not_said_of_another() -> None:
    answer = made_up({"naive": hits(2, 2), "corrected": hits(7, 7), "ideal": hits(8, 8)})
    for record in answer.where(estimator="corrected"):
        record["ranks"][TRUE]["full"] = [HIT] * 3 + [MISS] * 7
    reached = "by the means at least 60% is closed at every p by corrected"
    assert f"Recall@10 against 100 uniform items, true propensities: {reached}" in said(answer)
    assert "Recall@10 against all items, true propensities: by the means no estimator closes 60%" in said(answer)


def test_that_the_truth_chose_the_epoch_is_said_of_estimates() -> None:
    ends = {"naive": hits(2, 2), "ideal": hits(8, 8)}
    assert "could not choose the epoch so" in said(made_up(ends | {"wmf-distilled": hits(3, 3)}))
    assert "the epoch" not in said(made_up(ends | {"wmf-distilled": hits(3, 3)}, epoch_by="taken"))
    assert "the epoch" not in said(made_up(ends | {"itps": hits(3, 3)}))


def test_what_needs_no_propensity_has_the_aim_of_estimates() -> None:
    arms = {"naive": hits(2, 2), "itps": hits(3, 3), "wmf-distilled": hits(6, 6), "ideal": hits(8, 8)}
    text = said(made_up(arms))
    assert (
        "true propensities: by the means no estimator closes 60% at every p; the best worst case is that of ITPS"
        in text
    )
    assert "estimated ones or none: by the means at least 25% is closed at every p by wmf-distilled" in text
    assert source_of("wmf-distilled") == NONE
    assert source_of("itps+clip=0.1") == STUDY
    assert source_of("itps@popularity+clip=5%") == "popularity+clip=5%"


@pytest.mark.parametrize(
    "arms", [("naive",), ("naive", "naive", "ideal"), ("itps", "ideal"), ("naive", "itps"), ("naive+training.lr=1e-3",)]
)
def test_a_gap_has_two_ends_and_something_between_them(arms: tuple[str, ...]) -> None:
    with pytest.raises(UnveilError, match=r"--estimators: a gap has two ends.*expected naive, ideal and at least one"):
        Beyond(data="builtin", preset="quick", estimators=arms)


def test_a_misspelt_end_is_found_first() -> None:
    with pytest.raises(UnveilError, match="Did you mean 'naive'"):
        Beyond(data="builtin", preset="quick", estimators=("naiv", "itps", "ideal"))
