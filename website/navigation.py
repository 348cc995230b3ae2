"""A navigation with patterns, and the pages that they stand for."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any


def expanded(entries: Sequence[Any], pages: Sequence[str]) -> list[Any]:
    """The same navigation with each pattern replaced by the pages that fit it."""
    return [part for entry in entries for part in _parts(entry, pages)]


def _parts(entry: Any, pages: Sequence[str]) -> list[Any]:
    if isinstance(entry, str):
        return fitting(entry, pages) if "*" in entry else [entry]
    ((title, inside),) = entry.items()
    if isinstance(inside, str):
        return [{title: fitting(inside, pages) if "*" in inside else inside}]
    return [{title: expanded(inside, pages)}]


def fitting(pattern: str, pages: Sequence[str]) -> list[str]:
    """The pages that a pattern stands for: a folder's README first, then by name. A `*` does not reach into folders."""
    deep = pattern.count("/")
    found = [page for page in pages if fnmatchcase(page, pattern) and page.count("/") == deep]
    return sorted(found, key=lambda page: (page.rpartition("/")[0], not page.endswith("README.md"), page))
