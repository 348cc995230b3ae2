"""Readers: any log in, exactly. Find the file, detect its format, type its columns, index its ids."""

import os
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path

import polars as pl

from unveil.data.indexing import Vocabulary
from unveil.data.interactions import Interactions, Log, named_source
from unveil.data.readers.base import FORMATS, detect
from unveil.data.readers.content import Content, unpacked
from unveil.data.readers.database import is_url, read_query
from unveil.data.readers.table import ReadOptions, Table, assign_roles, check_blank_ids, ids, optional
from unveil.errors import UnveilError

#: Files that a data set's folder is known by.
KNOWN = ("u.data", "ratings.dat", "ratings.csv", "ratings.csv.gz", "ratings.dat.gz")
PACKED = "packed.json"  # The file that a packed log is known by
#: The options of reading, as hints name them.
_OPTION = re.compile(r"--(?:[a-z]+-col|format|time-unit|encoding|query)\b")


def read(source: Log, options: ReadOptions, *, even_one: bool = False) -> Interactions:
    """The whole log, or one clear error; never a part of it. `even_one`: a single user or item will do."""
    if isinstance(source, str | Path) and os.path.exists(os.path.join(source, PACKED)):
        from unveil.data.packed import PackedLog

        if options != ReadOptions():
            hint = "Leave the options for reading out, or pack the log again with them."
            raise UnveilError("how to read a packed log was said when it was packed", where=source, hint=hint)
        return PackedLog.open(Path(source))
    table = _table(source, options)
    if not len(table.frame):
        raise UnveilError("no rows", where=table.source, expected="at least one event", hint="Check the file.")
    log = Interactions.from_frame(typed(table, options.time_unit))
    for role, vocabulary in (("user", log.users), ("item", log.items)):
        check_blank_ids(table, role, vocabulary)
    if not even_one:
        check_not_trivial(log.users, log.items, table.source)
    return log


def typed(table: Table, time_unit: str | None) -> pl.DataFrame:
    """The frame that `Interactions.from_frame` needs."""
    return pl.DataFrame([ids(table, "user"), ids(table, "item"), *optional(table, time_unit)])


def check_not_trivial(users: Vocabulary, items: Vocabulary, source: object) -> None:
    """A log of one user, or of one item, says nothing."""
    for name, found, use in (("user", users, "learn from"), ("item", items, "choose between")):
        if len(found) == 1:
            problem, expected = f"one {name} only ({found[0]!r}): nothing to {use}", f"at least two {name}s"
            hint = f"Check that --{name}-col names the right column."
            raise UnveilError(problem, where=source, expected=expected, hint=hint)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Inside, errors of the operating system are explained; a file that was written to meanwhile is an error."""
    try:
        before = _state(path)
        yield
        changed = _state(path) != before
    except OSError as error:
        raise UnveilError(f"cannot read: {error.strerror or error}", where=path) from None
    except MemoryError:
        raise UnveilError("too large for the memory of this machine", where=path) from None
    if changed:
        hint = "Wait until it is written, and run again."
        raise UnveilError("the file changed while it was read", where=path, hint=hint)


@contextmanager
def convert_first(source: str | Path) -> Iterator[None]:
    """Inside, hints that name an option of reading send people to `unveil data convert`, which has them."""
    try:
        yield
    except UnveilError as error:
        if error.hint is None or not _OPTION.search(error.hint):
            raise
        command = f"unveil data convert {shlex.quote(str(source))} -o converted.csv"
        hint = f"Convert the log first and name the new file here: `{command}` has the options for it. {error.hint}"
        raise UnveilError(
            error.problem, where=error.where, found=error.found, expected=error.expected, hint=hint
        ) from None


def _table(source: Log, options: ReadOptions) -> Table:
    if not isinstance(source, str | Path):
        frame = source if isinstance(source, pl.DataFrame) else pl.DataFrame({n: list(source[n]) for n in source})
        names = assign_roles(frame.columns, options.columns, named_source(source))
        return Table(named_source(source), frame.select(**names), names)
    if isinstance(source, str) and is_url(source):
        return read_query(source, options)
    if options.query:
        raise UnveilError("--query is for a database", where=source, hint="Name a database URL, or leave --query out.")
    path = _located(source)
    with reading(path):
        content = Content(path, unpacked(path), options.encoding)
        if not content.start:
            raise UnveilError("the file is empty", where=path, expected="a log")
        return (FORMATS[options.format]() if options.format else detect(content, options)).read(content, options)


def _located(source: str | Path) -> Path:
    """A path, a folder with a known file in it, or the name of a data set; what is on the disk comes before a name."""
    path = Path(source)
    try:
        path = _inside(path) if path.is_dir() else path
        if not path.exists():
            from unveil.data.fetch import located as fetched

            return (fetched(source) if isinstance(source, str) else None) or _absent(path)
        if not path.is_file():
            raise UnveilError("not a file", where=path, hint="Name a file on the disk.")
        if not os.access(path, os.R_OK, effective_ids=os.access in os.supports_effective_ids):
            raise UnveilError("permission denied", where=path, hint="Ask for the right to read it.")
        return path
    except OSError as error:
        raise UnveilError(f"cannot read: {error.strerror}", where=path) from None
    except ValueError:
        raise UnveilError("not the name of a file", found=str(source)) from None


def _inside(folder: Path) -> Path:
    found = [folder / name for name in KNOWN if (folder / name).is_file()] or sorted(folder.glob("*.inter"))
    if len(found) == 1:
        return found[0]
    names = [path.name for path in found] or sorted(path.name for path in folder.iterdir())[:10]
    problem = f"a folder with {'several logs' if found else 'no known log'} in it: {', '.join(names) or 'it is empty'}"
    in_parts = not found and any(folder.rglob("*.parquet"))
    hint = f"Pack its Parquet files: unveil data pack {folder} -o PACKED." if in_parts else "Name the file itself."
    raise UnveilError(problem, where=folder, hint=hint)


def _absent(path: Path) -> Path:
    folder = path.parent
    if not folder.is_dir():
        raise UnveilError("no such file: its folder does not exist", where=path, hint="Check the path.")
    close = get_close_matches(path.name, [neighbour.name for neighbour in folder.iterdir()], n=3)
    hint = f"Did you mean {' or '.join(close)}?" if close else "Check the path, or the name of the data set."
    raise UnveilError("no such file", where=path, hint=hint)


def _state(path: Path) -> tuple[int, int, int]:
    status = os.stat(path)
    return status.st_size, status.st_mtime_ns, status.st_ino
