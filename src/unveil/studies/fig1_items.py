"""The items that figure 1 draws, by name or by how far from chance they come, and the order of pairs of them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unveil.data.indexing import UNKNOWN, Vocabulary
from unveil.data.interactions import Sequences
from unveil.errors import UnveilError

#: Boxes in one drawing: more cannot be read.
MOST = 8


@dataclass(frozen=True)
class Pair:
    """Of the users who chose both: how many chose `second` later, how many `first`, and how many both at once."""

    first: int
    second: int
    later: int
    earlier: int
    together: int
    p: float  # two-sided sign test: later and earlier are equally likely in random order

    @property
    def share(self) -> float | None:
        """Who chose `second` later, of those whose order is known."""
        known = self.later + self.earlier
        return self.later / known if known else None


def pair(sequences: Sequences, first: int, second: int) -> Pair:
    """Compare the first time each user chose either; ties in time are not counted."""
    from scipy.stats import binomtest

    first_2U = np.full((2, sequences.n_users), -1)  # the place of each user's first event with the item; −1: never
    for first_U, item in zip(first_2U, (first, second), strict=True):
        at_M = np.flatnonzero(sequences.item_N == item)[::-1]
        first_U[sequences.user_N[at_M]] = at_M  # the first of a user is written last
    a_B, b_B = first_2U[:, (first_2U >= 0).all(axis=0)]
    time_N = sequences.time_N
    together_B = np.zeros(len(a_B), bool) if time_N is None else np.asarray(time_N[a_B] == time_N[b_B])
    later, earlier = int((~together_B & (b_B > a_B)).sum()), int((~together_B & (b_B < a_B)).sum())
    p = float(binomtest(later, later + earlier).pvalue) if later + earlier else 1.0
    return Pair(first, second, later, earlier, int(together_B.sum()), p)


class Group(NamedTuple):
    """Items that are drawn side by side."""

    name: str
    items: tuple[int, ...]


def groups_of(patterns: str, items: Vocabulary, titles: Sequence[str], count_V: NDArray[Any]) -> list[Group]:
    """`a,b;c`: groups of ids or parts of titles, in that order, then by the years in titles; at most eight each."""
    groups = []
    for part in filter(None, map(str.strip, patterns.split(";"))):
        names = [name.strip() for name in part.split(",") if name.strip()]
        found = dict.fromkeys(item for name in names for item in _matching(name, items, titles))
        seen = [item for item in found if count_V[item] > 0]
        if not seen:
            hint = "Name others: an impression without a click has no place in a history."
            raise UnveilError("nobody interacted with any of these items", where="--items", found=part, hint=hint)
        kept = sorted(seen, key=lambda item: -count_V[item])[:MOST]
        groups.append(Group(", ".join(names), tuple(item for item in seen if item in kept)))
    return groups


def _matching(pattern: str, items: Vocabulary, titles: Sequence[str]) -> list[int]:
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
    raise UnveilError("no item has this id or this in its title", where="--items", found=pattern, hint=hint)


def extremes(z_V: NDArray[Any], tested_V: NDArray[np.bool_], each: int = 4) -> list[Group]:
    """Where nobody named items: those that come earliest and latest, as far from chance as any."""
    tested = np.flatnonzero(tested_V)
    order = tested[np.argsort(z_V[tested], kind="stable")].tolist()
    return [Group("Earliest", tuple(order[:each])), Group("Latest", tuple(order[::-1][:each]))]
