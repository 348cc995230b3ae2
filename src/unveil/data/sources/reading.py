"""Reading a log: find the file, tell its format, type its columns, index its ids."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from unveil.data.interactions import Interactions
from unveil.data.sources.content import Content
from unveil.data.sources.database import is_url, read_query
from unveil.data.sources.locate import is_packed, located
from unveil.data.sources.options import ReadOptions
from unveil.data.sources.registry import detected, named
from unveil.data.sources.table import Table
from unveil.data.sources.typed import refuse_empty_ids, typed
from unveil.data.vocabulary import Vocabulary
from unveil.errors import UnveilError


def read(source: str | Path, options: ReadOptions, *, even_one: bool = False) -> Interactions:
    """The whole log, or one clear error; never a part of it. `even_one`: a single user or item will do."""
    if is_packed(source):
        return _packed(Path(source), options)
    table = _table(source, options)
    if not len(table.frame):
        raise UnveilError("no rows", where=table.source, expected="at least one event", hint="Check the file.")
    log = Interactions.from_frame(typed(table, options.time_unit))
    refuse_empty_ids(table, log)
    if not even_one:
        refuse_trivial(log.users, log.items, table.source)
    return log


def _packed(folder: Path, options: ReadOptions) -> Interactions:
    from unveil.data.packed import PackedLog

    if options != ReadOptions():
        hint = "Leave the options for reading out, or pack the log again with them."
        raise UnveilError("how to read a packed log was said when it was packed", where=folder, hint=hint)
    return PackedLog.open(folder)


def _table(source: str | Path, options: ReadOptions) -> Table:
    if isinstance(source, str) and is_url(source):
        return read_query(source, options)
    if options.query:
        raise UnveilError("--query is for a database", where=source, hint="Name a database URL, or leave --query out.")
    return _from_file(located(source), options)


def _from_file(path: Path, options: ReadOptions) -> Table:
    with explained(path), unchanged(path):
        content = Content.of(path, options.encoding)
        if not content.start:
            raise UnveilError("the file is empty", where=path, expected="a log")
        chosen = named(options.format) if options.format else detected(content, options)
        return chosen.read(content, options)


def refuse_trivial(users: Vocabulary, items: Vocabulary, source: object) -> None:
    """A log of one user, or of one item, says nothing."""
    for name, ids, use in (("user", users, "learn from"), ("item", items, "choose between")):
        if len(ids) == 1:
            raise UnveilError(
                f"one {name} only ({ids[0]!r}): nothing to {use}",
                where=source,
                expected=f"at least two {name}s",
                hint=f"Check that --{name}-col names the right column.",
            )


@contextmanager
def unchanged(path: Path) -> Iterator[None]:
    """Refuse a file that somebody writes to while it is read."""
    before = _state(path)
    yield
    if _state(path) != before:
        raise UnveilError(
            "the file changed while it was read", where=path, hint="Wait until it is written, and run again."
        )


def _state(path: Path) -> tuple[int, int, int]:
    status = os.stat(path)
    return status.st_size, status.st_mtime_ns, status.st_ino


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn what the operating system says about reading into a message."""
    try:
        yield
    except OSError as error:
        raise UnveilError(f"cannot read: {error.strerror or error}", where=path) from None
    except MemoryError:
        raise UnveilError("too large for the memory of this machine", where=path) from None
