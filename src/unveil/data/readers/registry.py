"""The formats that can be read: in `delimited` and `lines`, or another package's by entry point."""

from difflib import get_close_matches
from enum import IntEnum
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Protocol

from unveil.data.readers.columns import ReadOptions
from unveil.data.readers.content import Content
from unveil.data.readers.table import Table
from unveil.errors import UnveilError

GROUP = "unveil.formats"


class Likeness(IntEnum):
    """How sure a format is that a text is its own."""

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

    def read(self, content: Content, options: ReadOptions) -> Table:
        """The whole file, columns by role."""
        ...


class TextFormat(Format, Protocol):
    """A format told by the look of its first lines."""

    def likeness(self, content: Content, options: ReadOptions) -> Likeness:
        """How much the beginning of the file looks like this format."""
        ...


_TEXT: dict[str, TextFormat] = {}
_BINARY: dict[bytes, Format] = {}


def register(*entries: TextFormat) -> None:
    """Make formats known that are told by the look of the text."""
    for entry in entries:
        _TEXT[entry.name] = entry


def register_binary(magic: bytes, entry: Format) -> None:
    """Make a format known that is told by the first bytes of the file."""
    _BINARY[magic] = entry


def known_formats() -> dict[str, str]:
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
    _load()
    for magic, entry in _BINARY.items():
        if content.start.startswith(magic):
            return entry
    scores = {name: entry.likeness(content, options) for name, entry in sorted(_TEXT.items())}
    best = max(scores.values())
    winners = [name for name, score in scores.items() if score == best]
    if best == Likeness.NO:
        raise UnveilError(
            "cannot tell the format",
            where=content.path,
            found=content.head[0],
            expected="a header, or rows of a known shape",
            hint=f"Name it with --format: {', '.join(sorted(_all()))}.",
        )
    if len(winners) > 1:
        raise UnveilError(
            f"the content fits several formats: {', '.join(winners)}",
            where=content.path,
            found=content.head[0],
            hint=f"Say which with {' or '.join(f'--format {name}' for name in winners)}.",
        )
    return _TEXT[winners[0]]


def _all() -> dict[str, Format]:
    _load()
    return {**_TEXT, **{entry.name: entry for entry in _BINARY.values()}}


@cache
def _load() -> None:
    for module in ("delimited", "lines"):
        import_module(f"unveil.data.readers.{module}")
    for entry in entry_points(group=GROUP):
        entry.load()
