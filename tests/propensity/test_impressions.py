"""Exposure from recorded impressions: counts by hand, the likelihood by brute force, and the truth of small worlds."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from scipy.stats import binom

from tests.propensity.scenes import ITEMS, STEPS, Scene, alike, personal, scene, seasons
from unveil.data.indexing import Vocabulary
from unveil.data.interactions import Interactions, Sequences
from unveil.data.slots import Slots
from unveil.data.splits import leave_one_out
from unveil.errors import UnveilError
from unveil.propensity.build import build
from unveil.propensity.factors import Blocks, FactorTables
from unveil.propensity.impressions import (
    ImpressionCounts,
    ImpressionGroups,
    impression_loss,
    log_unrecorded,
    skips_before_clicks,
    steps,
    training_impressions,
)
from unveil.simulation.builtin import WorldSpec
from unveil.simulation.world import World


def by_hand(*, step: bool) -> Interactions:
    """User a takes x, y, x, z at times 1 to 4, user b takes x alone at 9; both leave some, and z twice at time 2."""
    rows = [
        # user, item, time, taken
        (0, 0, 1, True),
        (0, 1, 2, True),
        (0, 2, 2, False),
        (0, 2, 2, False),
        (0, 1, 1, False),
        (0, 0, 3, True),
        (0, 2, 4, True),
        (0, 1, 4, False),
        (1, 0, 9, True),
        (1, 2, 8, False),
    ]
    user, item, time, taken = (np.array(column) for column in zip(*rows, strict=True))
    return Interactions(
        user.astype(np.int32),
        item.astype(np.int32),
        Vocabulary(["a", "b"]),
        Vocabulary(["x", "y", "z"]),
        time=time.astype(np.int64),
        clicked=taken,
        step=(time - 1).astype(np.int32) if step else None,
    )


class TestPages:
    def test_what_was_shown_is_counted_by_moment_and_a_take_counts_by_the_rate(self) -> None:
        log = by_hand(step=True)
        train = leave_one_out(Sequences.of(log)).train
        assert train.event_N.tolist() == [0, 1, 8], "the last two takes of a are held out, b only trains"
        pages = ImpressionCounts.of(log, train, Blocks(first=0, steps=10, count=2), rate=0.25)
        assert list(zip(pages.user_G.tolist(), pages.block_G.tolist(), strict=True)) == [(0, 0), (1, 1)]
        assert pages.moments_G.tolist() == [2, 2], "times 1 and 2 of a, 8 and 9 of b"
        # a: x taken at 1, y left at 1 and taken at 2, z left at 2 (written twice); nothing of times 3 and 4.
        assert pages.shown_GV.toarray().tolist() == [[0.25, 1.25, 1], [0.25, 0, 1]]

    def test_without_steps_an_impression_has_that_of_the_take_before_it(self) -> None:
        log = by_hand(step=False)
        train = Sequences.of(log)  # aligned at the end: a takes at steps 0 to 3, b at 3
        assert train.step_N.tolist() == [0, 1, 2, 3, 3]
        assert log.clicked is not None
        assert steps(log, train)[log.clicked].tolist() == [0, 1, 2, 3, 3]
        assert steps(log, train)[~log.clicked].tolist() == [1, 1, 0, 3, 3]

    @pytest.mark.parametrize("step", [True, False])
    @pytest.mark.parametrize("blocks", [1, 4, 9])
    def test_a_moment_is_in_one_page_wherever_its_take_stands(self, step: bool, blocks: int) -> None:
        """Six moments of two left around one taken: nothing can be shown at more moments than there were."""
        time = np.repeat(np.arange(6), 3)
        log = Interactions(
            np.zeros(18, np.int32),
            np.tile(np.arange(3, dtype=np.int32), 6),
            Vocabulary(["a"]),
            Vocabulary(["x", "y", "z"]),
            time=time,
            clicked=np.tile([False, True, False], 6),
            step=time.astype(np.int32) if step else None,
        )
        train = Sequences.of(log)
        pages = ImpressionCounts.of(log, train, Blocks.of(train, blocks))
        assert pages.moments_G.sum() == 6
        assert (pages.shown_GV.toarray() == pages.moments_G[:, None]).all()

    @pytest.mark.parametrize("taken_first", [True, False])
    def test_what_was_taken_and_left_at_one_moment_was_taken(self, taken_first: bool) -> None:
        log = Interactions(
            np.zeros(3, np.int32),
            np.array([0, 0, 1], np.int32),
            Vocabulary(["a"]),
            Vocabulary(["x", "y"]),
            time=np.ones(3, np.int64),
            clicked=np.array([taken_first, not taken_first, False]),
        )
        train = Sequences.of(log)
        counts = ImpressionCounts.of(log, train, Blocks.of(train, 1), rate=0.25)
        assert counts.shown_GV.toarray().tolist() == [[0.25, 1]]


def test_what_is_older_than_the_training_part_looks_back_is_not_held_out() -> None:
    """One user: left 0, took 1, left 2, took 3, left 4, took 5, left 6, took 7, left 8."""
    rows = np.arange(9)
    log = Interactions(
        np.zeros(9, np.int32),
        np.zeros(9, np.int32),
        Vocabulary(["a"]),
        Vocabulary(["x"]),
        time=rows,
        clicked=rows % 2 == 1,
    )
    whole = Sequences.of(log)
    train = whole.cut(np.array([0]), np.array([3]))
    assert np.flatnonzero(training_impressions(log, train)).tolist() == [0, 1, 2, 3, 4, 5, 6], "7 is held out"
    assert np.flatnonzero(training_impressions(log, train.recent(2))).tolist() == [2, 3, 4, 5, 6]
    assert np.flatnonzero(training_impressions(log, train.recent(1))).tolist() == [4, 5, 6]


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("clock", ["time", "step"])
def test_moments_stay_whole_wherever_their_takes_stand(place: int, clock: str) -> None:
    """Two users, whose times overlap, with five moments of three rows each; the takes of the last two are held out."""
    moment = np.tile(np.repeat(np.arange(5), 3), 2)
    log = Interactions(
        np.repeat(np.arange(2, dtype=np.int32), 15),
        np.tile(np.arange(3, dtype=np.int32), 10),
        Vocabulary(["a", "b"]),
        Vocabulary(["x", "y", "z"]),
        time=moment if clock == "time" else None,
        clicked=np.tile(np.arange(3) == place, 10),
        step=moment.astype(np.int32) if clock == "step" else None,
    )
    train = leave_one_out(Sequences.of(log)).train
    assert np.flatnonzero(training_impressions(log, train)).tolist() == [*range(9), *range(15, 24)]
    assert np.flatnonzero(training_impressions(log, train.recent(1))).tolist() == [*range(6, 9), *range(21, 24)]


class TestLikelihood:
    @pytest.mark.parametrize("rate", [0.01, 0.3, 1.0])
    def test_log_of_what_is_not_recorded(self, rate: float) -> None:
        psi = torch.linspace(-8, 8, 41, dtype=torch.float64)
        torch.testing.assert_close(log_unrecorded(psi, rate), torch.log1p(-rate * torch.sigmoid(psi)))

    @pytest.mark.parametrize("rate", [0.4, 1.0])
    def test_it_is_that_of_binomial_counts(self, rate: float) -> None:
        rng = np.random.default_rng(3)
        world = scene(personal(rng, sd=1.0), seasons(rng, sd=1.0))
        log = world.world.log(np.random.default_rng(1), impressions=1.0)
        # At a rate of 1 takes count whole, so that all counts are whole and the binomial law is there to compare with.
        pages = ImpressionCounts.of(log, Sequences.of(log), Blocks.of(Sequences.of(log), 4))
        tables = FactorTables(pages.shape, 3, -0.5, generator=torch.Generator().manual_seed(0))
        page_G = np.array([0, 5, 17])
        found = impression_loss(pages, tables, page_G, np.arange(ITEMS), rate)
        psi_GV = tables.factors().logits(pages.user_G[page_G], pages.block_G[page_G])
        expected = 0.0
        for g, page in enumerate(page_G):
            m, count_V = pages.moments_G[page], pages.shown_GV[page].toarray()[0]
            for i in range(ITEMS):
                n = count_V[i]
                choose = binom.logpmf(n, m, 0.5) - m * np.log(0.5)
                expected -= binom.logpmf(n, m, rate * expit(psi_GV[g, i])) - choose - n * np.log(rate)
        assert found.item() == pytest.approx(expected, rel=1e-4)

    def test_a_sample_of_the_items_stands_for_all(self) -> None:
        rng = np.random.default_rng(3)
        world = scene(personal(rng, sd=1.0), seasons(rng, sd=1.0))
        log = world.world.log(np.random.default_rng(1), impressions=0.5)
        pages = ImpressionCounts.of(log, Sequences.of(log), Blocks.of(Sequences.of(log), 4), 0.5)
        tables = FactorTables(pages.shape, 3, -0.5, generator=torch.Generator().manual_seed(0))
        page_G = np.arange(6)
        parts = [impression_loss(pages, tables, page_G, np.array([i]), 0.5).item() for i in range(ITEMS)]
        whole = impression_loss(pages, tables, page_G, np.arange(ITEMS), 0.5).item()
        assert np.mean(parts) == pytest.approx(whole, rel=1e-4)


#: As many factors as exposure has, two of users and two of seasons; a season lasts for some steps.
LEARNING = {"width": 4, "blocks": 8, "batches": 600}


def recording(rate: float, centre: float = -1.0) -> Scene:
    """Exposure that is personal, the item's own and moves, around a logit; `rate` is the share that is recorded."""
    rng = np.random.default_rng(1)
    exposure = personal(rng, sd=1.0).plus(seasons(rng, sd=1.0)).biased(item_V=rng.normal(size=ITEMS) + centre)
    made = scene(personal(rng, sd=1.0).biased(item_V=rng.normal(size=ITEMS) + 3), exposure)
    log = made.world.log(np.random.default_rng(0), impressions=rate)
    return replace(made, log=log, train=Sequences.of(log))


@pytest.fixture(scope="module", params=[1.0, 0.3])
def shown(request: pytest.FixtureRequest) -> tuple[Scene, float]:
    """A world in which several items are shown at a time, and the share of them that is recorded."""
    return recording(request.param), request.param


def test_it_finds_exposure_and_its_scale_whatever_is_liked(shown: tuple[Scene, float]) -> None:
    world, rate = shown
    found, true = world.theta(world.model("recorded-temporal", rate=rate, **LEARNING))
    assert alike(found, true) > (0.95 if rate == 1 else 0.88), "a third of the impressions tells less"
    assert np.exp(found).mean() == pytest.approx(np.exp(true).mean(), rel=0.05)
    counted, _ = world.theta(world.model("popularity-temporal"))
    assert alike(counted, true) < 0.6, "popularity has the liking in it"


def test_a_static_one_finds_the_mean_over_steps(shown: tuple[Scene, float]) -> None:
    world, rate = shown
    found, true = world.theta(world.model("recorded-static", rate=rate, **LEARNING))
    assert alike(found[:, 0], np.log(np.exp(true).mean(1))) > (0.95 if rate == 1 else 0.88)


def test_a_penalty_holds_the_factors_back() -> None:
    world = recording(1.0)
    spread = [world.theta(world.model("recorded-static", penalty=penalty, **LEARNING))[0].std() for penalty in (1, 1e4)]
    assert spread[1] < 0.7 * spread[0], "what items add for all is held back less"


def test_moments_that_left_no_row_are_not_counted() -> None:
    """A limit: where 0.9 items are shown at a time and a tenth of them is kept, θ̂ is too large."""
    world = recording(0.1, -3.5)
    found, true = world.theta(world.model("recorded-static", rate=0.1, **LEARNING))
    assert np.exp(true).sum(2).mean() == pytest.approx(0.9, abs=0.05)
    assert 1.4 < np.exp(found).mean() / np.exp(true).mean() < 1.9
    assert alike(found[:, 0], np.log(np.exp(true).mean(1))) > 0.7


def test_where_it_would_rise_above_1_items_no_longer_share_the_factor() -> None:
    """A limit: with 1.1 items at a time, a tenth kept and few takes, one moment in eight leaves a row."""
    rng, (U, T), theta_V = np.random.default_rng(0), (60, 300), np.array([0.6, 0.3, 0.1, 0.05, 0.02, 0.01])
    shown_UTV = rng.random((U, T, 6)) < theta_V
    taken_UT = shown_UTV.any(2) & (rng.random((U, T)) < 0.02)
    taken_UTV = taken_UT[..., None] & (np.arange(6) == shown_UTV.argmax(2)[..., None])
    user, step, item = np.nonzero(taken_UTV | (shown_UTV & (rng.random((U, T, 6)) < 0.1)))
    log = Interactions(
        user.astype(np.int32),
        item.astype(np.int32),
        Vocabulary(f"u{n:02}" for n in range(U)),
        Vocabulary("abcdef"),
        time=step,
        clicked=taken_UTV[user, step, item],
        step=step.astype(np.int32),
    )
    assert len(np.unique(user * T + step)) == pytest.approx(U * T / 8.5, rel=0.03)
    model = build("recorded-static", {"rate": 0.1, "width": 1, "batches": 600}, Sequences.of(log), log=log)
    slots = Slots(torch.arange(U), torch.zeros(U, dtype=torch.long), torch.zeros(U, dtype=torch.long))
    factor_V = model.of_all(slots).numpy().mean(0) / theta_V
    assert factor_V[0] == pytest.approx(1 / 0.6, rel=0.02), "there is no room for more"
    assert factor_V[2:4] == pytest.approx(8.5, rel=0.2)


def test_a_window_shorter_than_the_histories_tells_the_exposure_inside_it(shown: tuple[Scene, float]) -> None:
    world, rate = shown
    found, true = world.theta(world.model("recorded-static", rate=rate, window=STEPS // 2, **LEARNING))
    later = np.log(np.exp(true[:, true.shape[1] // 2 :]).mean(1))
    assert alike(found[:, 0], later) > (0.9 if rate == 1 else 0.7)
    assert np.exp(found).mean() == pytest.approx(np.exp(later).mean(), rel=0.05)


def test_a_log_without_what_was_left_is_refused(shown: tuple[Scene, float]) -> None:
    world, _ = shown
    for log in (world.log.interacted(), replace(world.log, clicked=None)):
        with pytest.raises(UnveilError, match="needs a log with impressions without a click"):
            build("recorded-temporal", {}, world.train, log=log)


def test_a_log_in_which_nothing_was_shown_is_refused(shown: tuple[Scene, float]) -> None:
    log = replace(shown[0].log, exposed=np.zeros(len(shown[0].log), bool))
    with pytest.raises(UnveilError, match="finds no impression without a click"):
        build("recorded-static", {}, shown[0].train, log=log)


@pytest.mark.parametrize(("option", "value"), [("rate", 0.0), ("rate", 1.1), ("width", 0), ("batches", 0)])
def test_options_out_of_range_are_refused(shown: tuple[Scene, float], option: str, value: float) -> None:
    with pytest.raises(UnveilError, match=rf"recorded-temporal\.{option}: out of range"):
        shown[0].model("recorded-temporal", **{option: value})


def grouped(time: list[int], clicked: list[bool], *, step: bool = False) -> ImpressionGroups | None:
    """One user, an item a row."""
    rows, clock = len(time), np.array(time)
    return ImpressionGroups.of(
        Interactions(
            np.zeros(rows, np.int32),
            np.arange(rows, dtype=np.int32),
            Vocabulary(["a"]),
            Vocabulary([f"i{row}" for row in range(rows)]),
            time=None if step else clock,
            step=clock.astype(np.int32) if step else None,
            clicked=np.array(clicked),
        )
    )


@pytest.mark.parametrize("step", [True, False])
def test_feeds_and_lists_by_hand(step: bool) -> None:
    """Skips at 2, at 3 beside another, and at 5 beside a click: three of four are not alone, one is with a click."""
    found = grouped([1, 2, 3, 3, 5, 5], [True, False, False, False, True, False], step=step)
    assert found == ImpressionGroups(skips=4, together=0.75, with_click=0.25)
    assert not found.is_feed
    feed = grouped([1, 2, 3, 4, 4, 5], [True, False, False, False, False, True], step=step)
    assert feed == ImpressionGroups(skips=4, together=0.5, with_click=0.0)
    assert not feed.is_feed
    assert replace(feed, together=0.25).is_feed
    few_kept_of_lists = grouped([1, 2, 3, 4, 5, 5], [True, False, False, False, True, False], step=step)
    assert few_kept_of_lists == ImpressionGroups(skips=4, together=0.25, with_click=0.25)
    assert not few_kept_of_lists.is_feed
    pages_without_a_click = grouped([1, 1, 1, 2, 2, 3], [False, False, False, False, False, True], step=step)
    assert pages_without_a_click is not None
    assert not pages_without_a_click.is_feed


def test_nothing_can_be_told_without_skips_or_without_a_clock() -> None:
    assert grouped([1, 2], [True, True]) is None
    log = by_hand(step=False)
    assert ImpressionGroups.of(replace(log, time=None)) is None
    assert ImpressionGroups.of(log.interacted()) is None


@pytest.mark.parametrize("rate", [0.1, 1.0])
def test_drawn_worlds_show_lists(rate: float) -> None:
    """However few impressions the log keeps: what it keeps was shown beside the choice."""
    world = World.builtin(WorldSpec(users=40, items=30, steps=15), seed=5)
    found = ImpressionGroups.of(world.log(np.random.default_rng(0), impressions=rate))
    assert found is not None
    assert found.together >= found.with_click > 0.5
    assert not found.is_feed


def test_skips_precede_the_first_click_at_their_moment_or_later() -> None:
    """User a: left 1 at time 1 beside click 0; z, twice, at 2 beside click 1; what is at or after 4 is held out."""
    log = by_hand(step=False)
    skip_P, click_P = skips_before_clicks(log, leave_one_out(Sequences.of(log)).train)
    assert list(zip(skip_P.tolist(), click_P.tolist(), strict=True)) == [(4, 0), (2, 1), (3, 1), (9, 8)]


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**6))
def test_skips_and_their_clicks_against_brute_force(seed: int) -> None:
    rng, rows = np.random.default_rng(seed), 40
    log = Interactions(
        rng.integers(3, size=rows).astype(np.int32),
        rng.integers(5, size=rows).astype(np.int32),
        Vocabulary(["a", "b", "c"]),
        Vocabulary(list("vwxyz")),
        time=rng.integers(12, size=rows),
        clicked=rng.random(rows) < 0.5,
    )
    assert log.clicked is not None
    train, time = leave_one_out(Sequences.of(log)).train, np.asarray(log.time)
    expected = []
    for row in np.flatnonzero(training_impressions(log, train) & ~log.clicked):
        later = [n for n in train.event_N if log.user[n] == log.user[row] and time[n] >= time[row]]
        if later:
            expected.append((row, min(later, key=lambda n: (time[n], n))))
    assert sorted(zip(*skips_before_clicks(log, train), strict=True)) == sorted(expected)
