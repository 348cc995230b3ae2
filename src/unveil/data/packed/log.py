"""A packed log: `Interactions` whose columns, ids and histories stay on the disk until they are looked at."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.data.interactions import Interactions
from unveil.data.mapped import mapped
from unveil.data.packed.columns import KINDS, Columns, column_path
from unveil.data.packed.folder import AGAIN, ITEMS, USERS, Manifest, read_vocabulary
from unveil.data.packed.hashes import hashes
from unveil.data.packed.lay_out import HISTORIES
from unveil.data.packed.progress import Progress, Tell
from unveil.data.sequences import Sequences
from unveil.data.vocabulary import Index
from unveil.errors import UnveilError


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
