"""Which items to draw: by id, or by a part of their title."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.data.vocabulary import UNKNOWN, Vocabulary
from unveil.errors import UnveilError

#: The paper's two trilogies.
PAPER = "Godfather;Back to the Future"
#: Boxes in one drawing: more cannot be read.
MOST = 8


@dataclass(frozen=True)
class Group:
    """Items that are drawn side by side."""

    name: str
    items: tuple[int, ...]


def groups_of(patterns: str, items: Vocabulary, titles: Sequence[str], count_V: NDArray[Any]) -> list[Group]:
    """`a,b;c`: groups with semicolons between, items with commas between; each an id or a part of titles.

    Items stand in the order of the patterns; those of one pattern in the order of years in titles such as
    “Part II (1974)”, else of titles. Of more than eight the most taken are kept.
    """
    return [_group(part, items, titles, count_V) for part in patterns.split(";") if part.strip()]


def extremes(z_V: NDArray[Any], tested_V: NDArray[np.bool_], each: int = 4) -> list[Group]:
    """Where nobody named items: those that come earliest and latest, as far from chance as any."""
    tested = np.flatnonzero(tested_V)
    order = tested[np.argsort(z_V[tested], kind="stable")]
    early, late = order[:each], order[::-1][:each]
    return [Group(name, tuple(map(int, found))) for name, found in (("Earliest", early), ("Latest", late))]


def _group(part: str, items: Vocabulary, titles: Sequence[str], count_V: NDArray[Any]) -> Group:
    patterns = [pattern.strip() for pattern in part.split(",") if pattern.strip()]
    found = dict.fromkeys(item for pattern in patterns for item in _matching(pattern, items, titles))
    taken = [item for item in found if count_V[item] > 0]
    if not taken:
        hint = "Name others: what was only shown has no place in a history."
        raise UnveilError("nobody took any of these items", where="--items", found=part.strip(), hint=hint)
    kept = sorted(taken, key=lambda item: -count_V[item])[:MOST]
    return Group(", ".join(patterns), tuple(item for item in taken if item in kept))


def _matching(pattern: str, items: Vocabulary, titles: Sequence[str]) -> list[int]:
    by_id = int(items.index([pattern])[0])
    if by_id != UNKNOWN:
        return [by_id]
    wanted = pattern.casefold()
    found = [item for item, title in enumerate(titles) if wanted in title.casefold()]
    if not found:
        raise _nothing(pattern, titles)
    return sorted(found, key=lambda item: (_year(titles[item]), titles[item]))


def _year(title: str) -> str:
    """The year at the end of a title in brackets, as MovieLens has it."""
    year = title.rpartition("(")[2].rstrip(") ")
    return year if year.isdecimal() else ""


def _nothing(pattern: str, titles: Sequence[str]) -> UnveilError:
    """No item has it in its title: the nearest titles, by the whole and by their words."""
    by_title = {title.casefold(): title for title in titles}
    near = get_close_matches(pattern.casefold(), list(by_title), n=3, cutoff=0.5)
    words = {word.strip("():,.!?").casefold(): title for title in titles for word in title.split()}
    near_words = get_close_matches(pattern.casefold(), list(words), n=3, cutoff=0.7)
    nearest = dict.fromkeys([*(by_title[title] for title in near), *(words[word] for word in near_words)])
    hint = (
        f"The nearest titles: {'; '.join(list(nearest)[:3])}." if nearest else "Look titles up in the file of titles."
    )
    return UnveilError("no item has this id or this in its title", where="--items", found=pattern, hint=hint)
