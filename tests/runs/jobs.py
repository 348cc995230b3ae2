"""Jobs that take no time, fail, or take their process with them."""

import os
import signal
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unveil.errors import UnveilError, UnveilWarning
from unveil.runs.workers import OnProgress


@dataclass(frozen=True)
class Toy:
    """Squares a number, or does what its `trouble` says."""

    number: int
    trouble: str = ""

    @property
    def key(self) -> str:
        return f"n{self.number}"

    @property
    def cost(self) -> float:
        return 1.0 + self.number

    def run(self, tell: OnProgress) -> dict[str, Any]:
        tell(0.5)
        if self.trouble == "refused":
            raise UnveilError("this cannot be squared", found=self.number)
        if self.trouble == "warns":
            warnings.warn("the old name will go", UnveilWarning, stacklevel=1)
        if self.trouble == "bug":
            raise ZeroDivisionError("a bug")
        if self.trouble == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.trouble == "sleeps":
            time.sleep(60)
        return {"square": self.number**2, "threads": os.environ.get("OMP_NUM_THREADS"), "pid": os.getpid()}


@dataclass(frozen=True)
class Waits:
    """Says that it was begun, and waits for a file that lets it go."""

    number: int
    folder: Path

    @property
    def key(self) -> str:
        return f"w{self.number}"

    @property
    def cost(self) -> float:
        return 1.0

    def run(self, tell: OnProgress) -> dict[str, Any]:
        (self.folder / f"{self.key}-{os.getpid()}").touch()
        while not (self.folder / "go").exists():
            time.sleep(0.1)
        return {"cube": self.number**3}
