"""How well items are liked by those who took them: by hand, by least squares, and where counts turn the order."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.data.ragged import any_sequences, sequences_of
from tests.estimators.toys import Toy, random_world
from unveil.data.sequences import Sequences
from unveil.errors import UnveilError
from unveil.estimators.build import build
from unveil.estimators.ever import Ever
from unveil.estimators.ever_rated import EverRated
from unveil.estimators.item_liking import item_liking

TOY = Toy.drawn(random_world(users=30))


def test_an_item_by_hand() -> None:
    # One user, ratings 1 and −1 of two items: z = ±1, each with the weight 1 / (1 + 1/3), and 3 behind it.
    found_V = item_liking(sequences_of([[0, 1]], 3), np.array([4.0, 2.0]))
    np.testing.assert_allclose(found_V, np.array([1.0, -1.0, 0.0]) * 0.75 / 3.75)


@given(any_sequences(5), st.integers(0, 9))
@settings(max_examples=30)
def test_no_shift_or_scale_of_the_ratings_matters(train: Sequences, seed: int) -> None:
    rating_N = np.random.default_rng(seed).standard_normal(len(train))
    np.testing.assert_allclose(item_liking(train, 7 + 3 * rating_N), item_liking(train, rating_N), atol=1e-6)


def ridge(train: Sequences, rating_N: NDArray[np.float64]) -> NDArray[np.float64]:
    """The users' and items' shares of the pairs' means, all at once: Σ w (z − a − b)² + 3 Σ a² + 3 Σ b² least."""
    z_N, V = (rating_N - rating_N.mean()) / rating_N.std(), train.n_items
    pairs = sorted(set(zip(train.user_N.tolist(), train.item_N.tolist(), strict=True)))
    rows, values = [], []
    for user, item in pairs:
        own_N = (train.user_N == user) & (train.item_N == item)
        root = np.sqrt(own_N.sum() / (1 + own_N.sum() / 3))
        rows.append(root * (np.eye(train.n_users + V)[user] + np.eye(train.n_users + V)[train.n_users + item]))
        values.append(root * z_N[own_N].mean())
    left = np.vstack([*rows, np.sqrt(3) * np.eye(train.n_users + V)])
    both = np.linalg.lstsq(left, np.array(values + [0.0] * (train.n_users + V)), rcond=None)[0]
    return np.asarray(both[train.n_users :])


def test_as_least_squares_has_it() -> None:
    rng = np.random.default_rng(0)
    train = sequences_of([rng.integers(0, 6, 8).tolist() for _ in range(10)], 6)
    rating_N = rng.standard_normal(len(train))
    np.testing.assert_allclose(item_liking(train, rating_N), ridge(train, rating_N), atol=1e-3)


def test_free_of_exposure_where_the_taker_does_not_choose_by_liking() -> None:
    """The better an item the more seldom it is shown: counts turn the order, ratings have it."""
    rng, better_V = np.random.default_rng(1), np.array([0.0, 0.5, 1.0, 1.5])
    histories = [rng.choice(4, 30, p=[0.5, 0.3, 0.15, 0.05]).tolist() for _ in range(60)]
    train = sequences_of(histories, 4)
    harsh_U = rng.standard_normal(60)
    rating_N = better_V[train.item_N] + harsh_U[train.user_N] + rng.standard_normal(len(train))
    assert np.argsort(item_liking(train, rating_N)).tolist() == [0, 1, 2, 3]
    assert np.argsort(train.count_V).tolist() == [3, 2, 1, 0]


def test_liking_is_added_to_what_the_sets_say() -> None:
    plain = build("ever", {}, train=TOY.train)
    made = build("ever-rated", {"liking": 0.5}, train=TOY.train, log=TOY.log)
    without = build("ever-rated", {"liking": 0.0}, train=TOY.train, log=TOY.log)
    assert isinstance(plain, Ever)
    assert isinstance(made, EverRated)
    assert isinstance(without, EverRated)
    added_MV = made.scores(TOY.slots) - plain.scores(TOY.slots)
    torch.testing.assert_close(added_MV, (0.5 * made.b_V).expand_as(added_MV), atol=1e-6, rtol=0)
    assert made.b_V.std() > 0
    assert torch.equal(without.scores(TOY.slots), plain.scores(TOY.slots))


def test_each_event_has_its_own_rating() -> None:
    assert TOY.log.rating is not None
    made = build("ever-rated", {}, train=TOY.train, log=TOY.log)
    assert isinstance(made, EverRated)
    expected_V = item_liking(TOY.train, TOY.log.rating[TOY.train.event_N].astype(np.float64))
    np.testing.assert_allclose(made.b_V.numpy(), expected_V, atol=1e-6)


def test_a_log_without_ratings_is_refused() -> None:
    for log in (None, replace(TOY.log, rating=None)):
        with pytest.raises(UnveilError, match="needs a log with ratings, and none is given"):
            build("ever-rated", {}, train=TOY.train, log=log)
    assert TOY.log.rating is not None
    some = replace(TOY.log, rating=np.where(np.arange(len(TOY.log)) == TOY.train.event_N[0], np.nan, TOY.log.rating))
    with pytest.raises(UnveilError, match="some are empty"):
        build("ever-rated", {}, train=TOY.train, log=some)


@pytest.mark.parametrize("options", [{"liking": -1.0}, {"liking": float("inf")}, {"unseen": 0.0}])
def test_out_of_range(options: dict[str, float]) -> None:
    with pytest.raises(UnveilError, match="out of range"):
        build("ever-rated", options, train=TOY.train, log=TOY.log)
