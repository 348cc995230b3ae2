"""An interrupted run, gone on with, is the run that was never interrupted: bit for bit."""

import json
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.training.cyclic import MODEL, TRAINING, Trained, train
from unveil.errors import UnveilError, UnveilWarning
from unveil.files import machine, versions
from unveil.training.checkpoint import Best, Checkpoint, Epoch
from unveil.training.progress import Silent
from unveil.training.recipe import TrainerConfig
from unveil.training.trainer import Keep, Stopped, fitted_in

ROOT = Path(__file__).parents[2]
BATCHES = 4


class Interrupt(Silent):
    """Presses Ctrl-C at a given batch of the run."""

    def __init__(self, at: int) -> None:
        self.left = at

    def batch(self, loss: float) -> None:
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> tuple[Trained, Path]:
    folder = tmp_path_factory.mktemp("unbroken")
    return train(keep=Keep(folder)), folder


def metrics(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "training.jsonl").read_text().splitlines()
    return [{name: value for name, value in json.loads(line).items() if name != "seconds"} for line in lines]


def without_seconds(state: dict[str, Any]) -> dict[str, Any]:
    return {**state, "epochs": [{**epoch, "seconds": 0} for epoch in state["epochs"]]}


def assert_same_run(folder: Path, other: Path) -> None:
    assert metrics(folder) == metrics(other)
    one, two = (Checkpoint.load(path / "checkpoint.safetensors") for path in (folder, other))
    assert without_seconds(dict(one.state)) == without_seconds(dict(two.state))
    assert one.tensors.keys() == two.tensors.keys()
    assert {name.split("/")[0] for name in one.tensors} == {"model", "best", "optimiser"}
    for name, tensor in one.tensors.items():
        assert torch.equal(tensor, two.tensors[name]), name


@pytest.mark.parametrize("batch", [1, BATCHES, BATCHES + 1, 2 * BATCHES + 2, 5 * BATCHES])
def test_a_run_stopped_at_any_batch_goes_on_exactly(batch: int, tmp_path: Path, unbroken: tuple[Trained, Path]) -> None:
    with pytest.raises(Stopped) as stopped:
        train(keep=Keep(tmp_path), watch=Interrupt(batch))
    assert stopped.value.epochs_kept == (batch - 1) // BATCHES
    assert stopped.value.folder == tmp_path
    resumed = train(keep=Keep(tmp_path, resume=True))
    whole, folder = unbroken
    assert_same_run(tmp_path, folder)
    assert resumed.fitted.best == whole.fitted.best
    for name, tensor in whole.model.state_dict().items():
        assert torch.equal(tensor, resumed.model.state_dict()[name]), name


def test_the_average_of_the_weights_is_gone_on_with_exactly(tmp_path: Path, unbroken: tuple[Trained, Path]) -> None:
    config = replace(TRAINING, average=0.9)
    whole = train(config, keep=Keep(tmp_path / "whole"))
    with pytest.raises(Stopped):
        train(config, keep=Keep(tmp_path / "resumed"), watch=Interrupt(2 * BATCHES + 2))
    resumed = train(config, keep=Keep(tmp_path / "resumed", resume=True))
    assert metrics(tmp_path / "whole") == metrics(tmp_path / "resumed") != metrics(unbroken[1])
    for name, tensor in whole.model.state_dict().items():
        assert torch.equal(tensor, resumed.model.state_dict()[name]), name


def test_a_second_unbroken_run_is_the_same_and_another_seed_is_not(
    tmp_path: Path, unbroken: tuple[Trained, Path]
) -> None:
    train(keep=Keep(tmp_path / "again"))
    assert_same_run(tmp_path / "again", unbroken[1])
    train(replace(TRAINING, seed=7), keep=Keep(tmp_path / "other"))
    assert metrics(tmp_path / "other")[0]["loss"] != metrics(unbroken[1])[0]["loss"]


def paused_run(folder: Path, batch: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.training.cyclic", str(folder), str(batch)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_process_killed_in_the_middle_of_an_epoch_goes_on_exactly(
    how: signal.Signals, tmp_path: Path, unbroken: tuple[Trained, Path]
) -> None:
    with paused_run(tmp_path, batch=2 * BATCHES + 2) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "paused\n"
        process.send_signal(how)
        rest = process.stdout.read()
    if how == signal.SIGINT:
        assert process.returncode == 130
        assert "2 epochs are kept" in rest
    else:
        assert process.returncode == -signal.SIGKILL
    assert len(Checkpoint.load(tmp_path / "checkpoint.safetensors").state["epochs"]) == 2
    train(keep=Keep(tmp_path, resume=True))
    assert_same_run(tmp_path, unbroken[1])


def test_lines_after_the_checkpoint_and_half_lines_and_drafts_go(
    tmp_path: Path, unbroken: tuple[Trained, Path]
) -> None:
    with pytest.raises(Stopped):
        train(keep=Keep(tmp_path), watch=Interrupt(2 * BATCHES + 1))
    with (tmp_path / "training.jsonl").open("a") as file:
        file.write('{"epoch": 3, "loss": 1.0}\n{"epoch": 4, "lo')
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    (tmp_path / f".checkpoint.safetensors.{machine()}-{dead.pid}-abc.part").write_bytes(b"half")
    train(keep=Keep(tmp_path, resume=True))
    assert_same_run(tmp_path, unbroken[1])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint.safetensors", "training.jsonl"]


def test_rare_checkpoints_lose_epochs_but_not_exactness(tmp_path: Path, unbroken: tuple[Trained, Path]) -> None:
    with pytest.raises(Stopped) as stopped:
        train(replace(TRAINING, checkpoint_minutes=60), keep=Keep(tmp_path), watch=Interrupt(3 * BATCHES + 1))
    assert stopped.value.epochs_kept == 1
    assert len(metrics(tmp_path)) == 3
    train(keep=Keep(tmp_path, resume=True))
    assert_same_run(tmp_path, unbroken[1])


def test_a_finished_run_resumes_to_its_result(unbroken: tuple[Trained, Path]) -> None:
    class Never(Silent):
        def epoch(self, epoch: Epoch, best: Best | None) -> None:
            raise AssertionError("a finished run has no epoch left")

    whole, folder = unbroken
    again = train(keep=Keep(folder, resume=True), watch=Never())
    assert again.fitted == whole.fitted
    assert fitted_in(folder, TRAINING) == whole.fitted
    assert torch.equal(again.model.item.weight, whole.model.item.weight)


def test_a_folder_with_a_run_is_not_buried(unbroken: tuple[Trained, Path]) -> None:
    with pytest.raises(UnveilError, match="holds a run already"):
        train(keep=Keep(unbroken[1]))


def test_a_checkpoint_of_another_run_is_refused_by_the_name_of_what_differs(unbroken: tuple[Trained, Path]) -> None:
    keep = Keep(unbroken[1], resume=True)
    with pytest.raises(UnveilError, match=r"began with training\.lr = 0\.003, and now it is 0\.1\."):
        train(replace(TRAINING, lr=0.1), keep=keep)
    with pytest.raises(UnveilError, match=r"began with model\.blocks = 2, and now it is 1\."):
        train(keep=keep, model=replace(MODEL, blocks=1))
    with pytest.raises(UnveilError, match=r"began with data = nothing, and now it is abc\."):
        train(keep=replace(keep, identity={"data": "abc"}))


def test_where_a_run_goes_on_does_not_matter(unbroken: tuple[Trained, Path]) -> None:
    train(replace(TRAINING, device="auto", checkpoint_minutes=3), keep=Keep(unbroken[1], resume=True))


def test_a_run_goes_on_with_the_threads_it_began_with(tmp_path: Path, unbroken: tuple[Trained, Path]) -> None:
    with pytest.raises(Stopped):
        train(keep=Keep(tmp_path), watch=Interrupt(2 * BATCHES + 1))
    with pytest.raises(UnveilError, match=r"found 'training\.threads = 2', expected 1, as the run began\. Leave"):
        train(replace(TRAINING, threads=2), keep=Keep(tmp_path, resume=True))
    seen, before = list[int](), torch.get_num_threads()

    class Look(Silent):
        def batch(self, loss: float) -> None:
            seen.append(torch.get_num_threads())

    torch.set_num_threads(2)
    try:
        train(replace(TRAINING, threads=None), keep=Keep(tmp_path, resume=True), watch=Look())
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert set(seen) == {1}
    assert_same_run(tmp_path, unbroken[1])


def test_other_versions_are_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Stopped):
        train(keep=Keep(tmp_path), watch=Interrupt(2 * BATCHES + 1))
    now = versions()
    monkeypatch.setattr("unveil.training.checkpoint.versions", lambda: {**now, "torch": "9.0", "polars": "9.0"})
    with pytest.warns(
        UnveilWarning, match=rf"began with torch {re.escape(now['torch'])} and now 9\.0: its weights may"
    ):
        train(keep=Keep(tmp_path, resume=True))


def test_a_checkpoint_of_an_earlier_version_says_nothing_of_threads(tmp_path: Path) -> None:
    with pytest.raises(Stopped):
        train(keep=Keep(tmp_path), watch=Interrupt(2 * BATCHES + 1))
    path = tmp_path / "checkpoint.safetensors"
    saved = Checkpoint.load(path)
    Checkpoint(saved.tensors, {name: each for name, each in saved.state.items() if name != "began"}).save(path)
    train(replace(TRAINING, threads=2), keep=Keep(tmp_path, resume=True))


def test_a_clip_may_be_endless(tmp_path: Path) -> None:
    """JSON has no infinity, and checkpoints are JSON."""
    endless = replace(TRAINING, epochs=1, clip=float("inf"))
    train(endless, keep=Keep(tmp_path))
    assert len(train(endless, keep=Keep(tmp_path, resume=True)).fitted.epochs) == 1


@pytest.mark.parametrize("told", ['"high"', "{}", '{"NDCG@10": null}', "[1]"])
def test_epochs_that_somebody_edited_are_told(told: str, tmp_path: Path) -> None:
    line = f'{{"epoch": 1, "loss": 1.0, "lr": 0.1, "slots": 3, "seconds": 0.1, "validation": {told}}}'
    (tmp_path / "training.jsonl").write_text(line + "\n")
    said = (
        r"training\.jsonl(: the epochs do not tell the validation's NDCG@10|, row 1, validation.*: not a valid value)"
    )
    with pytest.raises(UnveilError, match=said):
        fitted_in(tmp_path, TrainerConfig())
