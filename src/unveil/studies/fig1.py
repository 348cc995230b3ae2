"""Figure 1 of the paper: when in their histories users interact with an item, and whether that could be chance."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unveil.audit.exposure import rank_correlation
from unveil.audit.motion import against_depletion, expected_means, repeats
from unveil.audit.timing import LEAST, Family, Floats, Timing, positions, tied_share, timing, two_sided
from unveil.data.interactions import Interactions
from unveil.data.sequences import Sequences
from unveil.data.vocabulary import UNKNOWN, Vocabulary
from unveil.errors import UnveilError

#: The paper's two trilogies.
PAPER = "Godfather;Back to the Future"
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
    """`a,b;c`: groups with semicolons between, items with commas between; each an id or a part of titles.

    Items stand in the order of the patterns; those of one pattern in the order of years in titles such as
    “Part II (1974)”, else of titles. Of more than eight the most popular are kept.
    """
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
    near = {named[each]: each for named, least in ((whole, 0.5), (words, 0.7)) for each in _near(wanted, named, least)}
    hint = f"The nearest titles: {'; '.join(list(near)[:3])}." if near else "Look titles up in the file of titles."
    raise UnveilError("no item has this id or this in its title", where="--items", found=pattern, hint=hint)


def _near(wanted: str, names: dict[str, str], least: float) -> list[str]:
    return get_close_matches(wanted, list(names), n=3, cutoff=least)


def extremes(z_V: NDArray[Any], tested_V: NDArray[np.bool_], each: int = 4) -> list[Group]:
    """Where nobody named items: those that come earliest and latest, as far from chance as any."""
    tested = np.flatnonzero(tested_V)
    order = tested[np.argsort(z_V[tested], kind="stable")].tolist()
    return [Group("Earliest", tuple(order[:each])), Group("Latest", tuple(order[::-1][:each]))]


@dataclass(frozen=True, eq=False)
class Fig1:
    """What was found in a log."""

    log: Interactions
    sequences: Sequences
    titles: Sequence[str]
    groups: Sequence[Group]
    pairs: Sequence[Pair]
    timing: Timing
    order: Family  # against random order, ties as the file has them
    mean: Family  # the same by the mean place alone, to set beside `static`
    shared: Family | None  # the same, events of one moment sharing their places; None: no ties, or no clock
    static: Family | None  # against a static propensity without repeats; None: users come back to items
    expected_V: Floats | None  # mean places under that null
    tied: float | None
    draws: int

    @property
    def by_popularity(self) -> float:
        """Spearman's correlation, over the tested items, of the number of events with the mean place."""
        return rank_correlation(*(each[self.order.tested_V] for each in (self.timing.count_V, self.timing.mean_V)))

    def families(self) -> dict[str, Family]:
        """The tests of places that were made."""
        every = {"order": self.order, "shared": self.shared, "static": self.static}
        return {name: family for name, family in every.items() if family is not None}

    def table(self) -> pl.DataFrame:
        """A row for each item that occurs, most popular first; tests where it has events enough."""
        columns: dict[str, Any] = {
            "item_id": self.log.items.ids,
            "title": list(self.titles),
            "events": self.timing.count_V,
            "mean_position": self.timing.mean_V,
        }
        for name, family in self.families().items():
            tests = {key: getattr(family, f"{key}_V") for key in ("z", "p", "holm", "q")}
            columns |= {f"{name}_{key}": _blank(value_V, family.tested_V) for key, value_V in tests.items()}
        columns["order_z_spread"] = _blank(self.timing.z_spread_V, self.order.tested_V)
        if self.expected_V is not None:
            columns["static_mean_position"] = _blank(self.expected_V, self.order.tested_V)
        return pl.DataFrame(columns).filter(pl.col("events") > 0).sort("events", descending=True, maintain_order=True)


def _blank(value_V: Floats, tested_V: NDArray[np.bool_]) -> pl.Series:
    return pl.Series(value_V).set(pl.Series(~tested_V), None)


def fig1(log: Interactions, titles: Sequence[str], items: str | None = None, *, draws: int = 50, seed: int = 0) -> Fig1:
    """Everything. `titles` has one for each item of the log; `items` names what to draw, as in `groups_of`.

    If none are named: the paper's trilogies where the log has them, else the earliest and latest items. `draws` orders
    of all histories are drawn for the null without replacement.
    """
    sequences = Sequences.of(log)
    u_N = positions(sequences)
    found = timing(sequences, u_N)
    z_V, tested_V = found.z_V, found.tested_V
    if not tested_V.any():
        most = int(found.count_V.max(initial=0))
        raise UnveilError("no item has events enough to test", found=most, expected=f"an item with {LEAST} or more")
    try:
        groups = groups_of(PAPER if items is None else items, log.items, titles, found.count_V)
    except UnveilError:
        if items is not None:
            raise
        groups = extremes(z_V, tested_V)
    static = expected_V = shared = None
    if draws and not repeats(sequences):
        expected_V = expected_means(sequences, u_N, draws, np.random.default_rng(seed))
        static = Family.of(*against_depletion(found, expected_V, draws), tested_V)
    if tied := tied_share(sequences):
        tied_timing = timing(sequences, positions(sequences, tied=True))
        shared = Family.of(tied_timing.z_V, tied_timing.p_V, tied_timing.tested_V)
    order, mean = Family.of(z_V, found.p_V, tested_V), Family.of(z_V, two_sided(z_V), tested_V)
    pairs = [pair(sequences, *each) for group in groups for each in pairwise(group.items)]
    return Fig1(log, sequences, titles, groups, pairs, found, order, mean, shared, static, expected_V, tied, draws)
