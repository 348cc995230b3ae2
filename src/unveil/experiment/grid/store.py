"""Where a grid is kept: who it belongs to, and a file for each cell that is done.

```
run.json       what the cells depend on; a folder is used again only for the same
cells/KEY.json the result of a cell, whole or not there
errors/KEY.txt why a cell failed, where that is not the user's doing
```
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from unveil.errors import UnveilError
from unveil.files import write_whole
from unveil.training.identity import differences

ABOUT = "run.json"
#: What every result that is kept tells: how long it took.
SECONDS = "seconds"
Identity = Mapping[str, Any]
#: A question by its name, before all that its cells depend on.
_QUESTION = "question"
#: Of data; nobody reads more of it than the beginning.
_FINGERPRINT = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Store:
    """A folder that belongs to one grid, told by its `identity`.

    What the cells depend on stands in the identity under `cells`; folders that agree in it may share them. What is
    not said there has the value that is `unsaid`.
    """

    folder: Path
    identity: Identity
    unsaid: Identity = field(default_factory=dict)

    def open(self) -> None:
        """Take the folder into use, or refuse what is in it: strangers' files, or a grid of another identity."""
        path = self.folder / ABOUT
        if path.is_file():
            self._refuse_other(path)
        elif self.folder.is_dir() and any(self.folder.iterdir()):
            hint = "Name a new folder, or one that such a run was begun in."
            raise UnveilError("the output folder holds something else", where=self.folder, hint=hint)
        else:
            write_whole(path, json.dumps(self.identity, indent=1, ensure_ascii=False) + "\n")

    def _refuse_other(self, path: Path) -> None:
        every = differences(self._in_full(_read(path)), self._in_full(self.identity))
        found = [each for each in every if each[0] == _QUESTION] or every
        if found:
            told = "; ".join(
                f"{name} was {_short(before)} and is now {_short(after)}" for name, before, after in found[:3]
            )
            raise UnveilError(
                f"the folder belongs to another run: {told}{' and more' if len(found) > 3 else ''}",
                where=self.folder,
                hint="Name another folder, or repeat the command that began this one.",
            )

    def _in_full(self, identity: Identity) -> Identity:
        """With what it leaves unsaid."""
        cells = identity.get("cells")
        return {**identity, "cells": {**self.unsaid, **cells}} if isinstance(cells, Mapping) else identity

    def result(self, key: str) -> dict[str, Any] | None:
        """The result of a cell that is done. One that was damaged, or is none, is to be done again."""
        try:
            result = dict(json.loads(self._path(key).read_text(encoding="utf-8")))
        except (FileNotFoundError, ValueError, TypeError, RecursionError):
            return None
        return result if SECONDS in result else None

    def keep(self, key: str, result: Mapping[str, Any]) -> None:
        """Write the result of a cell, whole or not at all."""
        write_whole(self._path(key), json.dumps(result, ensure_ascii=False, allow_nan=False) + "\n")
        (self.folder / "errors" / f"{key}.txt").unlink(missing_ok=True)

    def blame(self, key: str, detail: str) -> Path:
        """Write why a cell failed."""
        path = self.folder / "errors" / f"{key}.txt"
        write_whole(path, detail)
        return path

    def forget(self, key: str) -> None:
        """The cell is to be done again."""
        self._path(key).unlink(missing_ok=True)

    def related(self, other: Path) -> "Store":
        """A folder whose cells depend on the same; any other is refused."""
        if not (other / ABOUT).is_file():
            raise UnveilError("there are no cells to take over", where=other, expected=f"a folder with a {ABOUT}")
        source = Store(other, {**_read(other / ABOUT), "cells": self.identity["cells"]}, self.unsaid)
        source._refuse_other(other / ABOUT)
        return source

    def adopt(self, other: Path, keys: Mapping[str, str]) -> int:
        """Take over what is missing here from a folder whose cells depend on the same; how many cells they were.

        `keys`: what a cell is called here → what it is called there.
        """
        source = self.related(other)
        missing = {here: source.result(there) for here, there in keys.items() if self.result(here) is None}
        found = {key: result for key, result in missing.items() if result is not None}
        for key, result in found.items():
            self.keep(key, result)
        return len(found)

    def _path(self, key: str) -> Path:
        return self.folder / "cells" / f"{key}.json"


def _short(value: str) -> str:
    """As people tell fingerprints apart: by their first digits."""
    return f"{value[:8]}…" if _FINGERPRINT.fullmatch(value) else value


def _read(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError, RecursionError, OSError) as error:
        hint = "Name a new folder; where this one's file can be had again, put it back, and the run goes on."
        raise UnveilError(f"cannot be read: {error}", where=path, hint=hint) from None
