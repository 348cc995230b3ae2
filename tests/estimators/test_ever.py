"""What users ever took: the factors by brute force, the signal by hand, and where sets are right and counts are not."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.data.ragged import any_sequences, sequences_of
from unveil.data.sequences import Sequences
from unveil.data.slots import Slots
from unveil.errors import UnveilError
from unveil.estimators.base import Signal, cloze_risk
from unveil.estimators.build import build
from unveil.estimators.diagnosis import weight_diagnostics
from unveil.estimators.ever import Ever
from unveil.estimators.learning import events
from unveil.estimators.learnt import taken_sets
from unveil.estimators.learnt.taken_sets import TakenSets, solved, taken
from unveil.estimators.naive import Naive

V = 5
SMALL = {"width": 2, "penalty": 0.5}


def fitted(train: Sequences, **options: float) -> Ever:
    made = build("ever", {**SMALL, **options}, train=train)
    assert isinstance(made, Ever)
    return made


def imputed(signal: Signal) -> NDArray[np.float32]:
    assert signal.imputed_MV is not None
    return signal.imputed_MV[:].numpy()


def test_a_set_by_hand() -> None:
    # One factor, b = (1, 2), the first taken: (c (1 + 4) + (1 − c) 1 + λ) a = 1 with c = 0.1 and λ = 0.6.
    one = taken(sequences_of([[0, 0, 0]], 2))
    assert one.toarray().tolist() == [[1.0, 0.0]], "however often"
    assert solved(one, np.array([[1.0], [2.0]]), 0.1, 0.6).item() == pytest.approx(1 / (0.5 + 0.9 + 0.6))


@given(any_sequences(V), st.floats(0.01, 1.0), st.integers(0, 9))
@settings(max_examples=30)
def test_a_side_is_weighted_ridge_user_by_user(train: Sequences, unseen: float, seed: int) -> None:
    b_VK = np.random.default_rng(seed).standard_normal((V, 3))
    found_UK = solved(taken(train), b_VK, unseen, 0.7)
    for user in range(train.n_users):
        took_V = np.isin(np.arange(V), train.history(user)).astype(float)
        root_V = np.sqrt(np.where(took_V > 0, 1.0, unseen))
        left = np.vstack([root_V[:, None] * b_VK, np.sqrt(0.7) * np.eye(3)])
        expected_K = np.linalg.lstsq(left, np.concatenate([root_V * took_V, np.zeros(3)]), rcond=None)[0]
        np.testing.assert_allclose(found_UK[user], expected_K, atol=1e-8)


def test_some_users_at_a_time_or_all(monkeypatch: pytest.MonkeyPatch) -> None:
    train, b_VK = sequences_of([[0, 1], [2], [], [3, 3, 4]], V), np.arange(10.0).reshape(V, 2)
    whole = solved(taken(train), b_VK, 0.1, 1.0)
    monkeypatch.setattr(taken_sets, "_NUMBERS", 4)
    np.testing.assert_allclose(solved(taken(train), b_VK, 0.1, 1.0), whole)


def test_the_signal_by_hand() -> None:
    estimator = fitted(sequences_of([[0, 1], [2]], 3), temperature=0.5, trust=0.75)
    object.__setattr__(estimator, "sets", TakenSets(torch.tensor([[1.0], [0.0]]), torch.tensor([[0.5], [0.0], [-0.5]])))
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
    estimator = build("ever", {}, train=train)
    signal = estimator(events(train))
    of_a_user = train.user_N == 0
    target_V = imputed(signal)[of_a_user].mean(0)
    np.testing.assert_allclose(
        target_V[0], target_V[1], rtol=1e-3, err_msg="sets know no more than that both are taken"
    )
    target_V += 0.5 * np.bincount(train.item_N[of_a_user], minlength=4) / of_a_user.sum()
    np.testing.assert_allclose(target_V[:2], [0.3, 0.7], atol=0.01)
