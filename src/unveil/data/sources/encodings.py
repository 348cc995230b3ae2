"""Text in other encodings than UTF-8, and errors that name the byte."""

import codecs
from pathlib import Path

from unveil.errors import UnveilError


def is_utf8(encoding: str) -> bool:
    """Whether this is a name of UTF-8, or of a part of it."""
    try:
        return codecs.lookup(encoding).name in ("utf-8", "utf-8-sig", "ascii")
    except LookupError:
        raise UnveilError("unknown encoding", found=encoding, hint="Try utf-8, latin-1 or utf-16.") from None


def recoded(path: Path, content: bytes, encoding: str) -> bytes:
    """The same text in UTF-8."""
    check(path, content, encoding)
    return content.decode(encoding).removeprefix("\ufeff").encode()


def check(path: Path, content: bytes, encoding: str) -> None:
    """Raise an error that names the first byte that is not text in this encoding, if there is one."""
    try:
        content.decode(encoding).encode()
    except UnicodeDecodeError as error:
        raise _wrong(path, content, error.start, encoding) from None
    except (LookupError, UnicodeError) as error:
        raise UnveilError(f"cannot decode: {error}", where=path, hint="Try another --encoding.") from None


def refuse_wide(path: Path, start: bytes) -> None:
    """Text in UTF-16 says so with its first two bytes; or, without them, has a zero for most second or first bytes."""
    wide = "utf-16" if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else _unmarked(start)
    if wide is not None:
        raise UnveilError("wrong encoding: the text is in UTF-16", where=path, hint=f"Pass --encoding {wide}.")


def _unmarked(start: bytes) -> str | None:
    first, second = start[::2], start[1::2]
    for name, empty, full in (("utf-16-le", second, first), ("utf-16-be", first, second)):
        if empty.count(0) > 0.7 * len(empty) and not full.count(0):
            return name
    return None


def _wrong(path: Path, content: bytes, offset: int, encoding: str) -> UnveilError:
    line = content.count(b"\n", 0, offset) + 1
    other = "latin-1" if encoding == "utf-8" else "utf-8"
    return UnveilError(
        f"wrong encoding: byte 0x{content[offset]:02x} is not {encoding}",
        where=f"{path}, row {line}, byte {offset}",
        hint=f"Pass --encoding {other}, or save the file as UTF-8.",
    )
