"""What users ever chose: factors by brute force, the signal by hand, where sets are right and counts not."""

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize

from tests.audit.small import log_of
from tests.data.ragged import any_sequences, sequences_of
from tests.estimators.toys import Toy, random_world
from unveil.data.interactions import Sequences
from unveil.data.slots import Slots
from unveil.errors import UnveilError
from unveil.estimators import wmf
from unveil.estimators.base import Signal, build, cloze_risk, events
from unveil.estimators.inverse import weight_diagnostics
from unveil.estimators.naive import Naive
from unveil.estimators.wmf import InteractionSets, WMFDistilled, WMFDistilledRated, interacted, item_ratings, solve

V = 5
SMALL = {"width": 2, "penalty": 0.5}


def fitted(train: Sequences, **options: float) -> WMFDistilled:
    made = build("wmf-distilled", {**SMALL, **options}, train=train)
    assert isinstance(made, WMFDistilled)
    return made


def imputed(signal: Signal) -> NDArray[np.float32]:
    assert signal.imputed_MV is not None
    return signal.imputed_MV[:].numpy()


def test_a_set_by_hand() -> None:
    # One factor, b = (1, 2), the first taken: (c (1 + 4) + (1 − c) 1 + λ) a = 1 with c = 0.1 and λ = 0.6.
    one = interacted(sequences_of([[0, 0, 0]], 2))
    assert one.toarray().tolist() == [[1.0, 0.0]], "however often"
    assert solve(one, np.array([[1.0], [2.0]]), 0.1, 0.6).item() == pytest.approx(1 / (0.5 + 0.9 + 0.6))


@given(any_sequences(V), st.floats(0.01, 1.0), st.integers(0, 9))
@settings(max_examples=30)
def test_a_side_is_weighted_ridge_user_by_user(train: Sequences, unseen: float, seed: int) -> None:
    b_VK = np.random.default_rng(seed).standard_normal((V, 3))
    found_UK = solve(interacted(train), b_VK, unseen, 0.7)
    for user in range(train.n_users):
        took_V = np.isin(np.arange(V), train.history(user)).astype(float)
        root_V = np.sqrt(np.where(took_V > 0, 1.0, unseen))
        left = np.vstack([root_V[:, None] * b_VK, np.sqrt(0.7) * np.eye(3)])
        expected_K = np.linalg.lstsq(left, np.concatenate([root_V * took_V, np.zeros(3)]), rcond=None)[0]
        np.testing.assert_allclose(found_UK[user], expected_K, atol=1e-8)


def test_some_users_at_a_time_or_all(monkeypatch: pytest.MonkeyPatch) -> None:
    train, b_VK = sequences_of([[0, 1], [2], [], [3, 3, 4]], V), np.arange(10.0).reshape(V, 2)
    whole = solve(interacted(train), b_VK, 0.1, 1.0)
    monkeypatch.setattr(wmf, "_NUMBERS", 4)
    np.testing.assert_allclose(solve(interacted(train), b_VK, 0.1, 1.0), whole)


def test_the_signal_by_hand() -> None:
    estimator = fitted(sequences_of([[0, 1], [2]], 3), temperature=0.5, trust=0.75)
    factors = InteractionSets(torch.tensor([[1.0], [0.0]]), torch.tensor([[0.5], [0.0], [-0.5]]))
    object.__setattr__(estimator, "sets", factors)
    signal = estimator(Slots(torch.tensor([0, 1]), torch.tensor([1, 2]), torch.tensor([0, 0])))
    share_V = np.exp([1.0, 0.0, -1.0]) / np.exp([1.0, 0.0, -1.0]).sum()
    np.testing.assert_allclose(imputed(signal), 0.75 * np.stack([share_V, np.full(3, 1 / 3)]), rtol=1e-6)
    assert signal.target_M.tolist() == [1, 2]
    assert signal.weight_M.tolist() == [0.25, 0.25]


@given(any_sequences(V), st.integers(0, 9))
@settings(max_examples=20)
def test_without_trust_it_is_naive(train: Sequences, seed: int) -> None:
    f_MV = torch.randn(len(train), V, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    parts = f_MV, torch.eye(V, dtype=torch.float64), torch.zeros(V, dtype=torch.float64)
    mine, naive = fitted(train, trust=0.0)(events(train)), Naive()(events(train))
    assert float(cloze_risk(*parts, mine)) == pytest.approx(float(cloze_risk(*parts, naive)))


@given(any_sequences(V), st.floats(0.0, 1.0))
@settings(max_examples=20)
def test_every_slot_asks_for_one_item_in_all(train: Sequences, trust: float) -> None:
    signal = fitted(train, trust=trust)(events(train))
    np.testing.assert_allclose(imputed(signal).sum(1) + signal.weight_M.numpy(), 1, atol=1e-5)


def test_how_often_does_not_matter() -> None:
    once, often = sequences_of([[0, 1], [1, 2]], 3), sequences_of([[0, 0, 0, 1], [1, 2, 2]], 3)
    where = Slots(torch.tensor([0, 1]), torch.tensor([0, 1]), torch.tensor([0, 0]))
    np.testing.assert_allclose(imputed(fitted(once)(where)), imputed(fitted(often)(where)))


def test_right_where_all_that_would_be_taken_is_shown_at_some_time() -> None:
    """Items liked by 9, 7, 5 and 3 of ten users and shown the less the more they are liked: counts turn the order."""
    rng, users, steps = np.random.default_rng(0), 300, 60
    like_UV = rng.random((users, 4)) < np.array([0.9, 0.7, 0.5, 0.3])
    seen_UTV = rng.random((users, steps, 4)) < np.array([0.1, 0.2, 0.4, 0.8])
    lot_UTV = rng.random((users, steps, 4)) * (seen_UTV & like_UV[:, None])
    train = sequences_of([[int(lot_V.argmax()) for lot_V in lot_TV if lot_V.any()] for lot_TV in lot_UTV], 4)
    assert np.argsort(-train.count_V).tolist() == [3, 2, 1, 0], "what naive learns of a user it knows nothing of"
    everybody = Slots(torch.arange(users), torch.zeros(users, dtype=torch.int64), torch.zeros(users, dtype=torch.int64))
    share_UV = imputed(fitted(train, width=4, unseen=0.3, penalty=1.0)(everybody))
    assert np.argsort(-share_UV.mean(0)).tolist() == [0, 1, 2, 3]
    apart = share_UV[:, None, :] - share_UV[:, :, None]
    assert (apart[like_UV[:, None, :] & ~like_UV[:, :, None]] > 0).mean() > 0.99, "liked before not liked"


def of_each_user(train: Sequences, target_NV: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.stack([target_NV[train.user_N == user].mean(0) for user in range(train.n_users)])


def test_the_whole_target_is_right_by_user_where_the_sets_are_what_is_liked() -> None:
    """Everybody took all that they like, item i 2^i times as it is shown: each user's mean target has that in order.

    And so has the mean over users, each counted once, where that of the log's own items has not. Over all slots, in
    which those who take more count more, it need not.
    """
    like_UV = np.random.default_rng(0).random((300, 4)) < np.array([0.9, 0.7, 0.5, 0.3])
    like_UV = like_UV[like_UV.any(1)]
    train = sequences_of([[i for i in range(4) if like_V[i] for _ in range(2**i)] for like_V in like_UV], 4)
    signal = fitted(train, width=4, unseen=0.3, penalty=1.0)(events(train))
    taken_NV = np.eye(4, dtype=np.float32)[signal.target_M]
    target_UV = of_each_user(train, imputed(signal) + signal.weight_M[:, None].numpy() * taken_NV)
    np.testing.assert_allclose(target_UV.sum(1), 1, atol=1e-5)
    for target_V, like_V in zip(target_UV, like_UV, strict=True):
        assert target_V[like_V].min() > target_V[~like_V].max(initial=0)
    assert np.argsort(-target_UV.mean(0)).tolist() == [0, 1, 2, 3]
    assert np.argsort(-of_each_user(train, taken_NV).mean(0)).tolist() != [0, 1, 2, 3]
    assert np.argsort(-train.count_V).tolist() == [3, 2, 1, 0]


def test_the_same_seed_the_same_sets() -> None:
    train = sequences_of([[0, 1], [2, 3], [1, 4]], V)
    one, two, other = (fitted(train, seed=seed).sets.p_UK for seed in (1, 1, 2))
    assert torch.equal(one, two)
    assert not torch.equal(one, other)


@pytest.mark.parametrize(
    "options",
    [{"unseen": 0.0}, {"unseen": 1.1}, {"width": 0}, {"penalty": 0.0}, {"temperature": float("inf")}, {"trust": 1.5}],
)
def test_out_of_range(options: dict[str, float]) -> None:
    with pytest.raises(UnveilError, match="out of range"):
        fitted(sequences_of([[0]], V), **options)


def test_its_weights_are_no_propensitys() -> None:
    train = sequences_of([[0, 1, 1]], V)
    assert weight_diagnostics(fitted(train), events(train)) is None


def test_among_what_a_user_takes_the_order_is_that_of_the_log() -> None:
    """Two groups, each with its own two items, one of them shown and so taken nine times as often."""
    train = sequences_of([[0] + [1] * 9] * 20 + [[2] + [3] * 9] * 20, 4)
    estimator = build("wmf-distilled", {}, train=train)
    signal = estimator(events(train))
    of_a_user = train.user_N == 0
    target_V = imputed(signal)[of_a_user].mean(0)
    np.testing.assert_allclose(
        target_V[0], target_V[1], rtol=1e-3, err_msg="sets know no more than that both are taken"
    )
    target_V += 0.5 * np.bincount(train.item_N[of_a_user], minlength=4) / of_a_user.sum()
    np.testing.assert_allclose(target_V[:2], [0.3, 0.7], atol=0.01)


TOY = Toy.drawn(random_world(users=30))


def test_an_item_by_hand() -> None:
    # One user, ratings 1 and −1 of two items: z = ±1, each with the weight 1 / (1 + 1/3), and 3 behind it.
    found_V = item_ratings(sequences_of([[0, 1]], 3), np.array([4.0, 2.0]))
    np.testing.assert_allclose(found_V, np.array([1.0, -1.0, 0.0]) * 0.75 / 3.75)


@given(any_sequences(5), st.integers(0, 9))
@settings(max_examples=30)
def test_no_shift_or_scale_of_the_ratings_matters(train: Sequences, seed: int) -> None:
    rating_N = np.random.default_rng(seed).standard_normal(len(train))
    np.testing.assert_allclose(item_ratings(train, 7 + 3 * rating_N), item_ratings(train, rating_N), atol=1e-6)


def test_what_few_rated_is_held_back_though_it_is_liked_alike() -> None:
    """A limit: items 0 and 1 are liked alike, by 1.5; half of the users are shown the one, a hundredth the other."""
    rng, found = np.random.default_rng(0), []
    for _ in range(20):
        shown_U2 = rng.random((400, 2)) < [0.5, 0.01]
        takes = [[*rng.integers(2, 22, 20), *np.flatnonzero(shown_2)] for shown_2 in shown_U2]
        item_N = np.concatenate(takes)
        rating_N = rng.standard_normal(len(item_N)) + np.where(item_N < 2, 1.5, 0)
        found.append(item_ratings(sequences_of([[int(each) for each in row] for row in takes], 22), rating_N)[:2])
    np.testing.assert_allclose(np.mean(found, 0), [1.4, 0.7], atol=0.1)


def test_ratings_that_are_all_alike_are_refused() -> None:
    log = replace(TOY.log, rating=np.full(len(TOY.log), 4.0, np.float32))
    with pytest.raises(UnveilError, match=r"ratings that differ, and all are alike: found 4\.0\. Use 'wmf-distilled'"):
        build("wmf-distilled-rated", {}, train=TOY.train, log=log)


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
    np.testing.assert_allclose(item_ratings(train, rating_N), ridge(train, rating_N), atol=1e-3)


def test_free_of_exposure_where_the_taker_does_not_choose_by_liking() -> None:
    """The better an item the more seldom it is shown: counts turn the order, ratings have it."""
    rng, better_V = np.random.default_rng(1), np.array([0.0, 0.5, 1.0, 1.5])
    histories = [rng.choice(4, 30, p=[0.5, 0.3, 0.15, 0.05]).tolist() for _ in range(60)]
    train = sequences_of(histories, 4)
    harsh_U = rng.standard_normal(60)
    rating_N = better_V[train.item_N] + harsh_U[train.user_N] + rng.standard_normal(len(train))
    assert np.argsort(item_ratings(train, rating_N)).tolist() == [0, 1, 2, 3]
    assert np.argsort(train.count_V).tolist() == [3, 2, 1, 0]


def two_tastes(shown_3: tuple[int, ...], apart: float = 0.4, **options: float) -> tuple[WMFDistilledRated, Sequences]:
    """Both assumptions hold: ten users take items 0, 1 and 2, ten 3, 4 and 5, each item as often as it is shown.

    Everybody has seen their three, and took all of them, however well they are liked: the better the later they stand,
    by `apart` each. Raters are harsh or kind.
    """
    histories = [[3 * (user % 2) + i for i in range(3) for _ in range(shown_3[i])] for user in range(20)]
    log, harsh_U = log_of(histories, 6), np.linspace(-1.5, 1.5, 10).repeat(2)
    log = replace(log, rating=(apart * (log.item % 3) + harsh_U[log.user]).astype(np.float32))
    made = build("wmf-distilled-rated", options, train=Sequences.of(log), log=log)
    assert isinstance(made, WMFDistilledRated)
    return made, Sequences.of(log)


def least(made: WMFDistilledRated, train: Sequences) -> NDArray[np.float64]:
    """f_UV of least loss, as the trainer computes it, with an f of its own for every user."""
    slots, U, V = events(train), train.n_users, train.n_items
    h_MU, nothing_V = torch.eye(U, dtype=torch.float64)[slots.user_M], torch.zeros(V, dtype=torch.float64)

    def risk(f: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        f_VU = torch.from_numpy(f.reshape(V, U)).requires_grad_()
        loss = cloze_risk(h_MU, f_VU, nothing_V, made(slots), normaliser=1.0)
        return loss.item(), torch.autograd.grad(loss, f_VU)[0].numpy().ravel()

    found = minimize(risk, np.zeros(V * U), jac=True, method="L-BFGS-B", options={"ftol": 1e-12, "gtol": 1e-6})
    return np.asarray(found.x.reshape(V, U).T)


def in_order(score_UV: NDArray[Any]) -> bool:
    """Whether every user has their own three items first, in the order of liking."""
    best_U3 = np.argsort(-score_UV, axis=1)[:, :3]
    return bool((best_U3 == [[2, 1, 0], [5, 4, 3]] * (len(score_UV) // 2)).all())


@pytest.mark.parametrize(
    ("shown_3", "options", "right"),
    [
        ((1, 1, 1), {}, True),
        ((4, 2, 1), {}, True),
        ((9, 3, 1), {}, True),
        ((9, 3, 1), {"liking": 0.0}, False),
        ((9, 3, 1), {"balance": 0.0}, False),
        ((40, 1, 1), {}, False),
        ((40, 1, 1), {"balance": 1.0}, True),
    ],
)
def test_the_whole_target_where_both_assumptions_hold(
    shown_3: tuple[int, ...], options: dict[str, float], right: bool
) -> None:
    """The less liked is shown more, and yet each user's order is that of liking; not without b or the shift.

    Half the shift is too little where one item is shown 40 times as often as the next; P has the order there too.
    """
    made, train = two_tastes(shown_3, **options)
    assert in_order(least(made, train)) == right
    if made.liking:
        assert in_order(made.preference(torch.arange(20)).numpy())


def test_what_others_like_more_than_sets_differ_goes_before_what_is_taken() -> None:
    """A limit: F is 0.8 apart, and 0.9 b more than that; each user's own items are still in order."""
    made, _ = two_tastes((1, 1, 1), apart=0.9)
    liked_UV = made.preference(torch.arange(20)).numpy()
    assert not in_order(liked_UV)
    assert (np.diff(liked_UV[::2, :3]) > 0).all()
    assert (np.diff(liked_UV[1::2, 3:]) > 0).all()


def test_sets_without_a_pattern_tell_little_of_what_a_user_takes() -> None:
    """A limit: any three of five items are taken by ten users each, and by default F is all but the same for all."""
    histories = [list(three) for three in combinations(range(5), 3)] * 10
    made = build("wmf-distilled", {}, train=sequences_of(histories, 5))
    assert isinstance(made, WMFDistilled)
    score_UV = made.scores(torch.arange(100)).numpy()
    assert np.ptp(score_UV) < 0.01
    assert score_UV.min() > 0.9


def test_liking_is_added_to_what_the_sets_say() -> None:
    plain = build("wmf-distilled", {}, train=TOY.train)
    made = build("wmf-distilled-rated", {"liking": 0.5}, train=TOY.train, log=TOY.log)
    without = build("wmf-distilled-rated", {"liking": 0.0}, train=TOY.train, log=TOY.log)
    assert isinstance(plain, WMFDistilled)
    assert isinstance(made, WMFDistilledRated)
    assert isinstance(without, WMFDistilledRated)
    added_MV = made.scores(TOY.slots.user_M) - plain.scores(TOY.slots.user_M)
    torch.testing.assert_close(added_MV, (0.5 * made.b_V).expand_as(added_MV), atol=1e-6, rtol=0)
    assert made.b_V.std() > 0
    assert torch.equal(without.scores(TOY.slots.user_M), plain.scores(TOY.slots.user_M))


def test_what_is_taken_more_often_than_it_is_liked_is_put_down_to_exposure() -> None:
    made = build("wmf-distilled-rated", {"balance": 0.7}, train=TOY.train, log=TOY.log)
    assert isinstance(made, WMFDistilledRated)
    for item in range(TOY.train.n_items):
        expected = sum(
            length * float(made.preference(torch.tensor([user]))[0, item])
            for user, length in enumerate(TOY.train.length_U.tolist())
        )
        taken = int((TOY.train.item_N == item).sum())
        assert float(made.shift_V[item]) == pytest.approx(0.7 * np.log((taken + 1) / (expected + 1)), abs=1e-4)
    assert made.shift_V.std() > 0


def test_where_all_is_taken_as_often_as_it_is_liked_nothing_is_shifted() -> None:
    """Every user took both items once and rated them alike."""
    train = sequences_of([[0, 1], [1, 0]], 2)
    log = replace(log_of([[0, 1], [1, 0]], 2), rating=np.array([4.0, 4.0, 2.0, 2.0]))
    made = build("wmf-distilled-rated", {"balance": 1.0}, train=train, log=log)
    assert isinstance(made, WMFDistilledRated)
    torch.testing.assert_close(made.shift_V, torch.zeros(2), atol=1e-5, rtol=0)


def test_the_shift_is_in_the_loss_of_the_item_of_the_log_alone() -> None:
    made = build("wmf-distilled-rated", {"balance": 0.7, "trust": 0.4}, train=TOY.train, log=TOY.log)
    assert isinstance(made, WMFDistilledRated)
    slots, rng = TOY.slots.part(0, 7), torch.Generator().manual_seed(0)
    h_MD, table_VD = (torch.randn(n, 3, generator=rng, requires_grad=True) for n in (7, TOY.train.n_items))
    bias_V = torch.randn(TOY.train.n_items, generator=rng, requires_grad=True)
    z_MV = h_MD @ table_VD.T + bias_V
    liked = -(made.preference(slots.user_M) * torch.log_softmax(z_MV, 1)).sum()
    taken = -torch.log_softmax(z_MV + made.shift_V, 1)[torch.arange(7), slots.item_M].sum()
    expected, found = (0.4 * liked + 0.6 * taken) / 7, cloze_risk(h_MD, table_VD, bias_V, made(slots))
    torch.testing.assert_close(found, expected)
    for own, other in zip(
        *(torch.autograd.grad(loss, [h_MD, table_VD, bias_V]) for loss in (found, expected)), strict=True
    ):
        torch.testing.assert_close(own, other, atol=1e-5, rtol=1e-4)


def test_without_balance_nothing_is_shifted() -> None:
    made = build("wmf-distilled-rated", {"balance": 0.0}, train=TOY.train, log=TOY.log)
    assert made(TOY.slots).offset_MV is None


def test_each_event_has_its_own_rating() -> None:
    assert TOY.log.rating is not None
    made = build("wmf-distilled-rated", {}, train=TOY.train, log=TOY.log)
    assert isinstance(made, WMFDistilledRated)
    expected_V = item_ratings(TOY.train, TOY.log.rating[TOY.train.event_N].astype(np.float64))
    np.testing.assert_allclose(made.b_V.numpy(), expected_V, atol=1e-6)


def test_a_log_without_ratings_is_refused() -> None:
    for log in (None, replace(TOY.log, rating=None)):
        with pytest.raises(UnveilError, match="needs a log with ratings, and none is given"):
            build("wmf-distilled-rated", {}, train=TOY.train, log=log)
    assert TOY.log.rating is not None
    some = replace(TOY.log, rating=np.where(np.arange(len(TOY.log)) == TOY.train.event_N[0], np.nan, TOY.log.rating))
    with pytest.raises(UnveilError, match=r"1 training event, first row \d+ of the log: .*are empty.* use 'wmf-"):
        build("wmf-distilled-rated", {}, train=TOY.train, log=some)


@pytest.mark.parametrize("options", [{"liking": -1.0}, {"balance": -0.1}, {"liking": float("inf")}, {"unseen": 0.0}])
def test_options_of_ratings_out_of_range(options: dict[str, float]) -> None:
    with pytest.raises(UnveilError, match="out of range"):
        build("wmf-distilled-rated", options, train=TOY.train, log=TOY.log)
