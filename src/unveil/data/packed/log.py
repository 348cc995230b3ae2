"""A packed log as a folder: flat columns, histories, vocabularies, and a manifest that is written last.

```
packed.json                        sizes, steps, the log's fingerprint, size and checksum of every file
user.npy, item.npy, time.npy, …    the log in file order, a file for each column it has
history-item.npy, -step, -event    every user's history, oldest first, end to end; -offset: where each user's begin
users.arrow, items.arrow           the ids in order: the place of an id is its index
```

Histories are made in ranges of users, each a pass over the columns and a sort in memory.
Shapes: N events of the range, B rows of a block, U users, M rows to drop.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, fields
from hashlib import sha256
from io import BytesIO
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unveil import __version__
from unveil.checksums import SEAL, changed, check_file, check_seal, content_hash, crc32, sealed
from unveil.data.filters import Filters
from unveil.data.indexing import Index, Vocabulary, sorted_rows
from unveil.data.interactions import OPTIONAL, Interactions, Sequences, offsets
from unveil.data.mapped import blocks, column_file, flags, mapped, release
from unveil.data.readers import PACKED
from unveil.errors import UnveilError
from unveil.files import write_json

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
    crc32: dict[str, str] = field(default_factory=dict)  # of every file; an earlier version wrote none

    @classmethod
    def read(cls, folder: Path) -> "Manifest":
        path = folder / MANIFEST
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            if not isinstance(content, dict) or content.get("format") != FORMAT:
                raise UnveilError("not a packed log of this version", where=path, expected=repr(FORMAT), hint=_AGAIN)
            old = {name: each for name, each in content.items() if name not in ("format", "sha256")}
            if SEAL not in content and content.pop("sha256", None) != content_hash(old):  # of an earlier version
                raise changed(path, _AGAIN)
            check_seal(content, path, _AGAIN)
            known = {each.name: content[each.name] for each in fields(cls) if each.name in content}
            manifest = cls(**known | {"columns": tuple(content["columns"])})
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

    def check(self, folder: Path, names: Iterable[str]) -> None:
        for name in self.crc32.keys() & set(names):
            check_file(folder / name, self.crc32[name], _AGAIN)

    def write(self, folder: Path) -> None:
        write_json(folder / MANIFEST, sealed({"format": FORMAT, "unveil": __version__, **asdict(self)}))


def _unlike(path: Path, found: str, expected: str) -> UnveilError:
    return UnveilError("not as the manifest says", where=path, found=found, expected=expected, hint=_AGAIN)


@dataclass(frozen=True, eq=False, repr=False)
class PackedLog(Interactions):
    """The log of a folder that `pack` wrote: its columns and histories stay on the disk until they are looked at."""

    folder: Path = field(kw_only=True)
    manifest: Manifest = field(kw_only=True)

    @classmethod
    def open(cls, folder: Path) -> "PackedLog":
        """The log, each of its files checked once; of an earlier version's folder only `verify` finds what changed."""
        manifest = Manifest.read(folder)
        manifest.check(folder, [*(f"{role}.npy" for role in manifest.columns), USERS, ITEMS])
        columns = {role: _column(folder / f"{role}.npy", manifest.events, KINDS[role]) for role in manifest.columns}
        users, items = (_vocabulary(folder / name) for name in (USERS, ITEMS))
        return cls(users=users, items=items, folder=folder, manifest=manifest, **columns)

    def histories(self) -> Sequences:
        self.manifest.check(self.folder, HISTORIES.values())
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


def seal(columns: Columns, n_steps: int, filters: Filters, folder: Path, progress: Progress) -> None:
    """Write the vocabularies and, last, the manifest."""
    for ids, name in ((columns.users, USERS), (columns.items, ITEMS)):
        content = BytesIO()
        ids.ids.to_frame().write_ipc(content, compression="uncompressed")
        (folder / name).write_bytes(content.getbuffer())
    fingerprint, histories = hashes(columns.log(), folder, progress)
    files = sorted(folder.iterdir())
    Manifest(
        events=len(columns),
        interactions=len(mapped(folder / HISTORIES["event_N"])),
        n_steps=n_steps,
        columns=columns.roles,
        fingerprint=fingerprint,
        histories=histories,
        filters=asdict(filters),
        bytes={path.name: path.stat().st_size for path in files},
        crc32={path.name: crc32(path) for path in files},
    ).write(folder)


RANGE = 1 << 22  # Events of a range: with what sorting them needs, less than half a GiB. One user's are never divided.


@dataclass(frozen=True, eq=False)
class Range:
    """The histories of the users from `first` up to, not including, `last`: by user, then clock, then file order."""

    first: int
    last: int
    user_N: Index  # counted from `first`
    row_N: Index  # in the log
    columns: Mapping[str, NDArray[Any]]


def interaction_counts(
    role: Literal["user", "item"], columns: Columns, keep: pl.Series | None = None
) -> NDArray[np.int64]:
    """How many interactions each user or item has among the rows that are kept."""
    count = np.zeros(len(columns.users if role == "user" else columns.items), np.int64)
    for _, clicked_B, (index_B,) in _interactions(columns, [role], keep):
        count += np.bincount(index_B[clicked_B], minlength=len(count))
    return count


def ranges(
    columns: Columns, roles: Sequence[str], length_U: NDArray[np.int64], keep: pl.Series | None
) -> Iterator[Range]:
    """The histories of all users; `length_U` is what `interaction_counts` gives for the user."""
    clock = next((role for role in ("time", "step") if role in columns.roles), None)
    needed = list(dict.fromkeys(["user", *roles, *([clock] if clock else [])]))
    offset_U1 = offsets(length_U)
    edges = np.searchsorted(offset_U1, np.arange(0, offset_U1[-1] + RANGE, RANGE)).clip(max=len(length_U))
    for first, last in pairwise(np.unique(edges).tolist()):
        size, filled = int(offset_U1[last] - offset_U1[first]), 0
        found, row_N = {role: np.empty(size, KINDS[role]) for role in needed}, np.empty(size, np.int32)
        for rows, clicked_B, blocks_B in _interactions(columns, needed, keep):
            at_M = np.flatnonzero(clicked_B & (blocks_B[0] >= first) & (blocks_B[0] < last))
            inside = slice(filled, filled + len(at_M))
            for role, block in zip(needed, blocks_B, strict=True):
                found[role][inside] = block[at_M]
            row_N[inside] = at_M + rows.start
            filled += len(at_M)
        found["user"] -= first
        order_N = sorted_rows(found["user"], found[clock] if clock else None, last - first)
        user_N, ordered = found["user"][order_N], {role: found[role][order_N] for role in roles}
        yield Range(first, last, user_N, row_N[order_N], ordered)


def _interactions(
    columns: Columns, roles: Sequence[str], keep: pl.Series | None
) -> Iterator[tuple[slice, NDArray[np.bool_], list[NDArray[Any]]]]:
    """Blocks of rows, and which of them are kept and are interactions: all, or those with `clicked`."""
    clicked = ["clicked"] if "clicked" in columns.roles else []
    for rows, blocks_B in columns.blocks(*roles, *clicked):
        clicked_B = blocks_B.pop() if clicked else np.ones(rows.stop - rows.start, np.bool_)
        yield rows, clicked_B if keep is None else clicked_B & keep[rows].to_numpy(), blocks_B


def lay_out(columns: Columns, folder: Path, progress: Progress) -> int:
    """Write the files of the histories, as `Sequences.of` has them in memory, and give the number of steps T."""
    length_U = interaction_counts("user", columns)
    if not length_U.any():
        raise UnveilError("there is no interaction in the log", hint="Check the files, or loosen the filters.")
    offset_U1, n_steps, own_steps = offsets(length_U), int(length_U.max()), "step" in columns.roles
    size, last_step, names = int(offset_U1[-1]), 0, ("item_N", "step_N", "event_N")
    parts = ranges(columns, ["item", "step"] if own_steps else ["item"], length_U, None)
    with ExitStack() as files:
        append = {name: files.enter_context(column_file(folder / HISTORIES[name], np.int32, size)) for name in names}
        for part in progress.through("histories", parts, size, lambda part: len(part.row_N)):
            if own_steps:
                step_N = part.columns["step"]
            else:  # aligned at the end: every user's most recent event is at T − 1
                at_N = np.arange(len(part.row_N)) + offset_U1[part.first]
                step_N = at_N - offset_U1[part.first + 1 : part.last + 1][part.user_N] + n_steps
            last_step = max(last_step, int(step_N.max(initial=0)))
            for name, column_N in zip(names, (part.columns["item"], step_N, part.row_N), strict=True):
                append[name](column_N)
    with column_file(folder / HISTORIES["offset_U1"], np.int64, len(offset_U1)) as write:
        write(offset_U1)
    return last_step + 1 if own_steps else n_steps


def filter_columns(columns: Columns, filters: Filters, progress: Progress) -> Columns:
    """The log with only the rows that `Filters` keeps, with one bit a row; its files and vocabularies made smaller."""
    keep = pl.repeat(True, len(columns), eager=True)
    drops = (_without_low_ratings, _without_repeats, _without_rare)
    for drop in progress.through("filter", drops, len(drops), lambda _: 1):
        keep = drop(columns, keep, filters)
    if not keep.any():
        raise UnveilError("the filters leave nothing of the log", hint="Loosen them.")
    return _compact(columns, keep)


def _without_low_ratings(columns: Columns, keep: pl.Series, filters: Filters) -> pl.Series:
    """Where the log has impressions without a click, what is rated too low becomes one: it was shown."""
    if filters.min_rating is None:
        return keep
    if "clicked" in columns.roles:
        rated = columns.blocks("clicked", "rating")
        liked = (clicked_B & (rating_B >= filters.min_rating) for _, (clicked_B, rating_B) in rated)
        columns.rewrite("clicked", len(columns), liked)
        return keep
    return keep & flags(rating_B >= filters.min_rating for _, (rating_B,) in columns.blocks("rating"))


def _without_repeats(columns: Columns, keep: pl.Series, filters: Filters) -> pl.Series:
    if filters.repeats == "keep":
        return keep
    left = keep.clone()
    for part in ranges(columns, ["item"], interaction_counts("user", columns, keep), keep):
        pair_N, row_N = part.user_N.astype(np.int64) * len(columns.items) + part.columns["item"], part.row_N
        if filters.repeats == "last":
            pair_N, row_N = pair_N[::-1], row_N[::-1]
        again_N = np.ones(len(row_N), np.bool_)
        again_N[np.unique(pair_N, return_index=True)[1]] = False
        left.scatter(row_N[again_N], False)
    return left


def _without_rare(columns: Columns, keep: pl.Series, filters: Filters) -> pl.Series:
    minima: tuple[tuple[Literal["user", "item"], int], ...] = (("item", filters.min_item), ("user", filters.min_user))
    while True:
        before = keep.sum()
        for role, least in minima:
            enough = interaction_counts(role, columns, keep) >= least
            if not enough.all():
                keep = keep & flags(enough[index_B] for _, (index_B,) in columns.blocks(role))
        if keep.sum() == before or not filters.iterate:
            return keep


def _compact(columns: Columns, keep: pl.Series) -> Columns:
    size, places = int(keep.sum()), {}
    vocabularies = {"user": columns.users, "item": columns.items}
    for role, vocabulary in vocabularies.items():
        present = np.zeros(len(vocabulary), np.bool_)
        for rows, (index_B,) in columns.blocks(role):
            present[index_B[keep[rows].to_numpy()]] = True
        places[role] = np.cumsum(present, dtype=np.int32) - np.int32(1)
        vocabularies[role] = Vocabulary.of_sorted(vocabulary.ids.gather(np.flatnonzero(present)))
    for role in columns.roles:
        kept = (block[keep[rows].to_numpy()] for rows, (block,) in columns.blocks(role))
        columns.rewrite(role, size, (places[role][part] for part in kept) if role in places else kept)
    return Columns(columns.folder, columns.roles, vocabularies["user"], vocabularies["item"])
