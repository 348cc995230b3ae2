"""Titles of items, from the files that data sets bring along."""

import csv
import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path

from unveil.data.indexing import UNKNOWN, Vocabulary
from unveil.data.readers.content import unpacked, whole
from unveil.data.readers.table import item_column, plain
from unveil.errors import UnveilError

_KINDS = ("item", "product", "movie", "film", "book", "article", "song", "track", "video", "game")
#: Names of the column with the titles, best first; compared as the names of the log's columns are.
_TITLE = tuple(f"{kind}{word}" for word in ("title", "name") for kind in ("", *_KINDS))
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")  # What XML 1.0 has no place for
_EXPECTED = "movies.dat (id::title), u.item (id|title) or a CSV or TSV file with an id and a title column"


def named_items(items: Vocabulary, titles: Path | None, title_ids: Path | None = None) -> list[str]:
    """What to call each item: its title, or its id where it has none; of titles, at least one must fit."""
    if not len(items):
        raise UnveilError("the log has no events", hint="Loosen the filters.")
    if titles is None:
        if title_ids is not None:
            raise UnveilError("pairs of ids were given, and no titles", hint="Name the file of titles with --titles.")
        return [printable(raw) for raw in items.ids]
    title, ids = read_titles(titles), None if title_ids is None else read_ids(title_ids)
    names = [title.get(raw if ids is None else ids.get(raw, "")) for raw in items.ids]
    if not any(names):
        found, expected = f"items such as {', '.join(items.ids.head(3))}", f"ids such as {', '.join(list(title)[:3])}"
        hint = "Where the log was renumbered, give the pairs of ids with --title-ids."
        raise UnveilError("none of the log's items has a title", found=found, expected=expected, hint=hint)
    return [printable(name or raw) for name, raw in zip(names, items.ids, strict=True)]


def read_titles(path: Path) -> dict[str, str]:
    """The title of each id. Text that is not UTF-8 is read as latin-1, as the old MovieLens files are written."""
    lines = [line for line in _text(path).splitlines() if line.strip()]
    if not lines:
        raise UnveilError("the file is empty", where=path, expected=_EXPECTED)
    bars = lines[0].count("|") >= 2 and not _header(lines[0].split("|"))
    separator = "::" if "::" in lines[0] else "|" if bars else None
    titles = dict(_split(lines, separator, path) if separator else _headed(lines, path))
    if not titles:
        raise UnveilError("the file has no titles", where=path, expected=_EXPECTED)
    return titles


def read_ids(path: Path) -> dict[str, str]:
    """The titles' id of each id of the log: two columns, separated by blanks, tabs or commas."""
    pairs = [line.replace(",", " ").split() for line in _text(path).splitlines() if line.strip()]
    for row, pair in enumerate(pairs, 1):
        if len(pair) != 2:
            expected = "two ids a line: the log's, then the titles'"
            raise UnveilError("not a pair of ids", where=f"{path}, row {row}", found=" ".join(pair), expected=expected)
    return dict(pairs)


def matching(pattern: str, items: Vocabulary, titles: Sequence[str], where: str) -> list[int]:
    """The item of an id, or all items with this in their title, by the year at its end; `where` is the option."""
    by_id = int(items.index([pattern])[0])
    if by_id != UNKNOWN:
        return [by_id]
    wanted = pattern.casefold()
    years = [re.search(r"\((\d+)[) ]*$", title) for title in titles]
    found = [(year[1] if year else "", title, n) for n, (year, title) in enumerate(zip(years, titles, strict=True))]
    if matching := sorted(each for each in found if wanted in each[1].casefold()):
        return [item for *_, item in matching]
    whole = {title.casefold(): title for title in titles}
    words = {word.strip("():,.!?").casefold(): title for title in titles for word in title.split()}
    both = ((whole, 0.5), (words, 0.7))
    near = {names[each]: each for names, least in both for each in get_close_matches(wanted, names, 3, least)}
    hint = f"The nearest titles: {'; '.join(list(near)[:3])}." if near else "Look titles up in the file of titles."
    raise UnveilError("no item has this id or this in its title", where=where, found=pattern, hint=hint)


def printable(name: str) -> str:
    """The name with a sign in the place of control characters: no page and no drawing may hold them."""
    return _CONTROL.sub("�", name)


def _split(lines: Sequence[str], separator: str, path: Path) -> Iterator[tuple[str, str]]:
    for row, line in enumerate(lines, 1):
        parts = line.split(separator)
        if len(parts) < 2:
            raise UnveilError("no title in the line", where=f"{path}, row {row}", found=line, expected=_EXPECTED)
        yield parts[0].strip(), parts[1].strip()


def _headed(lines: Sequence[str], path: Path) -> Iterator[tuple[str, str]]:
    rows = csv.reader(lines, delimiter=max("\t;|,", key=lines[0].count))
    try:
        names = next(rows)
        places = _header(names)
        if places is None:
            found, hint = ", ".join(names), "Call them item_id and title in the first line of the file."
            raise UnveilError("no columns with ids and titles", where=path, found=found, expected=_EXPECTED, hint=hint)
        yield from ((row[places[0]], row[places[1]]) for row in rows if len(row) > max(places))
    except csv.Error as error:
        hint = "Look for a quote that is not closed."
        raise UnveilError(f"unreadable row: {error}", where=f"{path}, row {rows.line_num}", hint=hint) from None


def _header(names: Sequence[str]) -> tuple[int, int] | None:
    ident, spelt = item_column(names), [plain(name) for name in names]
    title = next((spelt.index(name) for name in _TITLE if name in spelt), None)
    return None if ident is None or title is None else (ident, title)


def _text(path: Path) -> str:
    try:
        content = whole(unpacked(path))
    except OSError as error:
        raise UnveilError(f"cannot be read: {error.strerror}", where=path) from None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")
