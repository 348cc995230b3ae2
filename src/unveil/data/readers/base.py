"""What a format is, and which of all formats a file is of."""

from abc import ABC, abstractmethod
from enum import IntEnum
from typing import ClassVar

from unveil.data.readers.content import Content
from unveil.data.readers.table import ReadOptions, Table
from unveil.errors import UnveilError
from unveil.registry import Registry


class Likeness(IntEnum):
    """How sure a format is that a text is its own."""

    NO = 0
    PERHAPS = 1  # nothing speaks against it
    SHAPE = 2  # the rows have its shape
    NAMES = 3  # the header names a user and an item
    CERTAIN = 4  # a mark that no other format has


class Format(ABC):
    """One way to write a log in a file."""

    name: ClassVar[str]  # what `--format` calls it

    def likeness(self, content: Content, options: ReadOptions) -> Likeness:
        """How much the beginning of the file looks like this format."""
        return Likeness.NO

    @abstractmethod
    def read(self, content: Content, options: ReadOptions) -> Table:
        """The whole file, columns by role."""


FORMATS: Registry[Format] = Registry("format", package="unveil.data.readers", group="unveil.formats")


def detect(content: Content, options: ReadOptions) -> Format:
    """The format that the content looks most like. Two that look alike are an error: nothing is guessed."""
    if content.start.startswith(b"PAR1"):  # the one that is no text
        return FORMATS["parquet"]()
    scores = {name: FORMATS[name]().likeness(content, options) for name in FORMATS}
    best = max(scores.values())
    winners = [name for name, score in scores.items() if score == best]
    if best == Likeness.NO:
        expected, hint = "a header, or rows of a known shape", f"Name it with --format: {', '.join(FORMATS)}."
        where, found = content.path, content.head[0]
        raise UnveilError("cannot tell the format", where=where, found=found, expected=expected, hint=hint)
    if len(winners) > 1:
        problem = f"the content fits several formats: {', '.join(winners)}"
        hint = f"Say which with {' or '.join(f'--format {name}' for name in winners)}."
        raise UnveilError(problem, where=content.path, found=content.head[0], hint=hint)
    return FORMATS[winners[0]]()
