"""A navigation with patterns, and the pages that they stand for."""

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any


def expanded(entries: Sequence[Any], pages: Sequence[str]) -> list[Any]:
    """The same navigation with each pattern replaced by the pages that fit it and are named nowhere."""
    named = set(_names(entries))
    return _expanded(entries, [page for page in pages if page not in named])


def _names(entries: Any) -> Iterator[str]:
    if isinstance(entries, str):
        yield entries
    else:
        for entry in entries.values() if isinstance(entries, dict) else entries:
            yield from _names(entry)


def _expanded(entry: Any, pages: Sequence[str]) -> list[Any]:
    """What stands in the place of an entry, or of a list of them."""
    if isinstance(entry, str):
        return fitting(entry, pages) if "*" in entry else [entry]
    if isinstance(entry, dict):
        return [{title: inside if _is_page(inside) else _expanded(inside, pages)} for title, inside in entry.items()]
    return [part for each in entry for part in _expanded(each, pages)]


def _is_page(inside: Any) -> bool:
    return isinstance(inside, str) and "*" not in inside


def fitting(pattern: str, pages: Sequence[str]) -> list[Any]:
    """The pages that a pattern stands for: a folder's README first, then by name. A `*` does not reach into folders.

    Where folders fit a `*`, each page goes by the name of its folder.
    """
    deep = pattern.count("/")
    fits = [page for page in pages if fnmatchcase(page, pattern) and page.count("/") == deep]
    found = sorted(fits, key=lambda page: (page.rpartition("/")[0], not page.endswith("README.md"), page))
    return [{page.split("/")[-2]: page} for page in found] if "*/" in pattern else found
