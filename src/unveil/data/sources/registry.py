"""The formats that can be read: each one file in `formats`, found by itself, or another package's by entry point."""

from difflib import get_close_matches
from enum import IntEnum
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pkgutil import iter_modules
from typing import Protocol

from unveil.data.sources.content import Content
from unveil.data.sources.options import ReadOptions
from unveil.data.sources.table import Table
from unveil.errors import UnveilError

GROUP = "unveil.formats"


class Likeness(IntEnum):
    """How sure a format is that a file is its own."""

    NO = 0
    PERHAPS = 1  # nothing speaks against it
    SHAPE = 2  # the rows have its shape
    NAMES = 3  # the header names a user and an item
    CERTAIN = 4  # a mark that no other format has


class Format(Protocol):
    """One way to write a log in a file."""

    @property
    def name(self) -> str:
        """What `--format` calls it."""
        ...

    @property
    def summary(self) -> str:
        """One line for the help."""
        ...

    def likeness(self, content: Content, options: ReadOptions) -> Likeness:
        """How much the beginning of the file looks like this format."""
        ...

    def read(self, content: Content, options: ReadOptions) -> Table:
        """The whole file, columns by role."""
        ...


_FORMATS: dict[str, Format] = {}


def register(*entries: Format) -> None:
    """Make formats known by their names."""
    for entry in entries:
        _FORMATS[entry.name] = entry


def formats() -> dict[str, str]:
    """Name and one line about each format."""
    return {name: entry.summary for name, entry in sorted(_all().items())}


def named(name: str) -> Format:
    """The format of this name."""
    known = _all()
    if name not in known:
        close = get_close_matches(name, known, n=1)
        hint = f"Did you mean {close[0]}?" if close else None
        raise UnveilError("unknown format", found=name, expected=f"one of {', '.join(sorted(known))}", hint=hint)
    return known[name]


def detected(content: Content, options: ReadOptions) -> Format:
    """The format that the content looks most like. Two that look alike are an error: nothing is guessed."""
    scores = {name: entry.likeness(content, options) for name, entry in sorted(_all().items())}
    best = max(scores.values())
    winners = [name for name, score in scores.items() if score == best]
    if best == Likeness.NO:
        first = content.head[0] if content.head else ""
        raise UnveilError(
            "cannot tell the format",
            where=content.path,
            found=first,
            expected="a header, or rows of a known shape",
            hint=f"Name it with --format: {', '.join(sorted(_all()))}.",
        )
    if len(winners) > 1:
        raise UnveilError(
            f"the content fits several formats: {', '.join(winners)}",
            where=content.path,
            found=content.head[0],
            hint=f"Say which with --format {winners[0]} or --format {winners[1]}.",
        )
    return _all()[winners[0]]


@cache
def _all() -> dict[str, Format]:
    package = import_module("unveil.data.sources.formats")
    for module in iter_modules(package.__path__, f"{package.__name__}."):
        import_module(module.name)
    for entry in entry_points(group=GROUP):
        entry.load()
    return _FORMATS
