"""Where fetched data live: the user's data folder, never a source repository."""

import os
import sys
from pathlib import Path

from unveil.errors import UnveilError


def data_home() -> Path:
    """`UNVEIL_DATA`, or the folder `unveil` in the place this platform keeps a user's data."""
    if chosen := os.environ.get("UNVEIL_DATA"):
        return Path(chosen).expanduser().absolute()
    return _user_data() / "unveil"


def _user_data() -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    stated = Path(os.environ.get("XDG_DATA_HOME", ""))
    return stated if stated.is_absolute() else Path.home() / ".local" / "share"


def refuse_repository(place: Path) -> None:
    """Data under licence must not end up in a commit."""
    whole = place.resolve()
    for folder in (whole, *whole.parents):
        if (folder / ".git").exists():
            raise UnveilError(
                f"data are not fetched into a source repository, and {folder} is a git working tree",
                where=place,
                hint="Choose another place with --to DIR or the environment variable UNVEIL_DATA.",
            )
