"""Figure 1 of the paper: when in their histories users interact with an item, and whether that could be chance."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unveil.audit.motion import against_depletion, expected_means, repeats
from unveil.audit.timing import LEAST, Family, Floats, Timing, positions, tied_share, timing, two_sided
from unveil.data.interactions import Interactions
from unveil.data.sequences import Sequences
from unveil.data.vocabulary import UNKNOWN, Vocabulary
from unveil.errors import UnveilError


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
    a_U, b_U = _when(sequences, first), _when(sequences, second)
    both_U = (a_U >= 0) & (b_U >= 0)
    together_U = both_U & _same_moment(sequences, a_U, b_U)
    later = int((both_U & ~together_U & (b_U > a_U)).sum())
    earlier = int((both_U & ~together_U & (b_U < a_U)).sum())
    return Pair(first, second, later, earlier, int(together_U.sum()), _sign_test(later, earlier))


def _when(sequences: Sequences, item: int) -> NDArray[np.int64]:
    """The place among all events of each user's first with the item; −1: never."""
    at_M = np.flatnonzero(sequences.item_N == item)[::-1]
    place_U = np.full(sequences.n_users, -1)
    place_U[sequences.user_N[at_M]] = at_M  # the first of a user is written last
    return place_U


def _same_moment(sequences: Sequences, a_U: NDArray[np.int64], b_U: NDArray[np.int64]) -> NDArray[np.bool_]:
    time_N = sequences.time_N
    if time_N is None:
        return np.zeros(len(a_U), bool)
    return np.asarray(time_N[a_U] == time_N[b_U])


def _sign_test(later: int, earlier: int) -> float:
    from scipy.stats import binomtest

    return float(binomtest(later, later + earlier).pvalue) if later + earlier else 1.0


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
    “Part II (1974)”, else of titles. Of more than eight the most popular are kept.
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
    seen = [item for item in found if count_V[item] > 0]
    if not seen:
        hint = "Name others: an impression without a click has no place in a history."
        raise UnveilError("nobody interacted with any of these items", where="--items", found=part.strip(), hint=hint)
    kept = sorted(seen, key=lambda item: -count_V[item])[:MOST]
    return Group(", ".join(patterns), tuple(item for item in seen if item in kept))


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


#: Orders of all histories that are drawn for the null without replacement.
DRAWS = 50


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
    def u_N(self) -> Floats:
        """Relative places of all events."""
        return positions(self.sequences)

    @property
    def by_popularity(self) -> float:
        """Spearman's correlation, over the tested items, of the number of events with the mean place."""
        from scipy.stats import rankdata

        tested_V = self.order.tested_V
        ranks = [rankdata(value_V[tested_V]) for value_V in (self.timing.count_V, self.timing.mean_V)]
        return float(np.corrcoef(*ranks)[0, 1]) if all(np.ptp(rank) > 0 for rank in ranks) else 0.0

    def table(self) -> pl.DataFrame:
        """A row for each item that occurs, most popular first; tests where it has events enough."""
        columns: dict[str, Any] = {
            "item_id": self.log.items.ids,
            "title": list(self.titles),
            "events": self.timing.count_V,
            "mean_position": self.timing.mean_V,
        }
        for name, family in (("order", self.order), ("shared", self.shared), ("static", self.static)):
            if family is not None:
                each = {"z": family.z_V, "p": family.p_V, "holm": family.holm_V, "q": family.q_V}
                columns |= {f"{name}_{key}": _blank(value, family.tested_V) for key, value in each.items()}
        columns["order_z_spread"] = _blank(self.timing.z_spread_V, self.order.tested_V)
        if self.expected_V is not None:
            columns["static_mean_position"] = _blank(self.expected_V, self.order.tested_V)
        return pl.DataFrame(columns).filter(pl.col("events") > 0).sort("events", descending=True, maintain_order=True)


def fig1(
    log: Interactions, titles: Sequence[str], items: str | None = None, *, draws: int = DRAWS, seed: int = 0
) -> Fig1:
    """Everything. `titles` has one for each item of the log; `items` names what to draw, see `pick.groups_of`."""
    sequences = Sequences.of(log)
    found = timing(sequences, positions(sequences))
    if not found.tested_V.any():
        most = int(found.count_V.max(initial=0))
        raise UnveilError("no item has events enough to test", found=most, expected=f"an item with {LEAST} or more")
    groups = _groups(log, titles, items, found)
    expected_V = None
    if draws and not repeats(sequences):
        expected_V = expected_means(sequences, positions(sequences), draws, np.random.default_rng(seed))
    tied = tied_share(sequences)
    return Fig1(
        log,
        sequences,
        titles,
        groups,
        [pair(sequences, *each) for group in groups for each in pairwise(group.items)],
        found,
        Family.of(found.z_V, found.p_V, found.tested_V),
        Family.of(found.z_V, two_sided(found.z_V), found.tested_V),
        _with_ties_shared(sequences) if tied else None,
        None if expected_V is None else Family.of(*against_depletion(found, expected_V, draws), found.tested_V),
        expected_V,
        tied,
        draws,
    )


def _groups(log: Interactions, titles: Sequence[str], items: str | None, found: Timing) -> list[Group]:
    """Those asked for; else the paper's trilogies where the log has them; else the earliest and latest items."""
    if items is not None:
        return groups_of(items, log.items, titles, found.count_V)
    try:
        return groups_of(PAPER, log.items, titles, found.count_V)
    except UnveilError:
        return extremes(found.z_V, found.tested_V)


def _with_ties_shared(sequences: Sequences) -> Family:
    found = timing(sequences, positions(sequences, tied=True))
    return Family.of(found.z_V, found.p_V, found.tested_V)


def _blank(value_V: Floats, tested_V: NDArray[np.bool_]) -> pl.Series:
    return pl.Series(value_V).set(pl.Series(~tested_V), None)
