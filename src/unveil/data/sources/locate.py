"""From what a person writes to a file: a path, a folder with a known file in it, or the name of a data set."""

import os
from difflib import get_close_matches
from pathlib import Path

from unveil.errors import UnveilError

#: Files that a data set's folder is known by.
KNOWN = ("u.data", "ratings.dat", "ratings.csv", "ratings.csv.gz", "ratings.dat.gz")
#: The file that a packed log is known by.
PACKED = "packed.json"


def is_packed(source: str | Path) -> bool:
    """Whether this is the folder of a packed log."""
    return os.path.exists(os.path.join(source, PACKED))


def located(source: str | Path) -> Path:
    """The file that is meant; what exists on the disk comes before a name."""
    path = Path(source)
    try:
        if path.is_dir():
            return _inside(path)
        if path.exists():
            return _regular(path)
    except OSError as error:
        raise UnveilError(f"cannot read: {error.strerror}", where=path) from None
    except ValueError:
        raise UnveilError("not the name of a file", found=str(source)) from None
    return _by_name(source) or _absent(path)


def _regular(path: Path) -> Path:
    if not path.is_file():
        raise UnveilError("not a file", where=path, hint="Name a file on the disk.")
    if not os.access(path, os.R_OK, effective_ids=os.access in os.supports_effective_ids):
        raise UnveilError("permission denied", where=path, hint="Ask for the right to read it.")
    return path


def _inside(folder: Path) -> Path:
    found = [folder / name for name in KNOWN if (folder / name).is_file()] or sorted(folder.glob("*.inter"))
    if len(found) == 1:
        return _regular(found[0])
    names = [path.name for path in found] or sorted(path.name for path in folder.iterdir())[:10]
    in_parts = not found and any(folder.rglob("*.parquet"))
    raise UnveilError(
        f"a folder with {'several logs' if found else 'no known log'} in it: {', '.join(names) or 'it is empty'}",
        where=folder,
        hint=f"Pack its Parquet files: unveil data pack {folder} -o PACKED." if in_parts else "Name the file itself.",
    )


def _by_name(source: str | Path) -> Path | None:
    from unveil.data.fetch import located as fetched

    return fetched(source) if isinstance(source, str) else None


def _absent(path: Path) -> Path:
    folder = path.parent
    if not folder.is_dir():
        raise UnveilError("no such file: its folder does not exist", where=path, hint="Check the path.")
    close = get_close_matches(path.name, [neighbour.name for neighbour in folder.iterdir()], n=3)
    hint = f"Did you mean {' or '.join(close)}?" if close else "Check the path, or the name of the data set."
    raise UnveilError("no such file", where=path, hint=hint)
