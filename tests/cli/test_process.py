"""The real command in processes of its own: from end to end, killed, interrupted, and out of room."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from tests.cli.conftest import Command
from tests.run_folders import TINY, Finished, content, experiment_on, options, write_log
from unveil.runs.train import run as train
from unveil.training.checkpoint import Checkpoint

UNVEIL = str(Path(sys.executable).with_name("unveil"))
EPOCHS = 40
LONG = ["--preset", "quick", *options({**TINY, "training.epochs": EPOCHS, "training.patience": "none"}), "--no-page"]
#: What differs between a run and the same run again: seconds, and files that hold them.
TIMED = {"training.jsonl", "checkpoint.safetensors"}


def start(*arguments: object, room: int | None = None) -> "subprocess.Popen[str]":
    def small_files_only() -> None:
        if room is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

    return subprocess.Popen(
        [UNVEIL, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Bytecode that is cut off at the limit would break every later process: Python does not notice.
        env={**os.environ, "OMP_NUM_THREADS": "1", **({} if room is None else {"PYTHONDONTWRITEBYTECODE": "1"})},
        preexec_fn=small_files_only,
    )


def run(*arguments: object, room: int | None = None) -> "subprocess.CompletedProcess[str]":
    with start(*arguments, room=room) as process:
        out, err = process.communicate(timeout=120)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_log(tmp_path_factory.mktemp("log") / "log.csv")


@pytest.fixture(scope="module")
def unbroken(log: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of the long run as it is when nobody stops it."""
    folder = tmp_path_factory.mktemp("unbroken") / "run"
    changes = {"training.epochs": EPOCHS, "training.patience": None}
    train(experiment_on(log, changes), folder, tell=lambda _: None)
    return content(folder)


def wait_for_epochs(folder: Path, count: int, process: "subprocess.Popen[str]") -> None:
    """Until that many epochs are written, or the process has ended."""
    lines = folder / "training.jsonl"
    while process.poll() is None and not (lines.exists() and len(lines.read_bytes().splitlines()) >= count):
        time.sleep(0.002)


def stopped_by(how: signal.Signals, log: Path, folder: Path) -> "subprocess.CompletedProcess[str]":
    with start("train", log, "-o", folder, *LONG) as process:
        wait_for_epochs(folder, 3, process)
        process.send_signal(how)
        out, err = process.communicate(timeout=60)
    assert not (folder / "manifest.json").exists()
    assert 2 <= len(Checkpoint.load(folder / "checkpoint.safetensors").state["epochs"]) < EPOCHS
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


@pytest.mark.parametrize("started", [[UNVEIL], [sys.executable, "-m", "unveil"]], ids=["unveil", "python -m"])
@pytest.mark.parametrize(("loading", "command"), [("typer", "--version"), ("polars", "data describe log.csv")])
def test_ctrl_c_while_modules_load(started: list[str], loading: str, command: str, log: Path, tmp_path: Path) -> None:
    (tmp_path / f"{loading}.py").write_text("raise KeyboardInterrupt")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [*started, *command.split()], cwd=log.parent, env=environment, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "unveil: stopped.\n")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_run_that_was_stopped_goes_on_to_what_it_would_have_been(
    how: signal.Signals, log: Path, unbroken: dict[str, bytes], unveil: Command, tmp_path: Path
) -> None:
    done = stopped_by(how, log, tmp_path / "run")
    if how == signal.SIGKILL:
        assert done.returncode == -how
    else:
        assert done.returncode == 130
        message = done.stderr.splitlines()[-1]
        assert "training was stopped" in message
        assert f"in {tmp_path / 'run'}. Go on with the same command and --resume." in message
        assert "Traceback" not in done.stderr
    assert "resumed" in unveil("recommend", tmp_path / "run").failure()
    assert unveil("train", log, "-o", tmp_path / "run", *LONG, "--resume").code == 0
    resumed = content(tmp_path / "run")
    assert resumed.keys() == unbroken.keys()
    for name in unbroken.keys() - TIMED:
        assert resumed[name] == unbroken[name], name
    epochs, others = (
        [json.loads(line) for line in each["training.jsonl"].splitlines()] for each in (resumed, unbroken)
    )
    assert [{**epoch, "seconds": 0} for epoch in epochs] == [{**epoch, "seconds": 0} for epoch in others]


def test_two_processes_do_not_share_a_run(log: Path, unveil: Command, tmp_path: Path) -> None:
    with start("train", log, "-o", tmp_path / "run", *LONG) as process:
        wait_for_epochs(tmp_path / "run", 1, process)
        process.send_signal(signal.SIGSTOP)
        for more in ([], ["--resume"]):
            message = unveil("train", log, "-o", tmp_path / "run", *LONG, *more).failure()
            assert f"{tmp_path / 'run'}: another process is at work in this folder" in message
        process.kill()
        process.communicate(timeout=60)
    assert unveil("train", log, "-o", tmp_path / "run", *LONG, "--resume").code == 0


def test_stopped_before_anything_was_written(tmp_path: Path) -> None:
    """The log is told first; with fifty thousand users there is then much to prepare before the folder is made."""
    rows = (f"u{user},i{(user + place) % 300}\n" for user in range(50_000) for place in range(4))
    (tmp_path / "log.csv").write_text("user_id,item_id\n" + "".join(rows))
    with start("train", tmp_path / "log.csv", "-o", tmp_path / "run") as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("log ")
        process.terminate()
        _, err = process.communicate(timeout=60)
    assert err == "unveil: stopped. Nothing was written.\n"
    assert process.returncode == 130
    assert not (tmp_path / "run").exists()


def test_a_full_disk_is_one_message_and_the_run_can_be_resumed(log: Path, unveil: Command, tmp_path: Path) -> None:
    settings = options({**TINY, "model.width": 16})
    done = run("train", log, "-o", tmp_path / "run", *settings, room=20_000)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    message = done.stderr.splitlines()[-1]
    assert message.startswith(f"unveil: {tmp_path / 'run' / 'checkpoint.safetensors'}: cannot write: ")
    assert not [name for name in content(tmp_path / "run") if name.endswith(".part")]
    assert unveil("train", log, "-o", tmp_path / "run", *settings, "--resume").code == 0
    assert unveil("train", log, "-o", tmp_path / "unbroken", *settings).code == 0
    for name in ("model.safetensors", "metrics.json", "README.md"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "unbroken" / name).read_bytes()


def test_from_a_log_to_lists(log: Path, tmp_path: Path) -> None:
    trained = run("train", log, "-o", tmp_path / "run", "-e", "itps", *options())
    assert trained.returncode == 0, trained.stderr
    before = (tmp_path / "run" / "metrics.json").read_bytes()
    judged = run("evaluate", tmp_path / "run", "--no-page")
    assert judged.returncode == 0, judged.stderr
    assert judged.stdout.strip() in trained.stdout
    assert (tmp_path / "run" / "metrics.json").read_bytes() == before
    listed = run("recommend", tmp_path / "run", "-k", 3, "-o", tmp_path / "lists.csv")
    assert listed.returncode == 0, listed.stderr
    lists = pl.read_csv(tmp_path / "lists.csv", infer_schema=False)
    assert lists.columns == ["user_id", "item_id", "score", "rank"]
    assert set(lists["user_id"]) == set(pl.read_csv(log, infer_schema=False)["user_id"])


@pytest.mark.parametrize("command", ["recommend", "evaluate", "data describe", "train", "--help"])
def test_a_reader_that_turns_away_is_no_error(command: str, finished: Finished, tmp_path: Path) -> None:
    arguments: dict[str, list[object]] = {
        "recommend": [finished.folder, "--as", "csv", "-k", 30],
        "evaluate": [finished.folder, "--no-page"],
        "data describe": [finished.log],
        "train": [finished.log, "-o", tmp_path / "run", *LONG],
    }
    with start(*command.split(), *arguments.get(command, [])) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == ""
    assert not (tmp_path / "run").exists()
