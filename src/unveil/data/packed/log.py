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

FORMAT = "unveil packed log 1"
MANIFEST, USERS, ITEMS = PACKED, "users.arrow", "items.arrow"
#: The files of the histories, by their name in `Sequences`.
HISTORIES = {
    "item_N": "history-item.npy",
    "step_N": "history-step.npy",
    "event_N": "history-event.npy",
    "offset_U1": "history-offset.npy",
}
#: Type of each role's column.
KINDS: Mapping[str, np.dtype[Any]] = {"user": np.dtype(np.int32), "item": np.dtype(np.int32), **OPTIONAL}
#: Share of the time that each stage of packing needs; measured on 100 million events.
STAGES = {"clock": 5, "ingest": 55, "filter": 30, "histories": 30, "hash": 10}
_AGAIN = "Pack the log again, or copy the folder again from where it came."
_CHUNK = 1 << 24

A = TypeVar("A")
Tell = Callable[[int, int], None]  # so much is done, of so much


class Progress:
    """One line of progress through several stages, in parts of a thousand."""

    def __init__(self, tell: Tell | None, stages: Iterable[str]) -> None:
        self._tell, self._done, chosen = tell, 0.0, list(stages)
        self._share = {name: STAGES[name] / sum(map(STAGES.__getitem__, chosen)) for name in chosen}

    def through(self, stage: str, steps: Iterable[A], total: float, size: Callable[[A], float]) -> Iterator[A]:
        """Go through the steps of a stage, each of which is `size` of its `total`."""
        begun, done = self._done, 0.0
        for step in steps:
            yield step
            done += size(step)
            self.at(begun + self._share[stage] * min(1.0, done / total))
        self.at(begun + self._share[stage])

    def at(self, done: float) -> None:
        self._done = done
        if self._tell is not None:
            self._tell(min(1000, int(1000 * done)), 1000)


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns of a log in a folder, in file order, one flat file each; its vocabularies are in memory."""

    folder: Path
    roles: tuple[str, ...]
    users: Vocabulary
    items: Vocabulary

    def __getitem__(self, role: str) -> NDArray[Any]:
        return mapped(self.folder / f"{role}.npy")

    def __len__(self) -> int:
        return len(self["user"])

    def log(self) -> Interactions:
        return Interactions(users=self.users, items=self.items, **{role: self[role] for role in self.roles})

    def blocks(self, *roles: str) -> Iterator[tuple[slice, list[NDArray[Any]]]]:
        columns = [self[role] for role in roles]
        for rows in blocks(len(columns[0])):
            yield rows, [column[rows] for column in columns]
            release(*columns)

    def rewrite(self, role: str, size: int, parts: Iterable[NDArray[Any]]) -> None:
        draft = self.folder / f"{role}.new"
        with column_file(draft, KINDS[role], size) as append:
            for part in parts:
                append(part)
        draft.replace(draft.with_suffix(".npy"))


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
        path = folder / MANIFEST
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            if not isinstance(content, dict) or content.pop("format", None) != FORMAT:
                raise UnveilError("not a packed log of this version", where=path, expected=repr(FORMAT), hint=_AGAIN)
            if content.pop("sha256", None) != _seal(content):
                raise UnveilError("the manifest was changed since it was written", where=path, hint=_AGAIN)
            del content["unveil"]
            manifest = cls(**content | {"columns": tuple(content["columns"])})
        except (FileNotFoundError, NotADirectoryError):
            hint = "Name a folder that `unveil data pack` wrote."
            raise UnveilError("not a packed log", where=folder, expected=MANIFEST, hint=hint) from None
        except (ValueError, LookupError, TypeError, RecursionError) as error:
            raise UnveilError(f"not a manifest: {error}", where=path, hint=_AGAIN) from None
        for name, size in manifest.bytes.items():
            if not (folder / name).is_file():
                raise UnveilError("a file of the packed log is missing", where=folder / name, hint=_AGAIN)
            if (found := (folder / name).stat().st_size) != size:
                raise _unlike(folder / name, f"{found} bytes", f"{size}")
        return manifest

    def write(self, folder: Path) -> None:
        content = {"unveil": __version__, **asdict(self)}
        sealed = {"format": FORMAT, **content, "sha256": _seal(json.loads(json.dumps(content)))}
        write_whole(folder / MANIFEST, json.dumps(sealed, indent=1) + "\n")


def _seal(content: dict[str, Any]) -> str:
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _unlike(path: Path, found: str, expected: str) -> UnveilError:
    return UnveilError("not as the manifest says", where=path, found=found, expected=expected, hint=_AGAIN)


@dataclass(frozen=True, eq=False, repr=False)
class PackedLog(Interactions):
    """The log of a folder that `pack` wrote: its columns and histories stay on the disk until they are looked at."""

    folder: Path = field(kw_only=True)
    manifest: Manifest = field(kw_only=True)

    @classmethod
    def open(cls, folder: Path) -> "PackedLog":
        """Trust the folder's manifest, and read nothing else; `verify` reads it all."""
        manifest = Manifest.read(folder)
        columns = {role: _column(folder / f"{role}.npy", manifest.events, KINDS[role]) for role in manifest.columns}
        users, items = (_vocabulary(folder / name) for name in (USERS, ITEMS))
        return cls(users=users, items=items, folder=folder, manifest=manifest, **columns)

    def histories(self) -> Sequences:
        size, offsets = (self.manifest.interactions, np.dtype(np.int32)), (len(self.users) + 1, np.dtype(np.int64))
        columns = {
            name: _column(self.folder / file, *(offsets if name == "offset_U1" else size))
            for name, file in HISTORIES.items()
        }
        return Sequences(clock=self.time, n_items=len(self.items), n_steps=self.manifest.n_steps, **columns)

    def order(self) -> Index:
        """Row numbers by user, then clock: those of the histories, where these hold every row."""
        return self.histories().event_N if self.clicked is None else super().order()

    def fingerprint(self) -> str:
        return self.manifest.fingerprint

    def verify(self, tell: Tell | None = None) -> None:
        """Read everything: a folder whose content is not what was packed is an error."""
        known = (self.manifest.fingerprint, self.manifest.histories)
        if hashes(self, self.folder, Progress(tell, ["hash"])) != known:
            raise UnveilError("the content is not what was packed", where=self.folder, hint=_AGAIN)


def _column(path: Path, size: int, kind: np.dtype[Any]) -> NDArray[Any]:
    try:
        column = mapped(path)
    except (ValueError, OSError) as error:
        raise UnveilError(f"not a column: {error}", where=path, hint=_AGAIN) from None
    if column.dtype != kind or column.shape != (size,):
        raise _unlike(path, f"{column.shape} of {column.dtype}", f"{(size,)} of {kind}")
    return column


def _vocabulary(path: Path) -> Vocabulary:
    try:
        return Vocabulary.of_sorted(pl.read_ipc(path)["id"])
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise UnveilError(f"the ids cannot be read: {error}", where=path, hint=_AGAIN) from None


def hashes(log: Interactions, folder: Path, progress: Progress) -> tuple[str, str]:
    """The fingerprint of the log, and a hash of the files of the histories."""
    whole, histories = sha256(), sha256()
    files = chain.from_iterable(_bytes_of(folder / name) for name in HISTORIES.values())
    chunks = chain(((whole, chunk) for chunk in log.content()), ((histories, chunk) for chunk in files))
    total = sum(path.stat().st_size for path in folder.iterdir())
    for digest, chunk in progress.through("hash", chunks, total, lambda step: len(step[1])):
        digest.update(chunk)
    return whole.hexdigest(), histories.hexdigest()


def _bytes_of(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            yield chunk
