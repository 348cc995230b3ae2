"""`unveil loop`, in this process and in one that is killed."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from tests.cli.conftest import Command
from tests.run_folders import TINY, options, write_log
from unveil.cli.loop import data_set_of
from unveil.cli.options import LogOptions
from unveil.data.filters import LogSource
from unveil.errors import UnveilError
from unveil.runs.workers import Inline
from unveil.studies.engine import run
from unveil.studies.loop import LoopStudy
from unveil.training.checkpoint import Checkpoint

UNVEIL = str(Path(sys.executable).with_name("unveil"))
ROUNDS = 25
SETTINGS = tuple(word for word in options({**TINY, "training.epochs": 2}) if word != "--set")
TAIL = ["-k", 5, "--jobs", 1, "-e", "naive", *options({**TINY, "training.epochs": 2})]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_log(tmp_path_factory.mktemp("log") / "log.csv")


def stopped_by(how: signal.Signals, rounds: int, *arguments: object) -> "subprocess.CompletedProcess[str]":
    """The command, stopped once it has got that far."""
    state = Path(str(arguments[2])) / "states" / "naive-r0.safetensors"
    words = [UNVEIL, "loop", *map(str, arguments)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as process:
        while process.poll() is None and not (state.exists() and reached(state) >= rounds):
            time.sleep(0.01)
        process.send_signal(how)
        out, err = process.communicate(timeout=60)
    return subprocess.CompletedProcess(words, process.returncode, out, err)


def reached(state: Path) -> int:
    """The last round in the file; nothing is known while another takes its place."""
    try:
        return len(Checkpoint.load(state).state["records"]) - 1
    except UnveilError:
        return -1


def test_a_loop_of_another_network_says_what_to_add(log: Path, unveil: Command, tmp_path: Path) -> None:
    """Once a loop that named no network meant BERT4Rec."""
    command = ["loop", log, "-o", tmp_path / "loop", "--rounds", 1, *TAIL]
    assert unveil(*command, "--set", "model.name=bert4rec").code == 0
    message = unveil(*command, "--resume").failure()
    assert "model.name was bert4rec and is now sasrec" in message
    assert "with --set model.name=bert4rec." in message
    assert unveil(*command, "--resume", "--set", "model.name=bert4rec").code == 0


@pytest.mark.slow
def test_a_loop_that_was_stopped_goes_on_to_what_it_would_have_been(log: Path, unveil: Command, tmp_path: Path) -> None:
    folder = tmp_path / "loop"
    command = [log, "-o", folder, "--rounds", ROUNDS, *TAIL]
    killed = stopped_by(signal.SIGKILL, 1, *command)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert "pass --resume" in unveil("loop", *command).failure()
    interrupted = stopped_by(signal.SIGINT, 5, *command, "--resume")
    assert interrupted.returncode == 130, interrupted.stderr
    assert "Traceback" not in interrupted.stderr
    last = interrupted.stderr.splitlines()[-1]
    assert "the rounds that are over are kept. Go on with the same command and --resume." in last
    assert not (folder / "loop.csv").exists()

    resumed = unveil("loop", *command, "--resume")
    assert resumed.code == 0, resumed.err
    assert f"{ROUNDS} of {ROUNDS + 1} rounds" in resumed.err
    assert "left" in resumed.err
    assert "EFD@5" in resumed.out
    assert f"open {folder / 'index.html'}" in resumed.out.replace("\n", "")

    study = LoopStudy(log=LogSource(str(log)), rounds=ROUNDS, k=5, estimators=("naive",), changes=SETTINGS)
    run(study, tmp_path / "unbroken", Inline())
    assert (folder / "loop.csv").read_text() == (tmp_path / "unbroken" / "loop.csv").read_text()
    ours, theirs = (
        Checkpoint.load(tmp_path / name / "states" / "naive-r0.safetensors") for name in ("loop", "unbroken")
    )
    assert ours.state == theirs.state
    assert all(torch.equal(tensor, theirs.tensors[name]) for name, tensor in ours.tensors.items())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-e", "navie"], "unknown model: found 'navie'"),
        (["--response", "relevnt"], "unknown response.*Did you mean 'relevant'"),
        (["--response", "relevant"], "the response 'relevant' needs a world"),
        (["--retrain", "daily"], "no such way to retrain"),
        (["-k", "31"], "k is out of range"),
        (["--world", "nowhere"], "nowhere"),
        (["--world", "builtin"], "does not fit the world"),
    ],
)
def test_what_is_refused(arguments: list[str], message: str, log: Path, unveil: Command, tmp_path: Path) -> None:
    failure = unveil("loop", log, "-o", tmp_path / "loop", *arguments).failure()
    assert re.search(message, failure), failure
    assert not (tmp_path / "loop").exists()


def test_only_a_loop_or_an_empty_place_is_resumed(log: Path, unveil: Command, tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    assert "the output folder is not empty" in unveil("loop", log, "-o", tmp_path, "--resume").failure()


def test_the_papers_loop_knows_whose_settings_it_takes(log: Path, unveil: Command, tmp_path: Path) -> None:
    failure = unveil("reproduce", "rq5", log, "-o", tmp_path / "rq5", "--tuned-for", "ml-2m").failure()
    assert "found 'ml-2m', expected one of ml-1m, ml-20m, beauty" in failure
    assert not (tmp_path / "rq5").exists()


def test_the_papers_loop_may_be_trained_another_way(log: Path, unveil: Command, tmp_path: Path) -> None:
    failure = unveil("reproduce", "rq5", log, "-o", tmp_path / "rq5", "--retrain", "daily").failure()
    assert "no such way to retrain" in failure
    assert not (tmp_path / "rq5").exists()


def test_settings_are_those_of_the_data_set_that_is_named_and_else_of_ml_1m(log: Path) -> None:
    assert data_set_of(LogOptions(log="ml-20m")) == "ml-20m"
    assert data_set_of(LogOptions(log=str(log))) == "ml-1m"


def test_settings_are_those_of_the_data_set_that_the_log_has_the_size_of(shared_data: Path) -> None:
    assert data_set_of(LogOptions(log=str(shared_data / "beauty" / "beauty.txt.gz"))) == "beauty"
