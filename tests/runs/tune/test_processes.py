"""Real processes on one study: two that share it, one that is killed, and a database of our own."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import optuna
import pytest

from tests.data.readers.postgres_server import running
from tests.runs.tune.conftest import Tuned
from tests.runs.tune.studies import CONTENT, QUICKEST, TIMING, command, quickest, space, study, write_space
from unveil.errors import UnveilError
from unveil.runs.progress import Silent
from unveil.runs.tune.search import Location, tune
from unveil.runs.tune.storage import JOURNAL, opened
from unveil.runs.tune.study import Plan
from unveil.runs.tune.subjects import Training
from unveil.runs.workers import Advanced, Done, Event, Failed, Job, Processes

UNVEIL = str(Path(sys.executable).with_name("unveil"))
COMPLETE = optuna.trial.TrialState.COMPLETE
LONG = {**QUICKEST, "training.epochs": 40, "training.patience": "none"}


@contextmanager
def worker(arguments: Sequence[str]) -> Iterator["subprocess.Popen[str]"]:
    """A process with that command; it does not outlive the test."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [UNVEIL, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_for(path: Path, process: "subprocess.Popen[str]", lines: int = 0, seconds: float = 180) -> None:
    begun = time.monotonic()
    while not path.exists() or (lines and len(path.read_text().splitlines()) < lines):
        if process.poll() is not None:
            pytest.fail(f"the worker ended: {process.communicate()}")
        if time.monotonic() - begun > seconds:
            pytest.fail(f"{path} did not come")
        time.sleep(0.02)


@contextmanager
def still_until(path: Path, process: "subprocess.Popen[str]", seconds: float = 10) -> Iterator[None]:
    """The process stands still until others have come to `path`, so that they get a share however busy the machine is.

    Not for ever: it may hold what they wait for.
    """

    def wake() -> None:
        begun = time.monotonic()
        while not path.exists() and time.monotonic() - begun < seconds:
            time.sleep(0.02)
        process.send_signal(signal.SIGCONT)

    process.send_signal(signal.SIGSTOP)
    waking = threading.Thread(target=wake)
    waking.start()
    yield
    waking.join()


def finished_once(trials: Sequence[optuna.trial.FrozenTrial], count: int) -> set[int]:
    """Every entry was finished exactly once; the processes that did it."""
    complete = [trial for trial in trials if trial.state == COMPLETE]
    assert sorted(trial.user_attrs["entry"] for trial in complete) == list(range(count))
    assert not [trial for trial in trials if not trial.state.is_finished()]
    return {trial.user_attrs["worker"]["process"] for trial in complete}


def trials_of(folder: Path, storage: str | None = None) -> list[optuna.trial.FrozenTrial]:
    with opened(storage, folder) as place:
        return optuna.load_study(storage=place, study_name=folder.name).trials


def test_two_processes_share_a_study_and_find_what_one_finds(tuned: Tuned, tmp_path: Path) -> None:
    folder, plan = tmp_path / "study", Plan(space(tmp_path), trials=6, replicates=2)
    arguments = command(tuned.log, write_space(tmp_path), "--trials", 6, "--replicates", 2, "-o", folder)
    with worker(arguments) as other:
        wait_for(folder / "trials" / "000", other)
        with still_until(folder / "trials" / "001", other):
            found = study(quickest(tuned.log), plan, folder)
        out, err = other.communicate(timeout=180)
        assert other.returncode == 0, err
        assert finished_once(trials_of(folder), 6) == {os.getpid(), other.pid}
    assert "6 trials complete" in out
    assert "6/6 trials" in err
    assert [each.value for each in found.trials[:4]] == [each.value for each in tuned.study.trials]
    assert len({str(each.settings) for each in found.trials}) == 6


@pytest.mark.slow
def test_two_processes_finish_thirty_trials_once_each(tuned: Tuned, tmp_path: Path) -> None:
    """Begun at the same time, so that both want the same trials, the last one too."""
    rates = ", ".join(f"{nth / 1000}" for nth in range(1, 31))
    where, folder = write_space(tmp_path, f'"training.lr" = [{rates}]'), tmp_path / "study"
    arguments = command(tuned.log, where, "--trials", 30, "--replicates", 1, "-o", folder)
    with worker(arguments) as one, worker(arguments) as two:
        for each in (one, two):
            out, err = each.communicate(timeout=600)
            assert each.returncode == 0, err
            assert "30 trials complete" in out
        assert finished_once(trials_of(folder), 30) == {one.pid, two.pid}
    complete = [trial for trial in trials_of(folder) if trial.state == COMPLETE]
    assert len({trial.params["training.lr"] for trial in complete}) == 30


def test_the_trial_of_a_killed_worker_is_gone_on_with(tuned: Tuned, tmp_path: Path) -> None:
    class Listener(Silent):
        """Remembers how much of a trial was done when it was continued."""

        def __init__(self) -> None:
            self.shares: list[float] = []

        def event(self, event: Event) -> None:
            if isinstance(event, Advanced):
                self.shares.append(event.share)

    folder, listener = tmp_path / "study", Listener()
    more = ("--trials", 1, "--replicates", 1, "-o", folder)
    with worker(command(tuned.log, write_space(tmp_path), *more, settings=LONG)) as other:
        wait_for(folder / "trials" / "000" / "r0" / "training.jsonl", other, lines=3)
        other.kill()
        other.wait()
    left = trials_of(folder)
    assert [trial.state for trial in left] == [optuna.trial.TrialState.RUNNING]
    experiment = quickest(tuned.log, {"training.epochs": 40, "training.patience": None})
    plan = Plan(space(tmp_path), trials=1, replicates=1)
    found = tune(Training(experiment), plan, Location(folder, **TIMING), watch=listener, tell=lambda _: None)
    assert 2 / 40 <= listener.shares[0] < 1  # from the last checkpoint, not from the start
    assert [each.attempts for each in found.trials] == [2]
    assert finished_once(trials_of(folder), 1) == {os.getpid()}
    assert found.trials[0].settings == left[0].params
    unbroken = study(experiment, plan, tmp_path / "unbroken")
    assert found.best.value == unbroken.best.value
    assert found.best.replicates[0].curve == unbroken.best.replicates[0].curve


def test_a_study_in_postgresql_is_shared_by_name(tuned: Tuned, tmp_path: Path) -> None:
    """Each has a folder of its own, as on two machines; the database is all they share."""
    with running() as server:
        here, there = tmp_path / "here" / "shared", tmp_path / "there" / "shared"
        url, plan = server.url(), Plan(space(tmp_path, CONTENT), trials=6, replicates=1)
        more = ("--trials", 6, "--replicates", 1, "--storage", url, "-o", there)
        with worker(command(tuned.log, write_space(tmp_path), *more)) as other:
            wait_for(there / "trials" / "000", other)
            with still_until(here / "trials" / "001", other):
                found = study(quickest(tuned.log), plan, here, url)
            out, err = other.communicate(timeout=180)
            assert other.returncode == 0, err
            assert finished_once(trials_of(here, url), 6) == {os.getpid(), other.pid}
        assert (here / "best.toml").read_bytes() == (there / "best.toml").read_bytes()
        assert (here / "trials.csv").read_bytes() == (there / "trials.csv").read_bytes()
        assert not (here / JOURNAL).exists()
        one = [each.replicates[0].value for each in found.trials[:4]]
        assert one == [values[0] for values in tuned.values]
        for text in (out, err, (there / "study.json").read_text(), (there / "index.html").read_text()):
            assert "s3cret" not in text
        assert json.loads((there / "study.json").read_text())["storage"].startswith("postgresql://keeper:***@")


def test_one_command_starts_several_workers(tuned: Tuned, tmp_path: Path) -> None:
    seen = Seen()
    where = Location(tmp_path / "study", **TIMING)
    subject = Training(tuned.experiment)
    found = tune(subject, tuned.study.plan, where, watch=seen, tell=lambda _: None, engine=Processes(2), workers=2)
    assert [[each.value for each in record.replicates] for record in found.trials] == tuned.values
    assert os.getpid() not in finished_once(trials_of(tmp_path / "study"), 4)  # quick trials may all be one worker's
    assert seen.trials == 4


def test_workers_that_are_all_lost_are_told_and_nothing_is(tuned: Tuned, tmp_path: Path) -> None:
    where = Location(tmp_path / "study", **TIMING)
    with pytest.raises(UnveilError, match="0 of 4 trials are over, and every worker is gone: it rained"):
        tune(Training(tuned.experiment), tuned.study.plan, where, tell=lambda _: None, engine=Rain(), workers=2)
    assert (tmp_path / "study" / "study.json").exists()


class Seen(Silent):
    """Counts the trials that it was shown."""

    trials = 0

    def event(self, event: Event) -> None:
        self.trials += isinstance(event, Done)


class Rain:
    """An engine that loses all its workers."""

    workers = 2

    def run(self, jobs: Sequence[Job]) -> Iterator[Event]:
        yield from (Failed(job.key, "it rained.") for job in jobs)
