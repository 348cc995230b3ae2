"""Can exposure and appeal be told apart: generated logs of which it is known; and what evidence would decide."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from unveil.audit.evidence import CORRELATION, DIFFERENCES, clicks_needed, evidence
from unveil.audit.identification import identification
from unveil.data.indexing import Vocabulary
from unveil.data.interactions import Interactions
from unveil.evaluation.statistics import paired

DAY = 86_400 * 10**6
ITEMS = 40


def log_of(item_N: NDArray[Any], **columns: Any) -> Interactions:
    """These items, one of a user each, over a hundred days."""
    n = len(item_N)
    users, items = Vocabulary(f"{each:05d}" for each in range(n)), Vocabulary(f"{each:05d}" for each in range(ITEMS))
    time = np.linspace(0, 100 * DAY, n).astype(np.int64)
    return Interactions(np.arange(n, dtype=np.int32), item_N.astype(np.int32), users, items, time=time, **columns)


def drawn(seed: int, weight_V: NDArray[Any] | None = None, n: int = 20_000) -> NDArray[np.int64]:
    return np.random.default_rng(seed).choice(ITEMS, n, p=weight_V)


def variation(log: Interactions, source: str) -> Any:
    return next(each for each in identification(log).sources if each.source == source)


def test_constant_exposure_cannot_be_told_from_appeal() -> None:
    weight_V = 1 / np.arange(1.0, ITEMS + 1)
    found = [identification(log_of(drawn(seed, weight_V / weight_V.sum()))) for seed in range(30)]
    assert {each.verdict for each in found} == {"not"}
    assert sum(each.connected > 0 for each in found) <= 5, "of 30 logs at most one in twenty has any by chance"


def test_exposure_that_changes_is_seen_along_the_calendar_and_needs_an_assumption() -> None:
    weight_V = np.where(np.arange(ITEMS) < 30, 1.0, 3.0)
    item_N = drawn(0, weight_V / weight_V.sum())
    late = np.random.default_rng(1).choice(20, 10_000)  # half of the items are no longer shown
    item_N[10_000:] = late
    found = identification(log_of(item_N))
    assert found.verdict == "calendar"
    assert found.sources[0].items > 0.9
    assert identification(replace(log_of(item_N), time=None)).verdict == "not"
    places = np.arange(len(item_N)) % 50  # places in an order are no calendar
    assert identification(replace(log_of(item_N), time=places.astype(np.int64) * 10**6)).sources == ()


def test_random_rows_connect_all_items() -> None:
    random = np.random.default_rng(2).random(20_000) < 0.1
    found = identification(log_of(drawn(0), randomised=random))
    assert found.verdict == "by design"
    assert found.sources[0].items == 1
    assert found.connected == pytest.approx(1)
    few = np.arange(20_000) < 30
    assert identification(log_of(drawn(0), randomised=few)).verdict == "not", "no item has five random rows"


def test_positions_connect_where_items_move_between_them_and_impressions_are_known() -> None:
    rng = np.random.default_rng(9)
    item_N, clicked = drawn(0), rng.random(20_000) < 0.3
    anywhere = log_of(item_N, position=rng.integers(1, 4, 20_000).astype(np.int32), clicked=clicked)
    assert identification(anywhere).verdict == "by position"
    fixed = replace(anywhere, position=(item_N % 4).astype(np.int32))
    assert variation(fixed, "position").items == 0
    assert identification(fixed).verdict == "impressions alone"
    assert identification(replace(anywhere, clicked=None)).verdict == "not", "positions of clicks alone"


def test_two_pieces_cannot_be_compared() -> None:
    """Items below 30 share positions 1 and 2, the others 3 and 4: two components, of three quarters and a quarter."""
    rng = np.random.default_rng(9)
    item_N = drawn(0)
    position = rng.integers(1, 3, 20_000) + np.where(item_N < 30, 0, 2)
    found = variation(log_of(item_N, position=position.astype(np.int32)), "position")
    assert found.items == 1
    assert found.events == pytest.approx(1)
    assert found.connected == pytest.approx((item_N < 30).mean())


def test_components_agree_with_a_walk() -> None:
    rng = np.random.default_rng(4)
    item_N, position = rng.integers(0, ITEMS, 300), rng.integers(0, 12, 300)
    position[::2] = item_N[::2] % 12  # many items have enough rows at one position, some at two
    log = log_of(item_N, position=position.astype(np.int32))
    levels = {i: {p for p in range(12) if ((item_N == i) & (position == p)).sum() >= 5} for i in range(ITEMS)}
    levels = {i: own for i, own in levels.items() if len(own) > 1}
    largest = 0.0
    for start in levels:
        reached = {start}
        while more := {j for j in levels if j not in reached and any(levels[j] & levels[i] for i in reached)}:
            reached |= more
        largest = max(largest, np.isin(item_N, list(reached)).mean())
    assert variation(log, "position").connected == pytest.approx(largest)


def test_logged_propensities_that_vary_within_items() -> None:
    rng = np.random.default_rng(9)
    assert identification(log_of(drawn(0), propensity=rng.uniform(0.05, 1, 20_000))).verdict == "by design"
    item_N = drawn(0)
    assert variation(log_of(item_N, propensity=0.9 / (1 + item_N % 7)), "propensity").items == 0


@pytest.mark.parametrize("difference", [0.02, 0.05])
def test_the_number_of_clicks_gives_the_power_that_it_promises(difference: float) -> None:
    """Percentiles of the clicked item under two models: uniform but for a shift, correlated by a Gaussian copula."""
    from scipy.special import ndtr

    rng, n, found = np.random.default_rng(0), clicks_needed(difference), []
    latent = 2 * np.sin(np.pi * CORRELATION / 6)  # Pearson's of the normals, for that of the uniforms
    for _ in range(300):
        common = rng.normal(size=(2, n))
        other = latent * common[0] + np.sqrt(1 - latent**2) * common[1]
        found.append(paired(ndtr(other) + difference, ndtr(common[0])).p < 0.05)
    assert np.mean(found) == pytest.approx(0.8, abs=0.07)  # three standard errors


def test_evidence_follows_from_the_rates_of_the_log() -> None:
    clicked = np.arange(20_000) % 4 == 0
    found = evidence(log_of(drawn(0), clicked=clicked))
    assert found.clicks_per_day == pytest.approx(50)
    assert found.click_rate == 0.25
    assert [each.difference for each in found.needed] == list(DIFFERENCES)
    for each in found.needed:
        assert each.clicks == 2 * clicks_needed(each.difference)
        assert each.impressions == each.clicks * 8  # of which one in eight is clicked
        assert each.days == pytest.approx(each.impressions / (200 * 0.01))
    bare = evidence(replace(log_of(drawn(0)), time=None))
    assert (bare.clicks_per_day, bare.click_rate) == (None, None)
    assert all(each.impressions is None and each.days is None for each in bare.needed)


@pytest.mark.slow
def test_real_logs(shared_data: Path) -> None:
    ml = identification(Interactions.read(shared_data / "ml-100k" / "u.data"))
    assert ml.verdict == "not"
    assert ml.connected == pytest.approx(0.071, abs=0.001)
    shown = identification(Interactions.read(shared_data / "kuairand-pure" / "log_standard_4_25_to_5_08_pure.csv.gz"))
    assert shown.verdict == "impressions alone"
    assert shown.connected == pytest.approx(0.586, abs=0.001)
