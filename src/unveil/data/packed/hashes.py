"""Hashes of a packed log, a block at a time: of the log, the same as in memory, and of the files of its histories."""

from collections.abc import Iterator
from hashlib import sha256
from itertools import chain
from pathlib import Path

from unveil.data.mapped import blocks
from unveil.data.packed.columns import Columns, column_path
from unveil.data.packed.lay_out import HISTORIES
from unveil.data.packed.progress import Progress
from unveil.data.vocabulary import Vocabulary

_CHUNK = 1 << 24


def hashes(columns: Columns, progress: Progress) -> tuple[str, str]:
    """The fingerprint of the log (see `Interactions.fingerprint`), and a hash of the histories."""
    digests = {"log": sha256(), "histories": sha256()}
    chunks = chain(
        (("log", chunk) for chunk in _log(columns)),
        (("histories", chunk) for name in HISTORIES.values() for chunk in _end_of(columns.folder / name)),
    )
    total = sum(path.stat().st_size for path in columns.folder.iterdir())
    for name, chunk in progress.through("hash", chunks, total, lambda step: len(step[1])):
        digests[name].update(chunk)
    return digests["log"].hexdigest(), digests["histories"].hexdigest()


def _log(columns: Columns) -> Iterator[bytes]:
    for ids in (columns.users, columns.items):
        yield from _joined(ids)
    for role in columns.roles:
        yield role.encode()
        yield from _end_of(column_path(columns.folder, role), columns[role].nbytes)


def _joined(ids: Vocabulary) -> Iterator[bytes]:
    """The ids with zero bytes between them."""
    for part in blocks(len(ids)):
        yield (b"\0" if part.start else b"") + "\0".join(ids.ids[part]).encode()


def _end_of(path: Path, size: int | None = None) -> Iterator[bytes]:
    """The last `size` bytes of a file, or all of it; of a column file, its values without the header."""
    with path.open("rb") as file:
        if size is not None:
            file.seek(-size, 2)
        while chunk := file.read(_CHUNK):
            yield chunk
