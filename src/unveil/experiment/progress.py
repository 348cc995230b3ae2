"""Telling how a long piece of work goes: one bar for the whole of it on a terminal, a line now and then elsewhere."""

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

_MINUTE = 60.0
#: Below this a length of time is told in seconds, above it in minutes.
_TELL_MINUTES = 2 * _MINUTE


def whole_bar(console: Console) -> Progress:
    """A bar with a title, what there is to tell (the field `told`), the time passed and the time left."""
    told = TextColumn("{task.fields[told]}")
    columns = (TextColumn("{task.description}"), BarColumn(), told, TimeElapsedColumn())
    return Progress(*columns, TextColumn("left"), TimeRemainingColumn(), console=console, transient=True)


def passed_and_left(passed: float, share: float) -> str:
    """Seconds passed, and those left if the rest goes as what is done."""
    return f"{spell(passed)}, about {spell(passed / share - passed)} left" if share > 0 else spell(passed)


def spell(seconds: float) -> str:
    """90 s, 12 min."""
    return f"{seconds:.0f} s" if seconds < _TELL_MINUTES else f"{seconds / _MINUTE:.0f} min"
