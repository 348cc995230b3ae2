"""The curve of calibration, worked by hand."""

import numpy as np
import pytest
from scipy.special import logit

from unveil.data.vocabulary import Vocabulary
from unveil.propensity.impressions import calibrate
from unveil.propensity.impressions.calibrate import IDENTITY, calibrated
from unveil.propensity.impressions.model import ExposureModel
from unveil.propensity.impressions.pairs import Pairs


def promising(*theta: float) -> ExposureModel:
    """θ of each item, whoever and whenever."""
    psi_DV, n = logit(np.array([theta])).astype(np.float32), len(theta)
    P_UK, Q_VK, W_HK = (np.zeros((rows, 1), np.float32) for rows in (1, n, 24))
    users, items = Vocabulary(["u"]), Vocabulary(f"i{nth}" for nth in range(n))
    return ExposureModel(users, items, P_UK, Q_VK, W_HK, psi_DV, np.zeros_like(psi_DV), (0.0, 1.0, 0.0), IDENTITY, 0)


def pairs_of(*rows: tuple[int, bool, float]) -> Pairs:
    """(item, shown or not, how many it stands for)."""
    item_M, shown_M, weight_M = (np.array(column) for column in zip(*rows, strict=True))
    zero_M = np.zeros(len(rows), np.int64)
    return Pairs(zero_M, item_M, zero_M, zero_M, shown_M, 1 / weight_M)


def test_one_bin_by_hand() -> None:
    # 5 pairs are promised ¼ each, 3 pairs ½: 2.75 of 8; 2 were shown, and half of one more is added.
    pairs = pairs_of((0, True, 1), (0, False, 4), (1, True, 1), (1, False, 2))
    found_B2 = calibrated(promising(0.25, 0.5), pairs).curve_B2
    np.testing.assert_allclose(found_B2, [[logit(2.75 / 8), logit(2.5 / 9)]], rtol=1e-5)


@pytest.mark.parametrize(
    ("shown", "rate"),
    [
        (1, [1.5 / 6, 1.5 / 4]),
        (3, [(3.5 / 6 * 5 + 1.5 / 4 * 3) / 8] * 2),  # the first would hold more than the second: they are pooled
    ],
)
def test_two_bins_by_hand(monkeypatch: pytest.MonkeyPatch, shown: int, rate: list[float]) -> None:
    monkeypatch.setattr(calibrate, "EACH", 1)
    monkeypatch.setattr(calibrate, "MOST", 2)
    pairs = pairs_of(*[(0, True, 1.0)] * shown, (0, False, 5.0 - shown), (1, True, 1), (1, False, 2))
    found_B2 = calibrated(promising(0.25, 0.5), pairs).curve_B2
    np.testing.assert_allclose(found_B2, np.stack([logit([0.25, 0.5]), logit(rate)], 1), atol=1e-6)
