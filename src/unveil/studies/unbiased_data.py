"""Folders of `unveil reproduce unbiased --data NAME DIR`: their files as they lie, and the settings that go with them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unveil.data.fetch import data_home
from unveil.errors import UnveilError

Files = Mapping[str, str]  # log, test, candidates

#: By data set: where it is fetched to, the files that it may consist of, and the settings.
DATA: Mapping[str, tuple[str, tuple[Files, ...], Mapping[str, Any]]] = {
    "kuairec": (
        "kuairec",
        (
            {"log": "log.txt.gz", "test": "observed_likes.csv.gz", "candidates": "observed_items.txt"},
            {"log": "log.csv", "test": "observed_likes.csv", "candidates": "observed_items.txt"},
        ),
        {},
    ),
    "kuairand": (
        "kuairand-pure/data",
        (
            {"log": "exposures.csv.gz", "test": "random_clicks.csv.gz", "candidates": "random_items.txt"},
            {"log": "log_standard_4_08_to_4_21_pure.csv", "test": "log_random_4_22_to_5_08_pure.csv"},
        ),
        {"metric": "AUC", "sizes": (100, 300, 1000)},
    ),
    "coat": (
        "coat",
        ({"log": "train.ascii", "test": "test.ascii"},),
        {"metric": "AUC", "sizes": (10, 30, 100), "min_rating": 4.0, "ordered": False},
    ),
}


def settings_of(name: str, folder: Path | None) -> dict[str, Any]:
    """Files and settings; without a folder, of the one that `unveil data fetch` makes."""
    home, layouts, settings = DATA[name]
    folder = data_home() / home if folder is None else folder
    for files in layouts:
        if all((folder / file).is_file() for file in files.values()):
            return {**settings, **{role: str(folder / file) for role, file in files.items()}}
    expected = ", or ".join(", ".join(files.values()) for files in layouts)
    raise UnveilError(
        f"not the files of {name}", where=folder, expected=expected, hint="Name their folder after --data."
    )
