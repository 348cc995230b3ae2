"""The Parquet files of one log: found, checked to have the same columns, and read a slice at a time."""

import glob
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from unveil.data.sources.columns import assigned
from unveil.data.sources.formats.parquet import damaged
from unveil.data.sources.reading import explained, unchanged
from unveil.data.sources.table import Table, counted_from
from unveil.errors import UnveilError

#: Rows of a file held at once.
SLICE = 1 << 20
_BROKEN = (pl.exceptions.PolarsError, pl.exceptions.PanicException)


@dataclass(frozen=True)
class Part:
    """One file: how many rows it has, and the type of the column of each role."""

    path: Path
    rows: int
    names: Mapping[str, str]  # role → the file's own column
    kinds: Mapping[str, pl.DataType]

    def tables(self, roles: Sequence[str]) -> Iterator[Table]:
        """The columns of these roles, a slice of rows at a time."""
        names = {role: self.names[role] for role in roles}
        with explained(self.path), unchanged(self.path):
            scan = pl.scan_parquet(self.path, glob=False).select(**{role: pl.col(name) for role, name in names.items()})
            for start in range(0, self.rows, SLICE):
                yield Table(self.path, self._slice(scan, start), names, counted_from(start + 1))

    def _slice(self, scan: pl.LazyFrame, start: int) -> pl.DataFrame:
        try:
            return scan.slice(start, SLICE).collect()
        except _BROKEN as error:
            raise damaged(self.path, error) from None


@dataclass(frozen=True)
class Parts:
    """The files of one log, in the order of their rows."""

    files: tuple[Part, ...]

    @classmethod
    def of(cls, sources: Sequence[str | Path], columns: Mapping[str, str]) -> "Parts":
        """Look into every file before any is read: what does not fit is told at once."""
        files = tuple(_part(path, columns) for path in found(sources))
        for other in files[1:]:
            _refuse_different(files[0], other)
        if not sum(part.rows for part in files):
            raise UnveilError("no rows", where=files[0].path, expected="at least one event", hint="Check the files.")
        return cls(files)

    def __len__(self) -> int:
        return sum(part.rows for part in self.files)

    @property
    def kinds(self) -> Mapping[str, pl.DataType]:
        """The type of each role's column."""
        return self.files[0].kinds

    def tables(self, roles: Sequence[str]) -> Iterator[Table]:
        """The columns of these roles through all files, a slice of rows at a time."""
        for part in self.files:
            yield from part.tables(roles)


def found(sources: Sequence[str | Path]) -> list[Path]:
    """The files that are meant, those of a folder or a pattern in the order of their paths."""
    paths = [path for source in sources for path in _meant(source)]
    seen = set[Path]()
    for path in paths:
        if (real := path.resolve()) in seen:
            raise UnveilError("named twice: its events would count double", where=path, hint="Name it once.")
        seen.add(real)
    return paths


def _meant(source: str | Path) -> list[Path]:
    path = Path(source)
    if path.is_file():
        return [path]
    if path.is_dir():
        paths = sorted(inner for inner in path.rglob("*.parquet") if not _set_aside(inner.relative_to(path)))
        what, hint = "a folder without Parquet files", "Name a folder of .parquet files."
    else:
        paths = [Path(name) for name in sorted(glob.glob(str(source), recursive=True))]
        what, hint = "no such file, and no file fits it as a pattern", "Check the path; put a pattern in quotes."
    files = [inner for inner in paths if inner.is_file()]
    if not files:
        raise UnveilError(what, where=source, hint=hint)
    return files


def _set_aside(path: Path) -> bool:
    """What others are still writing, or left half-written: they name such files, and folders of them, so."""
    return any(name.startswith(("_", ".")) for name in path.parts)


def _part(path: Path, columns: Mapping[str, str]) -> Part:
    with explained(path):
        if not path.stat().st_size:
            raise UnveilError("the file is empty", where=path, expected="a Parquet file", hint="Take it out.")
        try:
            scan = pl.scan_parquet(path, glob=False)
            schema = scan.collect_schema()
            rows = int(scan.select(pl.len()).collect().item())
        except _BROKEN as error:
            raise damaged(path, error) from None
    listed = list(schema)
    names = {role: listed[place] for role, place in assigned(listed, columns, path).items()}
    return Part(path, rows, names, {role: schema[name] for role, name in names.items()})


def _refuse_different(first: Part, other: Part) -> None:
    mine, theirs = _described(first), _described(other)
    if mine != theirs:
        role = next(role for role in {**mine, **theirs} if mine.get(role) != theirs.get(role))
        raise UnveilError(
            f"the files of one log need the same columns, and the {role} differs",
            where=other.path,
            found=theirs.get(role, "none"),
            expected=f"{mine.get(role, 'none')}, as in {first.path}",
            hint=f"Write the files alike, or leave the column out with --{role}-col none.",
        )


def _described(part: Part) -> dict[str, str]:
    """Each role's column in words: its name, and what its values are, whatever their width."""
    return {role: f"{part.names[role]} ({_values(kind)})" for role, kind in part.kinds.items()}


def _values(kind: pl.DataType) -> str:
    if kind.is_integer():
        return "whole numbers"
    if kind.is_float():
        return "numbers"
    return "text" if kind in (pl.String, pl.Categorical, pl.Enum) else str(kind)
