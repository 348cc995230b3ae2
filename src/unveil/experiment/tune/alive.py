"""Telling a trial that is being worked on from one whose process is gone.

A worker leaves word every few seconds. Others of the same machine ask the system whether its process lives; others
elsewhere give it up when no word came for a while, by their own clock, so that clocks need not agree. Optuna's own
heartbeat is for databases only; this one is for journals too.
"""

import os
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self

from unveil.experiment.tune.library import optuna

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

#: Notes on a trial: who works on it, and how often it has left word.
WORKER, BEAT = "worker", "beat"


@dataclass(frozen=True)
class Pace:
    """Seconds between two words, seconds without one until a trial is given up, seconds between two looks."""

    beat: float = 10.0
    grace: float = 90.0
    look: float = 2.0


def this_worker() -> dict[str, str | int]:
    """The machine (and the space of process numbers on it), the process, and when it began."""
    return {"machine": _machine(), "process": os.getpid(), "begun": begun(os.getpid())}


class Beat:
    """Leaves word while a trial is worked on; `lost` once others have given the trial up."""

    def __init__(self, trial: "optuna.Trial", pace: Pace) -> None:
        self.trial, self.pace = trial, pace
        self.lost, self._over = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._go_on, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _go_on(self) -> None:
        count = 0
        while not self._over.wait(self.pace.beat):
            count += 1
            try:
                self.trial.set_user_attr(BEAT, count)
            except optuna.exceptions.UpdateFinishedTrialError:
                self.lost.set()
                return
            except Exception:  # a storage out of reach for a moment: whoever finishes the trial will hear of it
                continue


@dataclass
class Watch:
    """Remembers when each running trial was last heard of."""

    pace: Pace = field(default_factory=Pace)
    heard: dict[int, tuple[object, float]] = field(default_factory=dict)

    def is_dead(self, trial: "FrozenTrial") -> bool:
        """Whether nobody works on a running trial any more."""
        worker = trial.user_attrs.get(WORKER)
        if worker and worker["machine"] == _machine() != "":
            return bool(begun(worker["process"]) != worker["begun"])
        word, now = (worker, trial.user_attrs.get(BEAT)), time.monotonic()
        last, since = self.heard.setdefault(trial.number, (word, now))
        if word != last:
            self.heard[trial.number] = (word, now)
            return False
        return now - since > self.pace.grace


def _machine() -> str:
    """One running system and one space of process numbers in it; nothing where it cannot be told."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def begun(process: int) -> str:
    """When a process began, in the system's ticks; nothing if it is gone, or dead and not yet buried."""
    try:
        state, *rest = Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return ""
    return "" if state in "ZX" else rest[18]
