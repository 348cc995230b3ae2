"""Exposure learnt from impressions: better than popularity, calibrated, and no more than the days it was shown."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.special import expit

from tests.propensity.seen import DAY, DAYS, ITEMS, USERS, exposure, impressions
from unveil.data.interactions import Interactions
from unveil.errors import UnveilError
from unveil.propensity import time_of_day
from unveil.propensity.impression_pairs import Impressions, Pairs, quality_of, with_negatives
from unveil.propensity.time_of_day import UNKNOWN
from unveil.propensity.time_of_day_fit import (
    IDENTITY,
    ExposureFit,
    ExposureNet,
    FittedExposure,
    Learning,
    _epoch,
    calibrate,
    fit,
)

HOW = ExposureFit(2, 2, learning=Learning(width=2, epochs=12, batch=256, lr=0.03, penalty=0.1), judged_negatives=20)


@pytest.fixture(scope="module")
def fitted() -> FittedExposure:
    return fit(impressions(), HOW)


def test_it_beats_popularity_where_users_are_shown_different_things(fitted: FittedExposure) -> None:
    quality = fitted.quality
    assert quality["learnt"].log_loss < quality["shown, static"].log_loss - 0.1
    assert quality["learnt"].auc > quality["shown, static"].auc + 0.05
    assert quality["shown, static"].log_loss < quality["uniform"].log_loss


def test_it_is_a_probability_of_every_item_and_not_of_drawn_ones(fitted: FittedExposure) -> None:
    user_M = np.repeat(np.arange(USERS), ITEMS)
    item_M = np.tile(np.arange(ITEMS), USERS)
    theta_UV = fitted.model.theta(user_M, item_M, np.full(len(user_M), 7), np.full(len(user_M), 12))
    theta_UV = theta_UV.reshape(USERS, ITEMS)
    np.testing.assert_allclose(theta_UV.sum(1), 1, atol=0.25)
    assert theta_UV.sum(1).mean() == pytest.approx(1, abs=0.05)
    assert np.corrcoef(np.log(theta_UV.ravel()), np.log(exposure().ravel()))[0, 1] > 0.9
    assert fitted.quality["learnt"].mass == pytest.approx(1, abs=0.05)
    assert fitted.quality["learnt"].ece < 0.15


def test_the_truth_itself_is_calibrated_by_the_same_judge() -> None:
    shown = Impressions.of(impressions(each=40))
    pairs = with_negatives(shown, 20, np.full(ITEMS, 1 / ITEMS), np.random.default_rng(0))
    quality = quality_of(exposure()[pairs.user_M, pairs.item_M], pairs)
    assert quality.mass == pytest.approx(1, abs=0.02)
    assert quality.ece < 0.05


def test_whether_it_was_taken_plays_no_part(fitted: FittedExposure) -> None:
    log = impressions()
    assert log.clicked is not None
    other = fit(replace(log, clicked=~log.clicked), HOW)
    np.testing.assert_array_equal(other.model.P_UK, fitted.model.P_UK)
    assert other.quality["taken, static"] != fitted.quality["taken, static"]


def test_the_same_seed_gives_the_same_model(fitted: FittedExposure) -> None:
    np.testing.assert_array_equal(fit(impressions(), HOW).model.Q_VK, fitted.model.Q_VK)
    assert (fit(impressions(), replace(HOW, seed=1)).model.Q_VK != fitted.model.Q_VK).any()


def test_the_test_days_decide_nothing(fitted: FittedExposure) -> None:
    log = impressions()
    assert log.time is not None
    late = (log.time // DAY - 19_000) >= DAYS - 2
    other = fit(replace(log, item=np.where(late, ITEMS - 1 - log.item, log.item).astype(np.int32)), HOW)
    np.testing.assert_array_equal(other.model.P_UK, fitted.model.P_UK)
    np.testing.assert_array_equal(other.model.curve_B2, fitted.model.curve_B2)
    assert other.quality["learnt"].log_loss > fitted.quality["learnt"].log_loss


def test_strangers_get_what_popularity_gives(fitted: FittedExposure) -> None:
    model = fitted.model
    places = np.arange(ITEMS), np.full(ITEMS, 7), np.full(ITEMS, 3)
    stranger_V = model.theta(np.full(ITEMS, UNKNOWN), *places)
    psi_V = replace(model, curve_B2=IDENTITY).popularity(*places[:2])
    assert (np.argsort(stranger_V, kind="stable") == np.argsort(psi_V, kind="stable")).all()
    plain_V = replace(model, curve_B2=IDENTITY).theta(np.full(ITEMS, UNKNOWN), *places)
    np.testing.assert_allclose(plain_V, 1 / (1 + np.exp(-psi_V)), rtol=1e-5)
    unseen = model.theta(np.array([0]), np.array([UNKNOWN]), np.array([7]), np.array([3]))
    assert 0 < unseen[0] <= stranger_V.max()
    assert (model.theta(np.array([UNKNOWN]), np.array([0]), np.array([99]), np.array([3])) > 0).all()


def test_of_all_items_is_of_each(fitted: FittedExposure) -> None:
    user_M, day_M, hour_M = np.array([3, UNKNOWN, 8]), np.array([1, 7, 7]), np.array([0, 5, 23])
    theta_MV = fitted.model.theta_of_all(user_M, day_M, hour_M)
    assert theta_MV.shape == (3, ITEMS + 1)
    for item in (*range(ITEMS), UNKNOWN):
        each = fitted.model.theta(user_M, np.full(3, item), day_M, hour_M)
        np.testing.assert_allclose(theta_MV[:, item], each, rtol=1e-5)


def test_calibration_mends_what_was_bent(fitted: FittedExposure) -> None:
    pairs = with_negatives(Impressions.of(impressions()), 20, np.full(ITEMS, 1 / ITEMS), np.random.default_rng(3))
    centre, slope, other = fitted.model.line
    bent = replace(fitted.model, line=(centre + 2.0, slope, other))
    straight, mended = (
        calibrate(model, pairs).theta(pairs.user_M, pairs.item_M, pairs.day_M, pairs.hour_M)
        for model in (fitted.model, bent)
    )
    assert quality_of(mended, pairs).mass == pytest.approx(1, abs=0.02)
    assert quality_of(mended, pairs).ece == pytest.approx(quality_of(straight, pairs).ece, abs=0.03)


def test_the_curve_never_falls_and_goes_on_beyond_its_ends(fitted: FittedExposure) -> None:
    at_B, to_B = fitted.model.curve_B2.T
    assert (np.diff(at_B) > 0).all()
    assert (np.diff(to_B) >= 0).all()
    bent = replace(fitted.model, curve_B2=np.array([[-1.0, -2.0], [1.0, 4.0]], np.float32))
    theta = bent._probability(np.array([-3.0, -1.0, 0.0, 1.0, 2.0]))
    np.testing.assert_allclose(theta, expit([-4.0, -2.0, 1.0, 4.0, 5.0]), rtol=1e-6)


def test_it_comes_back_as_it_was(fitted: FittedExposure, tmp_path: Path) -> None:
    time_of_day.write(fitted.model, tmp_path, {"note": "mine"})
    back = time_of_day.load(tmp_path)
    places = np.arange(10), np.arange(10), np.full(10, 5), np.arange(10)
    np.testing.assert_array_equal(back.theta(*places), fitted.model.theta(*places))
    assert time_of_day.about(tmp_path)["note"] == "mine"
    (tmp_path / time_of_day.IDS).write_text('{"users": [], "items": []}')
    with pytest.raises(UnveilError, match="changed or damaged"):
        time_of_day.load(tmp_path)
    with pytest.raises(UnveilError, match="not a learnt exposure"):
        time_of_day.load(tmp_path / "elsewhere")


def test_logs_that_tell_nothing_of_exposure_are_refused() -> None:
    log = impressions()
    with pytest.raises(UnveilError, match="no impressions"):
        fit(replace(log, clicked=None), HOW)
    with pytest.raises(UnveilError, match="no times"):
        fit(replace(log, time=None), HOW)
    with pytest.raises(UnveilError, match="too few days"):
        fit(log, replace(HOW, test_days=7))
    with pytest.raises(UnveilError, match="above 0"):
        replace(HOW, half_life=0.0)
    for wrong in ({"lr": -1.0}, {"lr": 0.0}, {"lr": float("nan")}, {"penalty": -1.0}):
        with pytest.raises(UnveilError, match=f"{next(iter(wrong))}: out of range"):
            Learning(**wrong)  # type: ignore[arg-type]


@pytest.mark.slow
def test_real_impressions_are_personal_and_promises_are_kept(shared_data: Path) -> None:
    log = Interactions.read(shared_data / "kuairand-pure" / "log_standard_4_25_to_5_08_pure.csv.gz")
    quality = fit(log, ExposureFit(learning=Learning(epochs=9))).quality
    rivals = [each for name, each in quality.items() if name not in ("learnt", "uniform")]
    assert quality["learnt"].log_loss < min(each.log_loss for each in rivals) - 0.2
    assert quality["learnt"].auc > max(each.auc for each in rivals) + 0.02
    assert quality["learnt"].ece < 0.15
    assert quality["learnt"].mass == pytest.approx(1, abs=0.05)


def test_a_logit_by_hand() -> None:
    """centre + slope · recent + slope' · steady + Σ_k P_k Q_k W_hk, each hour with a factor of its own."""
    net = ExposureNet(1, 2, (np.array([[-1.0, -2.0]]), np.array([[-3.0, -4.0]])), 2, seed=0)
    with torch.no_grad():
        net.line.copy_(torch.tensor([0.5, 2.0, 0.1]))
        net.P.copy_(torch.tensor([[2.0, 3.0]]))
        net.Q.copy_(torch.tensor([[7.0, 7.0], [1.0, 0.5]]))
        net.W[5] = torch.tensor([1.0, 10.0])
    zero_B, item_B, hour_B = np.array([0, 0]), np.array([1, 1]), np.array([4, 5])
    psi_B = net(Pairs(zero_B, item_B, zero_B, hour_B, item_B > 0, np.ones(2)))
    shared = 0.5 - 4.0 - 0.4
    assert psi_B.tolist() == pytest.approx([shared + 2 + 1.5, shared + 2 + 15])


@pytest.mark.parametrize("penalty", [0.0, 30.0])
def test_the_batches_of_an_epoch_have_the_penalty_once_between_them(penalty: float) -> None:
    """(penalty / 2) · (‖Q‖² + ‖W − 1‖² + ‖P‖²) beside the loss of all pairs; with P = 0 these say nothing of Q or W."""
    shown, how = Impressions.of(impressions(each=1)), Learning(width=2, batch=135, penalty=penalty)
    shares = np.zeros((shown.n_days, ITEMS))
    net = ExposureNet(USERS, ITEMS, (shares, shares), 2, seed=0)
    with torch.no_grad():
        net.W.add_(torch.randn(net.W.shape, generator=torch.Generator().manual_seed(0)))
    still = torch.optim.Adam(net.parameters(), lr=0.0)  # each batch finds the weights as they were
    _epoch(net, still, np.full(ITEMS, 1 / ITEMS), shown, how, np.random.default_rng(0))
    assert len(shown) == 4 * 135
    for table, rest in ((net.Q, 0.0), (net.W, 1.0)):
        assert table.grad is not None
        torch.testing.assert_close(4 * 135 * table.grad, penalty * (table.detach() - rest))
    assert net.P.grad is not None
    assert net.P.grad.any()
