"""Exposure and preferences together: the likelihood of a choice, its tables and its descent."""

from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from torch import Tensor

from unveil.data.indexing import Vocabulary
from unveil.data.interactions import Interactions, Sequences
from unveil.propensity.factors import Blocks, FactorTables, InteractionCounts
from unveil.propensity.joint import FactorPreferences, PopularityLine, Preferences, RatedPreferences, _loss, choice_loss

LOGIT = st.floats(-4, 1)


def log_of(user: list[int], item: list[int], step: list[int]) -> Interactions:
    user_N, item_N, step_N = (np.array(column, np.int32) for column in (user, item, step))
    users, items = (Vocabulary(str(n) for n in range(max(column) + 1)) for column in (user, item))
    return Interactions(user_N, item_N, users, items, step=step_N)


def probability_by_enumeration(theta: list[float], better: list[bool], own: float, count: int) -> float:
    """P(own taken, `count` times over): own is seen, and none that is better is."""
    total = 0.0
    for seen in product([False, True], repeat=len(theta)):
        if not any(s and b for s, b in zip(seen, better, strict=True)):
            total += float(np.prod([t if s else 1 - t for t, s in zip(theta, seen, strict=True)]))
    return (own * total) ** count


@given(st.lists(st.tuples(LOGIT, st.booleans()), min_size=1, max_size=5), LOGIT, st.integers(1, 2))
def test_with_a_known_order_it_is_the_rational_users_likelihood(
    others: list[tuple[float, bool]], own: float, count: int
) -> None:
    psi, better = (list(column) for column in zip(*others, strict=True))
    theta = torch.sigmoid(torch.tensor(psi, dtype=torch.float64)).tolist()
    mine = torch.sigmoid(torch.tensor(own, dtype=torch.float64)).item()
    expected = -np.log(probability_by_enumeration(theta, better, mine, count))
    own_B, psi_BS = torch.tensor([own], dtype=torch.float64), torch.tensor([psi], dtype=torch.float64)
    found = choice_loss(own_B, psi_BS, torch.tensor([better], dtype=torch.float64), torch.tensor([float(count)]))
    assert found.item() == pytest.approx(expected, rel=1e-4, abs=1e-4)  # P(better) is cut just below 1


def test_an_order_in_doubt_is_averaged_over() -> None:
    own, other, better, count = 0.3, -0.4, 0.25, 3
    theta, mine = (1 / (1 + np.exp(-x)) for x in (other, own))
    likelihood = mine**count * (better * (1 - theta) ** count + (1 - better))
    own_B, count_B = (torch.tensor([each], dtype=torch.float64) for each in (own, float(count)))
    other_BS, better_BS = (torch.tensor([[each]], dtype=torch.float64) for each in (other, better))
    assert choice_loss(own_B, other_BS, better_BS, count_B).item() == pytest.approx(-np.log(likelihood))


@dataclass
class GivenPreferences(Preferences):
    """Liking that is given: P(j better than i) of every two items, or whether it is."""

    better_VV: Tensor
    fixed: bool  # type: ignore[misc]

    def better(self, user_B: Tensor, item_B: Tensor, item_S: Tensor) -> Tensor:
        return self.better_VV[item_B][:, item_S]

    def prior_loss(self) -> Tensor:
        return torch.tensor(0.7)


def toy(fixed: bool) -> tuple[InteractionCounts, FactorTables, GivenPreferences]:
    """Six counts of two users, four items and two blocks, exposure and preferences all drawn."""
    rng, generator = np.random.default_rng(0), torch.Generator().manual_seed(0)
    user, item, block = np.array([[0, 0, 0], [0, 2, 0], [0, 2, 1], [1, 1, 1], [1, 3, 0], [1, 3, 1]]).T
    counts = InteractionCounts(user, item, block, np.array([1.0, 3.0, 2.0, 1.0, 4.0, 2.0]), (2, 4, 2))
    tables = FactorTables(counts.shape, 2, -1.0, generator=generator)
    with torch.no_grad():
        for each in tables.parameters():
            each.add_(torch.randn(each.shape, generator=generator))
    return counts, tables, GivenPreferences(torch.from_numpy(rng.random((4, 4)).astype(np.float32)), fixed)


@pytest.mark.parametrize("fixed", [True, False])
def test_the_loss_of_all_takes_by_hand(fixed: bool) -> None:
    """What is better is so at all n times, Π_j (1 − b_j + b_j (1 − θ_j)^n), or each time anew, Π_j (1 − b_j θ_j)^n."""
    counts, tables, preferences = toy(fixed)
    user, block = (index.ravel() for index in np.indices((2, 2)))
    theta_UCV = 1 / (1 + np.exp(-tables.factors().logits(user, block).astype(np.float64).reshape(2, 2, 4)))
    total = 0.0
    for s, i, b, n in zip(counts.user_N, counts.item_N, counts.block_N, counts.count_N, strict=True):
        total -= n * np.log(theta_UCV[s, b, i])
        for j in set(range(4)) - {int(i)}:
            better, unseen = float(preferences.better_VV[i, j]), 1 - theta_UCV[s, b, j]
            total -= np.log(1 - better + better * unseen**n) if fixed else n * np.log(1 - better + better * unseen)
    found = _loss(counts, tables, preferences, np.arange(6), np.arange(4)).item()
    assert found == pytest.approx((total + tables.prior_loss().item() + 0.7) / 13, rel=1e-5)


@pytest.mark.parametrize("fixed", [True, False])
def test_some_takes_and_some_items_stand_for_all(fixed: bool) -> None:
    """The mean over all samples is the loss of all."""
    whole = _loss(*toy(fixed), np.arange(6), np.arange(4)).item()
    for counts, items in ((6, 1), (6, 3), (2, 4), (2, 2)):
        some = [
            _loss(*toy(fixed), np.array(nth_B), np.array(item_S)).item()
            for nth_B, item_S in product(combinations(range(6), counts), combinations(range(4), items))
        ]
        assert np.mean(some) == pytest.approx(whole, rel=1e-5)


def test_ratings_are_as_likely_as_each_of_them_is_alone() -> None:
    """Means and scatters of counts tell what all ratings do: −Σ log N(r; f, σ), less the constant of each."""
    train = Sequences.of(log_of([0, 0, 0, 1, 1, 1], [1, 1, 0, 0, 1, 1], [0, 1, 2, 0, 1, 2]))
    rating_E = np.array([1.0, 4.0, 3.0, 5.0, 2.0, 2.5])
    counts = InteractionCounts.of(train, Blocks.of(train, 1), rating_E)
    preferences = FactorPreferences(counts, 2, 1.0, penalty=1.0, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        preferences.log_sd.fill_(0.4)
    user_E, item_E = (torch.from_numpy(side.astype(np.int64)) for side in (train.user_N, train.item_N))
    f_E = preferences.f.of_item(user_E, item_E, torch.zeros_like(user_E)).detach().numpy()
    each_E = -norm.logpdf(rating_E, f_E, np.exp(0.4)) - np.log(2 * np.pi) / 2
    assert list(zip(counts.user_N, counts.item_N, strict=True)) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    for nth, events in (([0, 1, 2, 3], [0, 1, 2, 3, 4, 5]), ([1, 2], [0, 1, 3])):
        user_B, item_B = (torch.from_numpy(side[nth]) for side in (counts.user_N, counts.item_N))
        found = preferences.rating_loss(user_B, item_B, torch.tensor(nth)).item()
        assert found == pytest.approx(each_E[events].sum(), rel=1e-5)


def test_takes_count_what_was_taken_and_average_its_ratings() -> None:
    log = log_of([0, 0, 0, 1, 1], [2, 2, 0, 2, 2], [0, 1, 3, 0, 3])
    train = Sequences.of(log)
    counts = InteractionCounts.of(train, Blocks.of(train, 2), np.array([1.0, 3.0, 5.0, 2.0, 4.0]))
    assert counts.rating_N is not None
    assert counts.scatter_N is not None
    rows = zip(
        counts.user_N, counts.item_N, counts.block_N, counts.count_N, counts.rating_N, counts.scatter_N, strict=True
    )
    assert [tuple(map(float, row)) for row in rows] == [
        (0, 0, 1, 1, 5, 0),
        (0, 2, 0, 2, 2, 2),
        (1, 2, 0, 1, 2, 0),
        (1, 2, 1, 1, 4, 0),
    ]


@given(st.integers(1, 12), st.lists(st.integers(-3, 40), min_size=1))
def test_blocks_are_in_order_and_hold_every_step(count: int, step: list[int]) -> None:
    train = Sequences.of(log_of([0] * 20, [0] * 20, list(range(5, 25))))
    blocks = Blocks.of(train, count)
    found = blocks.at(np.sort(np.array(step)))
    assert ((found >= 0) & (found < blocks.count)).all()
    assert (np.diff(found) >= 0).all()
    assert np.ptp(np.bincount(blocks.at(np.arange(5, 25)), minlength=blocks.count)) <= 1


def test_liking_of_a_pair_is_shrunk_by_the_noise_found() -> None:
    rng = np.random.default_rng(0)
    users, items, times = 60, 10, 6
    preferences = rng.normal(size=(users, items))
    user, item = (index.ravel() for index in np.indices((users, items)))
    count = np.full(users * items, float(times))
    ratings = preferences.ravel()[:, None] + 0.5 * rng.normal(size=(users * items, times))
    mean, scatter = ratings.mean(1), ((ratings - ratings.mean(1, keepdims=True)) ** 2).sum(1)
    rated = RatedPreferences(
        InteractionCounts(user, item, np.zeros_like(user), count, (users, items, 1), mean, scatter)
    )
    assert rated.noise == pytest.approx(0.25, rel=0.1)
    assert rated.pair == pytest.approx(1.0, rel=0.25)
    every = torch.arange(items)
    for s in range(5):
        asked = torch.full((items,), s)
        better = rated.better(asked, every, every).numpy()
        sure = np.abs(preferences[s][None] - preferences[s][:, None]) > 1.2
        assert ((better > 0.5) == (preferences[s][None] > preferences[s][:, None]))[sure].all()
        np.testing.assert_allclose(better + better.T, 1, atol=1e-5)


def test_factors_of_tables_are_the_tables() -> None:
    generator = torch.Generator().manual_seed(3)
    for personal in (True, False):
        tables = FactorTables((4, 5, 3), 2, -1.0, personal=personal, generator=generator)
        with torch.no_grad():
            for each in (tables.a_U, tables.d_V, tables.W_CK):
                each.copy_(torch.randn(each.shape, generator=generator) * (personal or each is not tables.a_U))
        user, block = (torch.from_numpy(index.ravel()) for index in np.indices((4, 3)))
        among = tables.of_items(user, block, torch.arange(5)).detach().numpy()
        np.testing.assert_allclose(tables.factors().logits(user.numpy(), block.numpy()), among, atol=1e-5)
        own = tables.of_item(user, torch.full_like(user, 2), block).detach().numpy()
        np.testing.assert_allclose(own, among[:, 2], atol=1e-5)


@pytest.mark.parametrize(("slope", "exponent"), [(0.7, 0.7), (0.0, 0.0), (-0.4, 0.0)])
def test_the_factors_are_the_line_and_never_fall_with_popularity(slope: float, exponent: float) -> None:
    x_CV = np.random.default_rng(0).normal(size=(3, 5))
    line = PopularityLine(x_CV, -1.5)
    with torch.no_grad():
        line.slope.fill_(slope)
    user, block = (index.ravel() for index in np.indices((4, 3)))
    assert line.exponent == pytest.approx(exponent)
    np.testing.assert_allclose(line.factors(4).logits(user, block), -1.5 + exponent * x_CV[block], atol=1e-5)
    user_B, block_B = (torch.from_numpy(index.astype(np.int64)) for index in (user, block))
    among = line.of_items(user_B, block_B, torch.arange(5)).detach().numpy()
    np.testing.assert_allclose(among, -1.5 + slope * x_CV[block], atol=1e-5)
