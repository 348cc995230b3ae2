"""The real command with real workers of torchrun: stopped, killed, started again, and at odds with each other."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.test_process import wait_for_epochs
from tests.run_folders import TINY, experiment_on, options, write_log
from tests.training.distributed import battery
from tests.training.distributed.battery import STILL
from tests.training.distributed.started import followers
from tests.training.distributed.uneven import weights
from unveil.runs.train import run
from unveil.runs.workers import cores
from unveil.training.checkpoint import Checkpoint
from unveil.training.distributed import SINGLE, Place, joined

pytestmark = [pytest.mark.slow, pytest.mark.skipif(cores() < 2, reason="needs two cores")]

EPOCHS = 40
CHANGES = {"model.dropout": 0.0, "training.epochs": EPOCHS, "training.patience": None}
SETTINGS = options({**TINY, **CHANGES, "training.patience": "none"})
#: Seconds in which a run is to be over, once one of its processes is.
SOON = 120


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_log(tmp_path_factory.mktemp("log") / "log.csv")


@pytest.fixture(scope="module")
def alone(log: Path, tmp_path_factory: pytest.TempPathFactory) -> list[float]:
    """The validation curve of one process that nobody stops."""
    folder = tmp_path_factory.mktemp("alone") / "run"
    run(experiment_on(log, CHANGES), folder, tell=lambda _: None)
    return curve(folder)


def curve(folder: Path) -> list[float]:
    lines = (folder / "training.jsonl").read_text().splitlines()
    return [json.loads(line)["validation"]["NDCG@10"] for line in lines]


def assert_same_curve(folder: Path, alone: list[float]) -> None:
    """Rounding may exchange two items of nearly equal score, hardly ever."""
    found = curve(folder)
    assert len(found) == len(alone)
    assert found == pytest.approx(alone, abs=0.01)
    assert sum(a == pytest.approx(b, rel=1e-9) for a, b in zip(found, alone, strict=True)) > 0.9 * len(alone)


def start(command: list[str], **environment: object) -> "subprocess.Popen[str]":
    told = {name: str(value) for name, value in environment.items()}
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", **told},
        start_new_session=True,
    )


def train(log: Path, folder: Path, *more: str) -> list[str]:
    return ["train", str(log), "-o", str(folder), *SETTINGS, *more]


def gone(pid: int) -> bool:
    """Whether the process is over; one that nobody has asked about yet is, too."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


def wait_until(true: Callable[[], bool]) -> None:
    until = time.monotonic() + SOON
    while not true():
        assert time.monotonic() < until
        time.sleep(0.05)


def torchrun(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", *arguments]


def test_torchrun_gives_the_same(log: Path, alone: list[float], tmp_path: Path) -> None:
    with start(torchrun("-m", "unveil", *train(log, tmp_path / "run"))) as process:
        out, err = process.communicate()
    assert process.returncode == 0, err
    assert_same_curve(tmp_path / "run", alone)
    assert out.count("estimator  naive") == 1
    assert err.count(f"epoch {EPOCHS}/{EPOCHS}") == 1


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_stopped_under_torchrun_and_resumed(how: signal.Signals, log: Path, alone: list[float], tmp_path: Path) -> None:
    """As from a terminal, SIGINT goes to all processes at once. By one process, or by two again."""
    with start(torchrun("-m", "unveil", *train(log, tmp_path / "run"))) as process:
        wait_for_epochs(tmp_path / "run", 3, process)
        follower = follower_of(process)
        if how == signal.SIGINT:
            os.killpg(process.pid, how)
        else:
            process.send_signal(how)
        _, err = process.communicate(timeout=SOON)
    assert err.count("unveil: training was stopped") == 1
    wait_until(lambda: gone(follower))
    if how == signal.SIGINT:
        run(experiment_on(log, CHANGES), tmp_path / "run", resume=True, tell=lambda _: None)
    else:
        subprocess.run(torchrun("-m", "unveil", *train(log, tmp_path / "run", "--resume")), check=True)
    assert_same_curve(tmp_path / "run", alone)


def test_torchrun_starts_a_lost_worker_again(log: Path, alone: list[float], tmp_path: Path) -> None:
    with start(torchrun("--max-restarts", "1", "-m", "unveil", *train(log, tmp_path / "run"))) as process:
        wait_for_epochs(tmp_path / "run", 3, process)
        os.kill(follower_of(process), signal.SIGKILL)
        _, err = process.communicate()
    assert process.returncode == 0, err
    assert_same_curve(tmp_path / "run", alone)


def follower_of(process: "subprocess.Popen[str]") -> int:
    """The worker with rank 1 of torchrun."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return next(int(pid) for pid in children if b"\0RANK=1\0" in Path(f"/proc/{pid}/environ").read_bytes())


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Callable[[Path, Path], list["subprocess.CompletedProcess[str]"]]]:
    """Two processes in the places that torchrun gives on two machines, each with a log of its own."""

    def both(*logs: Path) -> list["subprocess.CompletedProcess[str]"]:
        with closing(socket.socket()) as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        meeting = {"WORLD_SIZE": 2, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        command = [sys.executable, "-m", "unveil"]
        started = [
            start([*command, *train(log, tmp_path / "run")], RANK=rank, **meeting) for rank, log in enumerate(logs)
        ]
        said = [process.communicate(timeout=600) for process in started]
        return [
            subprocess.CompletedProcess(process.args, process.returncode, *each)
            for process, each in zip(started, said, strict=True)
        ]

    yield both
    assert not (tmp_path / "run").exists()


Pair = Callable[..., list["subprocess.CompletedProcess[str]"]]


def test_workers_with_different_logs_are_refused_with_one_message(log: Path, pair: Pair, tmp_path: Path) -> None:
    leader, other = pair(log, write_log(tmp_path / "other.csv", seed=1))
    assert leader.returncode == 2
    assert leader.stderr.startswith("unveil: the workers do not agree: log is ")
    assert len(leader.stderr.splitlines()) == 1
    assert other.returncode != 0
    assert (other.stdout, other.stderr) == ("", "")


def test_what_only_one_worker_finds_wrong_is_told_by_the_leader(log: Path, pair: Pair, tmp_path: Path) -> None:
    leader, other = pair(log, tmp_path / "gone.csv")
    assert leader.returncode == 2
    assert leader.stderr.startswith("unveil: worker 2: ")
    assert "gone.csv" in leader.stderr
    assert len(leader.stderr.splitlines()) == 1
    assert other.returncode != 0
    assert (other.stdout, other.stderr) == ("", "")


def train_small(folder: Path, place: Place) -> None:
    """One of three."""
    with joined(place, "cpu") as group:
        network, fitted = battery.trained(group, STILL)
        told = {"told": battery.told(fitted)}
        Checkpoint({"weights": weights(network)}, told).save(folder / f"{group.rank}.safetensors")


def test_three_workers_give_what_one_gives(tmp_path: Path) -> None:
    with followers(3, train_small, tmp_path) as place:
        train_small(tmp_path, place)
    network, fitted = battery.trained(SINGLE, STILL)
    found = [Checkpoint.load(tmp_path / f"{rank}.safetensors") for rank in range(3)]
    for each in found:
        assert each.tensors["weights"].equal(found[0].tensors["weights"])
        assert each.tensors["weights"].tolist() == pytest.approx(weights(network).tolist(), rel=1e-3, abs=1e-5)
        assert [loss for loss, *_ in each.state["told"]] == pytest.approx([epoch.loss for epoch in fitted.epochs], 1e-5)
