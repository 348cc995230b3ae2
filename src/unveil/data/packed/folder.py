"""A packed log as a folder: flat columns, histories, vocabularies, and a manifest that is written last.

```
packed.json                        sizes, steps, the log's fingerprint, a hash of the histories, the bytes of every file
user.npy, item.npy, time.npy, …    the log in file order, a file for each column it has
history-item.npy, -step, -event    every user's history, oldest first, end to end; -offset: where each user's begin
users.arrow, items.arrow           the ids in order: the place of an id is its index
```
"""

import json
from dataclasses import asdict, dataclass
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl

from unveil import __version__
from unveil.data.sources.locate import PACKED
from unveil.data.vocabulary import Vocabulary
from unveil.errors import UnveilError
from unveil.files import write_whole

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
