"""The content of one file: unpacked, its text in UTF-8, with its beginning at hand to detect the format."""

import codecs
import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from mmap import ACCESS_READ, mmap
from pathlib import Path

import polars as pl
import zstandard

from unveil.errors import UnveilError

HEAD = 1 << 16

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_FOREIGN = {
    b"PK\x03\x04": ("a zip archive", "Extract it first."),
    b"SQLite format 3\0": ("a SQLite database", "Read it as sqlite:///PATH with --query."),
    b"BZh": ("a bzip2 file", "Unpack it first, or pack it as .gz or .zst."),
    b"\xfd7zXZ": ("an xz file", "Unpack it first, or pack it as .gz or .zst."),
    b"%PDF": ("a PDF file", "Name a log."),
}
Body = Path | bytes
#: What is unpacked of a file is so many times its size, or so many bytes, at most: logs open to 3 to 30 times theirs.
_EXPANSION, _ALWAYS_ALLOWED = 100, 1 << 26
_PART = 1 << 20


@dataclass(frozen=True)
class Content:
    """One file. `raw` is what `unpacked` gives."""

    path: Path
    raw: Body
    encoding: str = "utf-8"

    @cached_property
    def start(self) -> bytes:
        return _beginning(self.raw, HEAD)

    @cached_property
    def body(self) -> Body:
        for magic, (kind, hint) in _FOREIGN.items():
            if self.start.startswith(magic):
                raise UnveilError(f"this is {kind}, not a log", where=self.path, hint=hint)
        if not _is_utf8(self.encoding):
            return _to_utf8(self.path, whole(self.raw), self.encoding).removeprefix(codecs.BOM_UTF8)
        if wide := _utf16(self.start):
            raise UnveilError("wrong encoding: the text is in UTF-16", where=self.path, hint=f"Pass --encoding {wide}.")
        return whole(self.raw).removeprefix(codecs.BOM_UTF8) if self.start.startswith(codecs.BOM_UTF8) else self.raw

    @cached_property
    def text_start(self) -> str:
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
        filled = (number for number, line in enumerate(self.text_start.split("\n")) if line.strip())
        return next(islice(filled, int(header), None), self.text_start.count("\n") + 1)

    @contextmanager
    def lines(self) -> Iterator[Iterator[str]]:
        raw = io.BytesIO(self.body) if isinstance(self.body, bytes) else self.body.open("rb")
        with io.TextIOWrapper(raw, encoding="utf-8", errors="replace", newline="\n") as text:
            yield text

    def line_of(self, row: int) -> int:
        """The line, counted from 1, that is number `row`, counted from 0, of those that are not blank."""
        with self.lines() as lines:
            filled = (number for number, line in enumerate(lines, start=1) if line.strip())
            return next(islice(filled, row, None), row + 1)

    def has_quotes(self) -> bool:
        if isinstance(self.body, bytes):
            return b'"' in self.body
        with self.body.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as view:
            return view.find(b'"') >= 0

    def as_lines(self) -> pl.DataFrame:
        """A column `line` of all lines, as they are."""
        schema, no_character = {"line": pl.String}, "\x01"
        return pl.read_csv(
            self.body, has_header=False, separator=no_character, quote_char=None, schema=schema, glob=False
        )

    def for_polars(self) -> Body:
        """The body, for readers that would take `*` or `[` in a path for a pattern."""
        is_pattern = isinstance(self.body, Path) and bool(set("*?[") & set(str(self.body)))
        return whole(self.body) if is_pattern else self.body

    def check_encoding(self) -> None:
        _to_utf8(self.path, whole(self.body), "utf-8")


def unpacked(path: Path) -> Body:
    """All of the content of a .gz or .zst file, known by its first bytes; any other file stays on the disk."""
    start = _beginning(path, 16)
    if not start.startswith((_GZIP, _ZSTD)):
        return path
    most, parts, size = max(_ALWAYS_ALLOWED, _EXPANSION * path.stat().st_size), list[bytes](), 0
    try:
        for part in _from_gzip(path) if start.startswith(_GZIP) else _from_zstd(path):
            parts.append(part)
            if (size := size + len(part)) > most:
                found, expected = f"more than {most:,} bytes", f"at most {_EXPANSION} times its size"
                hint = "If the file is sound, unpack it yourself and name what comes out."
                raise UnveilError("too much to unpack", where=path, found=found, expected=expected, hint=hint)
        return b"".join(parts)
    except MemoryError:
        raise UnveilError("too large for the memory of this machine", where=path) from None
    except (OSError, EOFError, zlib.error, zstandard.ZstdError) as error:
        found, hint = str(error) or type(error).__name__, "Copy or download it again."
        raise UnveilError("the packed file is cut off or damaged", where=path, found=found, hint=hint) from None


def _from_gzip(path: Path) -> Iterator[bytes]:
    with gzip.open(path) as file:
        while part := file.read(_PART):
            yield part


def _from_zstd(path: Path) -> Iterator[bytes]:
    """All frames, one after another; the library does not itself object to a last frame that is cut off. A little goes
    in at a time, for a block of 4 bytes may come out as 128 KiB."""
    frame = None
    with path.open("rb") as file:
        while part := file.read(_PART >> 8):
            while part:
                frame = frame or zstandard.ZstdDecompressor().decompressobj()
                yield frame.decompress(part)
                part = frame.unused_data if frame.eof else b""
                frame = None if frame.eof else frame
    if frame is not None:
        raise EOFError("the last frame has no end")


def _beginning(body: Body, size: int) -> bytes:
    if isinstance(body, bytes):
        return body[:size]
    with body.open("rb") as file:
        return file.read(size)


def whole(body: Body) -> bytes:
    """All bytes, read from the disk where they are there."""
    return body if isinstance(body, bytes) else body.read_bytes()


def _is_utf8(encoding: str) -> bool:
    try:
        return codecs.lookup(encoding).name in ("utf-8", "utf-8-sig", "ascii")
    except LookupError:
        raise UnveilError("unknown encoding", found=encoding, hint="Try utf-8, latin-1 or utf-16.") from None


def _to_utf8(path: Path, content: bytes, encoding: str) -> bytes:
    """The text in UTF-8, or an error that names the first byte that is not text in this encoding."""
    try:
        return content.decode(encoding).encode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        problem = f"wrong encoding: byte 0x{content[error.start]:02x} is not {encoding}"
        hint = f"Pass --encoding {'latin-1' if encoding == 'utf-8' else 'utf-8'}, or save the file as UTF-8."
        raise UnveilError(problem, where=f"{path}, row {line}, byte {error.start}", hint=hint) from None
    except (LookupError, UnicodeError) as error:
        raise UnveilError(f"cannot decode: {error}", where=path, hint="Try another --encoding.") from None


def _utf16(start: bytes) -> str | None:
    """Text in UTF-16 says so with its first two bytes; or, without them, has a zero for most second or first bytes."""
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    sides = (("utf-16-le", start[1::2], start[::2]), ("utf-16-be", start[::2], start[1::2]))
    return next((name for name, empty, full in sides if empty.count(0) > 0.7 * len(empty) and not full.count(0)), None)
