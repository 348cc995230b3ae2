"""The tests of all items: by hand, against permutations, and on logs whose order is known."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tests.audit.small import drawn, sequences_of
from unveil.audit.motion import expected_means, observed_until, static_rates
from unveil.audit.timing import Floats, false_discovery, first_interactions, positions, tied_share, timing
from unveil.data.interactions import Sequences


def test_places_in_histories() -> None:
    sequences = sequences_of([[0, 1, 2, 3], [1]], 4)
    assert positions(sequences).tolist() == [0.125, 0.375, 0.625, 0.875, 0.5]
    assert tied_share(sequences) == 0


def test_events_of_one_moment_share_their_places() -> None:
    sequences = sequences_of([[0, 1, 2, 3], [1, 2]], 4, [[5, 7, 7, 7], [7, 8]])
    assert positions(sequences, tied=True).tolist() == [0.125, 0.625, 0.625, 0.625, 0.25, 0.75]
    assert tied_share(sequences) == 0.5


def test_the_mean_worked_out_by_hand() -> None:
    found = timing(sequences := sequences_of([[0, 1], [0, 1, 2]], 3), positions(sequences))
    # In a history of two the place is ¼ or ¾: variance 1/16; of three 1/6, 1/2 or 5/6: variance 2/27.
    variance = 1 / 16 + 2 / 27
    assert found.mean_V[0] == pytest.approx((1 / 4 + 1 / 6) / 2)
    assert found.z_V[0] == pytest.approx((-1 / 4 - 1 / 3) / np.sqrt(variance))
    assert found.variance_V[0] == pytest.approx(variance / 4)
    assert not found.tested_V.any()


def permuted_sums(sequences: Sequences, u_N: Floats, item: int, draws: int, seed: int) -> Floats:
    """(Σ φ₁, Σ φ₂) of an item with every history put in random order, again and again."""
    rng = np.random.default_rng(seed)
    sums = np.zeros((draws, 2))
    for start, stop in zip(sequences.offset_U1, sequences.offset_U1[1:], strict=False):
        phi = np.stack([u_N[start:stop] - 0.5, (u_N[start:stop] - 0.5) ** 2], axis=1)
        phi -= phi.mean(0)
        mine = sequences.item_N[start:stop] == item
        order = np.argsort(rng.random((draws, stop - start)), axis=1)
        sums += phi[order][:, mine].sum(1)
    return sums


@pytest.mark.parametrize("tied", [False, True])
def test_means_and_variances_are_those_of_permuted_histories(tied: bool) -> None:
    rng = np.random.default_rng(4)
    # Repeats, ties, histories of one event: all there.
    histories = [rng.integers(0, 4, n).tolist() for n in (1, 2, 3, 5, 8, 8, 9)]
    times = [np.sort(rng.integers(0, 4, len(history))).tolist() for history in histories]
    sequences = sequences_of(histories, 4, times)
    u_N = positions(sequences, tied=tied)
    found = timing(sequences, u_N)
    for item in range(4):
        sums = permuted_sums(sequences, u_N, item, draws=20_000, seed=item)
        assert np.abs(sums.mean(0)).max() < 0.02
        covariance = np.cov(sums.T)
        assert found.variance_V[item] * found.count_V[item] ** 2 == pytest.approx(covariance[0, 0], rel=0.05)
        observed = (found.mean_V[item] - 0.5) * found.count_V[item]
        assert found.z_V[item] == pytest.approx(observed / np.sqrt(covariance[0, 0]), rel=0.05, abs=0.02)


def test_p_values_are_those_of_permutations() -> None:
    rng = np.random.default_rng(0)
    histories = [rng.permutation(12)[:9].tolist() for _ in range(60)]
    sequences = sequences_of(histories, 12)
    u_N = positions(sequences)
    found = timing(sequences, u_N)
    for item in (0, 5, 11):
        sums = permuted_sums(sequences, u_N, item, draws=4000, seed=item)
        inverse = np.linalg.inv(np.cov(sums.T))
        form = np.einsum("rj,jk,rk->r", sums, inverse, sums)
        mine = np.zeros(2)
        centred = np.stack([u_N - 0.5, (u_N - 0.5) ** 2 - ((u_N[:9] - 0.5) ** 2).mean()], axis=1)
        mine = centred[sequences.item_N == item].sum(0)
        brute = (form >= mine @ inverse @ mine).mean()
        assert found.p_V[item] == pytest.approx(brute, abs=0.04)


def test_random_order_is_rarely_rejected_and_a_time_of_its_own_is_found() -> None:
    rng = np.random.default_rng(1)
    shuffled = [rng.permutation(60)[:30].tolist() for _ in range(300)]
    fair = timing(sequences := sequences_of(shuffled, 60), positions(sequences))
    assert fair.dispersion == pytest.approx(1, abs=0.5)
    assert stats.kstest(fair.p_V, "uniform").pvalue > 0.01
    assert fair.typical_shift < 0.02
    early = [sorted(history, key=lambda item: (item != 7, rng.random())) for history in shuffled]
    middle = [
        [*(h := [i for i in history if i != 9])[:14], *([9] if 9 in history else []), *h[14:]] for history in early
    ]
    found = timing(sequences := sequences_of(middle, 60), positions(sequences))
    assert found.z_V[7] < -10
    assert found.p_V[7] < 1e-10
    assert abs(found.z_V[9]) < 4
    assert found.z_spread_V[9] < -5  # always in the middle: the mean alone would miss it
    assert found.p_V[9] < 1e-10


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_the_false_discovery_rate_is_scipys(p: list[float]) -> None:
    assert false_discovery(np.array(p)) == pytest.approx(stats.false_discovery_control(p))


def test_rates_explain_counts_and_lengths() -> None:
    rates = 1 / np.arange(1, 41)
    histories = drawn(2, 500, 40, rates, (5, 30))
    sequences = sequences_of(histories, 40)
    count_V = np.bincount(sequences.item_N, minlength=40)
    found = static_rates(count_V, sequences.length_U)
    time_U = observed_until(found, sequences.length_U)
    taken_UV = -np.expm1(-np.outer(time_U, found))
    assert taken_UV.sum(1) == pytest.approx(sequences.length_U, rel=0.02)
    assert taken_UV.sum(0) == pytest.approx(count_V, rel=0.02)
    assert np.corrcoef(np.log(found), np.log(rates))[0, 1] > 0.98


def test_drawing_without_repeats_is_no_random_order_but_is_explained_by_static_rates() -> None:
    rates = 1 / np.arange(1, 41)
    sequences = sequences_of(drawn(3, 1500, 40, rates, (8, 25)), 40)
    assert len(first_interactions(sequences)) == len(sequences)
    found = timing(sequences, positions(sequences))
    assert found.dispersion > 20  # likely items come first, although nothing changes with time
    assert found.z_V[0] < -10
    expected_V = expected_means(sequences, positions(sequences), 40, np.random.default_rng(0))
    z_V = (found.mean_V - expected_V) / np.sqrt(found.variance_V)
    assert (z_V**2).mean() < 2
    assert len(first_interactions(sequences_of([[1, 2, 1], [1]], 3))) == 3
