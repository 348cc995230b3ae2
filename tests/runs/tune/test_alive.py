import subprocess
import sys
import time
from typing import Any

import optuna
import pytest
from optuna.trial import FrozenTrial

from unveil.runs.tune.claims import BEAT, WORKER, Beat, Pace, Watch, begun, this_worker


def running(**notes: Any) -> FrozenTrial:
    trial = optuna.create_trial(state=optuna.trial.TrialState.RUNNING, user_attrs=notes)
    trial.number = 7
    return trial


def test_a_process_of_this_machine_is_asked_for() -> None:
    mine = this_worker()
    if not mine["machine"]:
        pytest.skip("this system does not tell its processes by /proc")
    watch = Watch(Pace(grace=-1.0))
    assert not watch.is_dead(running(**{WORKER: mine}))
    assert watch.is_dead(running(**{WORKER: {**mine, "begun": "1"}}))  # its number went to another process


def test_a_process_that_is_gone_is_dead_at_once() -> None:
    if not this_worker()["machine"]:
        pytest.skip("this system does not tell its processes by /proc")
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        other = {**this_worker(), "process": process.pid, "begun": begun(process.pid)}
        assert not Watch().is_dead(running(**{WORKER: other}))
        process.kill()
        while begun(process.pid):
            time.sleep(0.01)
        assert Watch().is_dead(running(**{WORKER: other}))  # killed, and not yet waited for
    assert Watch().is_dead(running(**{WORKER: other}))


def test_elsewhere_silence_counts_by_our_own_clock() -> None:
    away = {"machine": "another", "process": 1, "begun": "1"}
    watch = Watch(Pace(grace=0.05))
    assert not watch.is_dead(running(**{WORKER: away, BEAT: 1}))
    time.sleep(0.06)
    assert not watch.is_dead(running(**{WORKER: away, BEAT: 2}))  # word came
    assert not watch.is_dead(running(**{WORKER: away, BEAT: 2}))
    time.sleep(0.06)
    assert watch.is_dead(running(**{WORKER: away, BEAT: 2}))


def test_who_never_said_a_word_is_waited_for_too() -> None:
    watch = Watch(Pace(grace=0.05))
    assert not watch.is_dead(running())
    time.sleep(0.06)
    assert watch.is_dead(running())


def test_word_is_left_until_the_trial_is_lost() -> None:
    study = optuna.create_study()
    trial = study.ask()
    with Beat(trial, Pace(beat=0.01)) as beat:
        for _ in range(500):
            if study.trials[0].user_attrs.get(BEAT, 0) >= 2:
                break
            time.sleep(0.01)
        assert study.trials[0].user_attrs[BEAT] >= 2
        assert not beat.lost.is_set()
        study.tell(trial, state=optuna.trial.TrialState.FAIL)
        assert beat.lost.wait(5)
