"""What a format is, and which of all formats a file is of."""

import re
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
    row: ClassVar[str] = ""  # what each line is, where none is a header

    def likeness(self, content: Content, options: ReadOptions) -> Likeness:
        """How much the beginning of the file looks like this format."""
        return Likeness.NO

    def fits(self, line: str) -> bool:
        """Whether a line is such a row; a format with a header finds that out when it reads."""
        return True

    def rows(self, content: Content) -> list[str]:
        """The lines of the beginning that are rows, if these are nearly all: `detect` refuses the others by name."""
        fitting = [line for line in content.head if self.fits(line)]
        is_header = len(fitting) < len(content.head) and not re.search(r"\d|^\s*{", content.head[0])
        return [] if is_header or not are_nearly_all(len(fitting), len(content.head)) else fitting

    @abstractmethod
    def read(self, content: Content, options: ReadOptions) -> Table:
        """The whole file, columns by role."""


def are_nearly_all(count: int, lines: int) -> bool:
    """Whether what is left of these lines, one or a tenth, can be damage."""
    return lines - count <= max(1, lines // 10) and lines - count < count


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
    format = FORMATS[winners[0]]()
    _check_rows(content, format)
    return format


def _check_rows(content: Content, found: Format) -> None:
    """Nearly all lines are of the format: one that is not is damaged, and no sign of another format."""
    odd = next((n for n, line in enumerate(content.head) if not found.fits(line)), None)
    if odd is not None and found.rows(content):
        problem = f"the line is damaged: nearly all others are as in {found.name}"
        where, hint = f"{content.path}, row {content.line_of(odd)}", "Correct the line, or name another --format."
        raise UnveilError(problem, where=where, found=content.head[odd], expected=found.row, hint=hint)
