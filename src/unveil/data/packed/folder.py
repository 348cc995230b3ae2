"""A packed log as a folder: flat columns, histories, vocabularies, and a manifest that is written last.

```
packed.json                        sizes, steps, the log's fingerprint, a hash of the histories, the bytes of every file
user.npy, item.npy, time.npy, …    the log in file order, a file for each column it has
history-item.npy, -step, -event    every user's history, oldest first, end to end; -offset: where each user's begin
users.arrow, items.arrow           the ids in order: the place of an id is its index
```
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unveil import __version__
from unveil.data.interactions import OPTIONAL, Interactions
from unveil.data.mapped import blocks, column_file, mapped, release
from unveil.data.readers import PACKED
from unveil.data.sequences import Sequences
from unveil.data.vocabulary import Index, Vocabulary
from unveil.errors import UnveilError
from unveil.files import write_whole

Tell = Callable[[int, int], None]
A = TypeVar("A")

#: Share of the time that each stage takes; measured on 100 million events.
STAGES = {"judge": 5, "ingest": 55, "leave out": 30, "lay out": 30, "hash": 10}
_WHOLE = 1000


class Progress:
    """One line of progress through several stages."""

    def __init__(self, tell: Tell | None, stages: Iterable[str]) -> None:
        self._tell, self._done = tell or (lambda done, whole: None), 0.0
        chosen = {name: STAGES[name] for name in stages}
        self._share: Mapping[str, float] = {name: weight / sum(chosen.values()) for name, weight in chosen.items()}

    def through(self, stage: str, steps: Iterable[A], total: float, size: Callable[[A], float]) -> Iterator[A]:
        """Go through the steps of a stage, each of which is `size` of its `total`."""
        begun, done = self._done, 0.0
        for step in steps:
            yield step
            done += size(step)
            self._at(begun + self._share[stage] * min(1.0, done / total))
        self._at(begun + self._share[stage])

    def finish(self) -> None:
        """All is done, stages that there was no need for included."""
        self._at(1.0)

    def _at(self, done: float) -> None:
        self._done = done
        self._tell(min(_WHOLE, int(_WHOLE * done)), _WHOLE)


#: The files of the histories, by their name in `Sequences`.
HISTORIES = {
    "item_N": "history-item.npy",
    "step_N": "history-step.npy",
    "event_N": "history-event.npy",
    "offset_U1": "history-offset.npy",
}
#: Type of each role's column.
KINDS: Mapping[str, np.dtype[Any]] = {"user": np.dtype(np.int32), "item": np.dtype(np.int32), **OPTIONAL}


def column_path(folder: Path, role: str) -> Path:
    """The file of a role's column."""
    return folder / f"{role}.npy"


@dataclass(frozen=True, eq=False)
class Columns:
    """A log in a folder, with its vocabularies at hand."""

    folder: Path
    roles: tuple[str, ...]
    users: Vocabulary
    items: Vocabulary

    def __getitem__(self, role: str) -> NDArray[Any]:
        return mapped(column_path(self.folder, role))

    def __len__(self) -> int:
        return len(self["user"])

    def blocks(self, *roles: str) -> Iterator[tuple[slice, list[NDArray[Any]]]]:
        """Which rows, and these columns of them, block by block from end to end."""
        columns = [self[role] for role in roles]
        for rows in blocks(len(columns[0])):
            yield rows, [column[rows] for column in columns]
            release(*columns)

    def taken(self, *roles: str) -> Iterator[tuple[slice, NDArray[np.bool_], list[NDArray[Any]]]]:
        """The same, with the rows that users took: all of them, or those with `clicked`."""
        asked = [*roles, "clicked"] if "clicked" in self.roles else list(roles)
        for rows, columns in self.blocks(*asked):
            taken_B = columns[-1] if len(asked) > len(roles) else np.ones(rows.stop - rows.start, np.bool_)
            yield rows, taken_B, columns[: len(roles)]


def recoded(path: Path, place: Index) -> None:
    """Put each code of a column file in its place, where it stands."""
    column = mapped(path)
    size, start, width = len(column), path.stat().st_size - column.nbytes, column.itemsize
    with path.open("r+b") as file:
        for rows in blocks(size):
            block = np.fromfile(path, column.dtype, rows.stop - rows.start, offset=start + rows.start * width)
            file.seek(start + rows.start * width)
            file.write(place[block].data)


def rewritten(path: Path, kind: np.dtype[Any], size: int, parts: Iterator[NDArray[Any]]) -> None:
    """Replace a column file by these parts of it."""
    draft = path.with_suffix(".new")
    with column_file(draft, kind, size) as append:
        for part in parts:
            append(part)
    draft.replace(path)


FORMAT = "unveil packed log 1"
MANIFEST, USERS, ITEMS = PACKED, "users.arrow", "items.arrow"
AGAIN = "Pack the log again, or copy the folder again from where it came."
_NOT_PACKED = "Name a folder that `unveil data pack` wrote."


@dataclass(frozen=True)
class Manifest:
    """What a packed folder says it is."""

    events: int
    interactions: int
    n_steps: int
    columns: tuple[str, ...]
    fingerprint: str  # of the log, as `Interactions.fingerprint`
    histories: str  # hash of the files of the histories
    filters: dict[str, Any]  # what was left out when it was packed
    bytes: dict[str, int]  # of every file

    @classmethod
    def read(cls, folder: Path) -> "Manifest":
        """The manifest of a folder; one that does not describe what is there is refused."""
        path = folder / MANIFEST
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            if not isinstance(content, dict) or content.pop("format", None) != FORMAT:
                raise UnveilError("not a packed log of this version", where=path, expected=repr(FORMAT), hint=AGAIN)
            seal = content.pop("sha256", None)
            if seal != _seal(content):
                raise UnveilError("the manifest was changed since it was written", where=path, hint=AGAIN)
            del content["unveil"]
            manifest = cls(**content | {"columns": tuple(content["columns"])})
        except (FileNotFoundError, NotADirectoryError):
            raise UnveilError("not a packed log", where=folder, expected=MANIFEST, hint=_NOT_PACKED) from None
        except (ValueError, LookupError, TypeError, RecursionError) as error:
            raise UnveilError(f"not a manifest: {error}", where=path, hint=AGAIN) from None
        manifest._refuse_other_files(folder)
        return manifest

    def write(self, folder: Path) -> None:
        """Write it, sealed."""
        content = {"unveil": __version__, **asdict(self)}
        sealed = {"format": FORMAT, **content, "sha256": _seal(json.loads(json.dumps(content)))}
        write_whole(folder / MANIFEST, json.dumps(sealed, indent=1) + "\n")

    def _refuse_other_files(self, folder: Path) -> None:
        for name, size in self.bytes.items():
            path = folder / name
            if not path.is_file():
                raise UnveilError("a file of the packed log is missing", where=path, hint=AGAIN)
            if (found := path.stat().st_size) != size:
                raise UnveilError(
                    "not as the manifest says", where=path, found=f"{found} bytes", expected=f"{size}", hint=AGAIN
                )


def _seal(content: dict[str, Any]) -> str:
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def write_vocabulary(ids: Vocabulary, path: Path) -> None:
    """The ids, as they are laid out in memory."""
    content = BytesIO()
    ids.ids.to_frame().write_ipc(content, compression="uncompressed")
    path.write_bytes(content.getbuffer())


def read_vocabulary(path: Path) -> Vocabulary:
    """What `write_vocabulary` wrote."""
    try:
        return Vocabulary.of_sorted(pl.read_ipc(path)["id"])
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise UnveilError(f"the ids cannot be read: {error}", where=path, hint=AGAIN) from None


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


@dataclass(frozen=True, eq=False, repr=False)
class PackedLog(Interactions):
    """The log of a folder that `pack` wrote."""

    folder: Path = field(kw_only=True)
    manifest: Manifest = field(kw_only=True)

    @classmethod
    def open(cls, folder: Path) -> "PackedLog":
        """Take a folder at its manifest's word, and read nothing else; `verify` reads it all."""
        manifest = Manifest.read(folder)
        columns = {role: _column(column_path(folder, role), manifest.events, KINDS[role]) for role in manifest.columns}
        users, items = (read_vocabulary(folder / name) for name in (USERS, ITEMS))
        return cls(users=users, items=items, folder=folder, manifest=manifest, **columns)

    def histories(self) -> Sequences:
        """The histories as they were laid out, oldest first; nothing is read yet."""
        taken, users = (self.manifest.interactions, np.dtype(np.int32)), (len(self.users) + 1, np.dtype(np.int64))
        sizes = {name: users if name == "offset_U1" else taken for name in HISTORIES}
        laid = {name: _column(self.folder / file, *sizes[name]) for name, file in HISTORIES.items()}
        return Sequences(clock=self.time, n_items=len(self.items), n_steps=self.manifest.n_steps, **laid)

    def order(self) -> Index:
        """Row numbers by user, then clock: those of the histories, where these hold every row."""
        return self.histories().event_N if self.clicked is None else super().order()

    def fingerprint(self) -> str:
        """The hash of the whole content, as it was when the log was packed."""
        return self.manifest.fingerprint

    def verify(self, tell: Tell | None = None) -> None:
        """Read everything, and refuse a folder whose content is not what was packed."""
        columns = Columns(self.folder, self.manifest.columns, self.users, self.items)
        found = hashes(columns, Progress(tell, ["hash"]))
        if found != (self.manifest.fingerprint, self.manifest.histories):
            raise UnveilError("the content is not what was packed", where=self.folder, hint=AGAIN)


def _column(path: Path, size: int, kind: np.dtype[Any]) -> NDArray[Any]:
    """A mapped column of this type and size; anything else does not belong here."""
    try:
        column = mapped(path)
    except (ValueError, OSError) as error:
        raise UnveilError(f"not a column: {error}", where=path, hint=AGAIN) from None
    if column.dtype != kind or column.shape != (size,):
        found, expected = f"{column.shape} of {column.dtype}", f"{(size,)} of {kind}"
        raise UnveilError("not as the manifest says", where=path, found=found, expected=expected, hint=AGAIN)
    return column
