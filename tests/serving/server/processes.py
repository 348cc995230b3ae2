"""The real server as a process of its own, on loopback."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

UNVEIL = str(Path(sys.executable).with_name("unveil"))


@dataclass
class Running:
    """A server, where it is, and what it writes."""

    process: "subprocess.Popen[str]"
    log: Path
    url: str = ""

    @property
    def port(self) -> int:
        return int(self.url.rstrip("/").rsplit(":", 1)[1])

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def wait_for(self, event: str, seconds: float = 120) -> dict[str, Any]:
        """The first line of that event."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and (self.process.poll() is None or self.log.stat().st_size):
            whole = [line for line in self.log.read_text().splitlines(keepends=True) if line.endswith("\n")]
            found = [line for line in map(json.loads, whole) if line["event"] == event]
            if found:
                return dict(found[0])
            time.sleep(0.02)
        raise AssertionError(f"no {event!r} in {self.log.read_text()}")

    def stop(self) -> int:
        """End it as a supervisor would; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=120)


@contextmanager
def running(log: Path, *arguments: object, environment: dict[str, str] | None = None) -> Iterator[Running]:
    """A server on a free port, ended whatever happens."""
    words = [UNVEIL, "serve", *map(str, arguments), "--port", "0"]
    with log.open("w") as file:
        env = {**os.environ, "OMP_NUM_THREADS": "1", **(environment or {})}
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=file, text=True, env=env)
    server = Running(process, log)
    try:
        server.url = server.wait_for("started")["url"]
        yield server
    finally:
        process.kill()
        process.wait()
