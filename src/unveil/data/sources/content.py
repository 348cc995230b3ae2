"""The content of one file: unpacked, in UTF-8, with its beginning at hand to tell the format by."""

import codecs
import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from unveil.data.sources.unpack import is_packed, unpacked
from unveil.errors import UnveilError

HEAD = 1 << 16

_FOREIGN = {
    b"PK\x03\x04": ("a zip archive", "Extract it first."),
    b"SQLite format 3\0": ("a SQLite database", "Read it as sqlite:///PATH with --query."),
    b"\xff\xfe": ("text in UTF-16", "Pass --encoding utf-16."),
    b"\xfe\xff": ("text in UTF-16", "Pass --encoding utf-16."),
    b"BZh": ("a bzip2 file", "Unpack it first, or pack it as .gz or .zst."),
    b"\xfd7zXZ": ("an xz file", "Unpack it first, or pack it as .gz or .zst."),
    b"%PDF": ("a PDF file", "Name a log."),
}


@dataclass(frozen=True)
class Content:
    """A file whose text, where it is text, is UTF-8: as it lies on the disk, or unpacked or recoded in memory."""

    path: Path
    body: Path | bytes
    encoding: str

    @classmethod
    def of(cls, path: Path, encoding: str) -> "Content":
        """Open a file. Large plain files stay on the disk."""
        with path.open("rb") as file:
            start = file.read(16)
        body = unpacked(path) if is_packed(start) else path
        if _is_utf8(encoding) or _beginning(body, 4) == b"PAR1":
            return cls(path, body, "utf-8")
        return cls(path, _recoded(path, body if isinstance(body, bytes) else path.read_bytes(), encoding), encoding)

    @cached_property
    def start(self) -> bytes:
        """The first bytes."""
        return _beginning(self.body, HEAD)

    @cached_property
    def head(self) -> list[str]:
        """The first lines that are not blank, without their line ends; the last one may be cut where it is long."""
        lines = self.text_start.split("\n")
        whole = lines[:-1] if len(self.start) == HEAD and len(lines) > 1 else lines
        return [line for line in (line.removesuffix("\r") for line in whole) if line.strip()]

    @cached_property
    def text_start(self) -> str:
        """The beginning as text; what cannot be text is refused."""
        self._refuse_foreign()
        try:
            text = codecs.getincrementaldecoder("utf-8")().decode(self.start, len(self.start) < HEAD)
        except UnicodeDecodeError:
            self.check_encoding()
            raise
        return text.removeprefix("\ufeff")

    @cached_property
    def blank_lines(self) -> int:
        """How many blank lines come first."""
        text = self.text_start
        return text.count("\n", 0, len(text) - len(text.lstrip("\r\n")))

    @contextmanager
    def lines(self) -> Iterator[Iterator[str]]:
        """All lines one by one, with their ends; what is no text is replaced."""
        raw = io.BytesIO(self.body) if isinstance(self.body, bytes) else self.body.open("rb")
        with io.TextIOWrapper(raw, encoding="utf-8-sig", errors="replace", newline="\n") as text:
            yield text

    def bytes(self) -> bytes:
        """All of it."""
        return self.body if isinstance(self.body, bytes) else self.body.read_bytes()

    def check_encoding(self) -> None:
        """Raise an error that names the first byte that is not UTF-8, if there is one."""
        content = self.bytes()
        try:
            content.decode("utf-8")
        except UnicodeDecodeError as error:
            raise _wrong_encoding(self.path, content, error.start, "utf-8") from None

    def _refuse_foreign(self) -> None:
        for magic, (kind, hint) in _FOREIGN.items():
            if self.start.startswith(magic):
                raise UnveilError(f"this is {kind}, not a log", where=self.path, hint=hint)
        if b"\0" in self.start:
            raise UnveilError("a binary file, not a log", where=self.path, hint="Name a text or Parquet file.")


def _beginning(body: Path | bytes, size: int) -> bytes:
    if isinstance(body, bytes):
        return body[:size]
    with body.open("rb") as file:
        return file.read(size)


def _is_utf8(encoding: str) -> bool:
    try:
        return codecs.lookup(encoding).name in ("utf-8", "utf-8-sig", "ascii")
    except LookupError:
        raise UnveilError("unknown encoding", found=encoding, hint="Try utf-8, latin-1 or utf-16.") from None


def _recoded(path: Path, content: bytes, encoding: str) -> bytes:
    try:
        return content.decode(encoding).encode()
    except UnicodeDecodeError as error:
        raise _wrong_encoding(path, content, error.start, encoding) from None
    except (LookupError, UnicodeError) as error:
        raise UnveilError(f"cannot decode: {error}", where=path, hint="Try another --encoding.") from None


def _wrong_encoding(path: Path, content: bytes, offset: int, encoding: str) -> UnveilError:
    line = content.count(b"\n", 0, offset) + 1
    other = "latin-1" if encoding == "utf-8" else "utf-8"
    return UnveilError(
        f"wrong encoding: byte 0x{content[offset]:02x} is not {encoding}",
        where=f"{path}, row {line}, byte {offset}",
        hint=f"Pass --encoding {other}, or save the file as UTF-8.",
    )
