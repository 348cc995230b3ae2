"""The form of the authors' code has the loss that ours has, and the benchmark tells how the two compare."""

import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
import torch

from benchmarks.paper import CONFIG, EXPONENT, form_loss, form_rows, form_theta
from tests.data.ragged import sequences_of
from unveil.data.slots import Slots
from unveil.estimators.base import cloze_risk
from unveil.estimators.inverse import ITPS
from unveil.propensity.popularity import TemporalPopularity

ROOT = Path(__file__).parents[2]
TRAIN = sequences_of([[0, 1, 2, 1], [2, 2], [3, 0, 1]], 5)


def test_its_loss_is_the_risk_of_itps() -> None:
    generator = torch.Generator().manual_seed(0)
    user_N, item_N, step_N = (torch.from_numpy(part).long() for part in (TRAIN.user_N, TRAIN.item_N, TRAIN.step_N))
    asked_N = torch.arange(len(item_N)) % 3 != 0
    h_ND, table_VD = torch.randn(len(item_N), 4, generator=generator), torch.randn(6, 4, generator=generator)
    label_N = torch.where(asked_N, item_N + 1, 0)
    theta_N = form_theta(TRAIN)[label_N, step_N]
    found = form_loss(h_ND @ table_VD.T, label_N, theta_N)
    slots = Slots(user_N[asked_N], item_N[asked_N], step_N[asked_N])
    signal = ITPS(TemporalPopularity().fit(TRAIN), exponent=EXPONENT)(slots)
    # Ours has no item for padding; it is the one of the table's first row here.
    signal = type(signal)(signal.target_M + 1, signal.weight_M)
    assert found.item() == pytest.approx(cloze_risk(h_ND[asked_N], table_VD, torch.zeros(6), signal).item(), rel=1e-5)


def test_its_rows_are_padded_on_the_left_and_know_their_steps() -> None:
    token, label, step = next(form_rows(TRAIN, Random(0)))
    assert token.shape == label.shape == step.shape == (3, CONFIG.length)
    for row in range(3):
        length = int((token[row] > 0).sum())
        user = next(u for u in range(3) if TRAIN.length_U[u] == length)
        hidden = label[row, -length:] > 0
        assert torch.equal(token[row, -length:] == TRAIN.n_items + 1, hidden)
        met = torch.where(hidden, label[row, -length:], token[row, -length:]) - 1
        assert met.tolist() == TRAIN.history(user).tolist()
        start = int(TRAIN.offset_U1[user])
        assert step[row, -length:].tolist() == TRAIN.step_N[start : start + length].tolist()
        assert not token[row, :-length].any()


def test_the_two_take_turns(tmp_path: Path) -> None:
    events = [f"{user} {(user * 7 + nth * nth) % 11 + 1}" for user in range(1, 21) for nth in range(6)]
    (tmp_path / "log.txt").write_text("\n".join(events) + "\n")
    command = [sys.executable, "-m", "benchmarks.paper", str(tmp_path / "log.txt"), "--turns=2", "--batches=2"]
    lines = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True).stdout.splitlines()
    assert [line.split(":")[0] for line in lines[:-1]] == ["turn 1", "turn 2"]
    figures = dict(figure.split("=") for figure in lines[-1].split())
    assert list(figures) == ["itps_vs_form", "epoch_seconds", "form_epoch_seconds"]
    assert all(float(value) >= 0 for value in figures.values())
