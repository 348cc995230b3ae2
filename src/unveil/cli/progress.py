"""A progress bar that shows only where there is a terminal and something to wait for."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: Work that is done sooner needs no bar.
_PATIENCE_SECONDS = 0.7


@contextmanager
def bar(label: str) -> Iterator[Callable[[int, int], None]]:
    """Give a function of (done, in all) that keeps a bar on standard error; the bar goes when the work is done."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"))
    progress = Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True)
    task = progress.add_task(label, total=None)
    begun = time.monotonic()

    def advance(done: int, total: int) -> None:
        late = time.monotonic() - begun > _PATIENCE_SECONDS
        if late and progress.console.is_terminal and not progress.live.is_started:
            progress.start()
        progress.update(task, completed=done, total=total)

    try:
        yield advance
    finally:
        if progress.live.is_started:
            progress.stop()
