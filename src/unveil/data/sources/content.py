"""The content of one file: unpacked, its text in UTF-8, with its beginning at hand to tell the format by."""

import codecs
import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path

from unveil.data.sources import encodings
from unveil.data.sources.unpack import is_packed, unpacked
from unveil.errors import UnveilError

HEAD = 1 << 16

_FOREIGN = {
    b"PK\x03\x04": ("a zip archive", "Extract it first."),
    b"SQLite format 3\0": ("a SQLite database", "Read it as sqlite:///PATH with --query."),
    b"BZh": ("a bzip2 file", "Unpack it first, or pack it as .gz or .zst."),
    b"\xfd7zXZ": ("an xz file", "Unpack it first, or pack it as .gz or .zst."),
    b"%PDF": ("a PDF file", "Name a log."),
}
Body = Path | bytes


@dataclass(frozen=True)
class Content:
    """One file. `raw` is the unpacked content; a plain file stays on the disk."""

    path: Path
    raw: Body
    encoding: str = "utf-8"

    @classmethod
    def of(cls, path: Path, encoding: str) -> "Content":
        """Open a file, packed or not."""
        return cls(path, unpacked(path) if is_packed(_beginning(path, 16)) else path, encoding)

    @cached_property
    def start(self) -> bytes:
        """The first bytes, whatever they are."""
        return _beginning(self.raw, HEAD)

    @cached_property
    def body(self) -> Body:
        """The content as text in UTF-8; what cannot be text is refused."""
        self._refuse_foreign()
        if encodings.is_utf8(self.encoding):
            return _all(self.raw).removeprefix(codecs.BOM_UTF8) if self.start.startswith(codecs.BOM_UTF8) else self.raw
        return encodings.recoded(self.path, _all(self.raw), self.encoding)

    @cached_property
    def text_start(self) -> str:
        """The beginning of the text."""
        start = _beginning(self.body, HEAD)
        try:
            text = codecs.getincrementaldecoder("utf-8")().decode(start, len(start) < HEAD)
        except UnicodeDecodeError:
            self.check_encoding()
            raise
        if "\0" in text:
            raise UnveilError("a binary file, not a log", where=self.path, hint="Name a text or Parquet file.")
        if "\n" not in text and "\r" in text.rstrip("\r"):
            hint = f"Write it anew with line feeds: tr '\\r' '\\n' < {self.path.name} > new-{self.path.name}"
            raise UnveilError("the lines end in CR alone", where=self.path, expected="LF or CR LF", hint=hint)
        return text

    @cached_property
    def head(self) -> list[str]:
        """The first lines that are not blank, without their ends; only a very long line may be cut."""
        lines = self.text_start.split("\n")
        whole = lines[:-1] if len(self.text_start.encode()) >= HEAD - 4 and len(lines) > 1 else lines
        filled = [line for line in (line.removesuffix("\r").replace("\r", " ") for line in whole) if line.strip()]
        if not filled:
            raise UnveilError("the file is empty", where=self.path, expected="a log")
        return filled

    def lines_before_rows(self, *, header: bool) -> int:
        """How many lines come before the first row: blank ones, the header if there is one, blank ones again."""
        above = 0
        for line in self.text_start.split("\n"):
            if line.strip() and not header:
                break
            header = header and not line.strip()
            above += 1
        return above

    @contextmanager
    def lines(self) -> Iterator[Iterator[str]]:
        """All lines one by one, with their ends; what is no text is replaced."""
        raw = io.BytesIO(self.body) if isinstance(self.body, bytes) else self.body.open("rb")
        with io.TextIOWrapper(raw, encoding="utf-8", errors="replace", newline="\n") as text:
            yield text

    def line_of(self, row: int) -> int:
        """The line, counted from 1, that is number `row`, counted from 0, of those that are not blank."""
        with self.lines() as lines:
            filled = (number for number, line in enumerate(lines, start=1) if line.strip())
            return next(islice(filled, row, None), row + 1)

    def for_polars(self) -> Body:
        """The body, for readers that would take `*` or `[` in a path for a pattern."""
        is_pattern = isinstance(self.body, Path) and bool(set("*?[") & set(str(self.body)))
        return _all(self.body) if is_pattern else self.body

    def check_encoding(self) -> None:
        """Raise an error that names the first byte that is not UTF-8, if there is one."""
        encodings.check(self.path, _all(self.body), "utf-8")

    def _refuse_foreign(self) -> None:
        for magic, (kind, hint) in _FOREIGN.items():
            if self.start.startswith(magic):
                raise UnveilError(f"this is {kind}, not a log", where=self.path, hint=hint)
        if encodings.is_utf8(self.encoding):
            encodings.refuse_wide(self.path, self.start)


def _beginning(body: Body, size: int) -> bytes:
    if isinstance(body, bytes):
        return body[:size]
    with body.open("rb") as file:
        return file.read(size)


def _all(body: Body) -> bytes:
    return body if isinstance(body, bytes) else body.read_bytes()
