"""The columns of a log on the disk, in file order: what `Interactions` holds, one flat file each.

Shapes: N rows, B rows of a block.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.data.interactions import OPTIONAL
from unveil.data.mapped import blocks, column_file, mapped, release
from unveil.data.vocabulary import Index, Vocabulary

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
