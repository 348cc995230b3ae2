"""Being asked to stop by the system is as being asked by the person at the keyboard."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def asked_to_stop() -> Iterator[None]:
    """Inside, SIGTERM raises KeyboardInterrupt, as SIGINT does."""
    before = signal.signal(signal.SIGTERM, _stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _stop(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
