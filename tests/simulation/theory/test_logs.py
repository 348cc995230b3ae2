"""Every log, once, with its probability."""

import numpy as np
import pytest

from unveil.simulation.choice import NOTHING
from unveil.simulation.theory.enumeration import all_logs, log_probability


def test_every_log_is_there_once() -> None:
    item_GS = all_logs(3, 2)
    assert item_GS.shape == (27, 3)
    assert len({tuple(log) for log in item_GS.tolist()}) == 27
    assert set(item_GS.ravel().tolist()) == {NOTHING, 0, 1}


def test_probabilities_by_hand() -> None:
    p_SV1 = np.array([[0.1, 0.2, 0.7], [0.5, 0.0, 0.5]])
    item_GS = all_logs(2, 2)
    p_G = log_probability(item_GS, p_SV1)
    assert p_G.sum() == pytest.approx(1)
    by_log = {tuple(log): p for log, p in zip(item_GS.tolist(), p_G.tolist(), strict=True)}
    assert by_log[0, 0] == pytest.approx(0.05)
    assert by_log[1, NOTHING] == pytest.approx(0.1)
    assert by_log[NOTHING, NOTHING] == pytest.approx(0.35)
