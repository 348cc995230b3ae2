"""What a log is, in figures: counts, lengths, sparsity, time span, ties, repeats, popularity skew."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unveil.data.indexing import counted
from unveil.data.interactions import Interactions, Sequences, moment
from unveil.errors import UnveilError
from unveil.wording import quantity

TIE_RULE = "events of one user at the same time stay in file order (stable)"


@dataclass(frozen=True)
class Impressions:
    """What users were shown, whether they clicked or not."""

    events: int
    clicked: float  # share of the events
    users: int
    items: int


@dataclass(frozen=True)
class Lengths:
    """How long the histories are, over users with at least one interaction."""

    shortest: int
    median: float
    mean: float
    longest: int


@dataclass(frozen=True)
class Ties:
    """Events whose place in the history the clock does not settle."""

    events: int  # events that share their time with another event of the same user
    share: float  # of all interactions
    last: int  # users whose last time is shared by two or more events: their test item depends on the tie rule
    last_share: float  # of all users


@dataclass(frozen=True)
class Skew:
    """How unequally the interactions fall on the items."""

    gini: float  # 0: all items alike; 1: one item has everything
    top_1_percent: float  # share of interactions that fall on the most popular 1% of items
    top_10_percent: float
    once: int  # items with a single interaction


@dataclass(frozen=True, repr=False)
class Description:
    """The figures of one log; all but `impressions` are about interactions. Printed, it is a table."""

    users: int
    items: int
    interactions: int
    impressions: Impressions | None  # None where the log has no impressions without a click
    lengths: Lengths
    sparsity: float  # 1 − distinct (user, item) pairs / (users × items)
    start: str | None  # UTC; None where the log has an order but no clock
    end: str | None
    ties: Ties | None
    repeats: int  # interactions with an item the same user had before
    skew: Skew
    too_short: int  # users with fewer than three events: training only under leave-one-out
    columns: tuple[str, ...]

    def __repr__(self) -> str:
        sizes = (self.interactions, "interaction"), (self.users, "user"), (self.items, "item")
        return f"Description({', '.join(quantity(count, noun) for count, noun in sizes)})"

    def __str__(self) -> str:
        table = rows(self)
        left, right = (max(map(len, column)) for column in zip(*table, strict=True))
        return "\n".join(f"{label:<{left}}  {value:>{right}}" for label, value in table)


def describe(log: Interactions, sequences: Sequences | None = None) -> Description:
    """Count everything a reader should know about a log before using it; its histories may be at hand already."""
    sequences = Sequences.of(log) if sequences is None else sequences
    if not len(sequences):
        raise UnveilError("there is no interaction in the log", hint="Check the file, or loosen the filters.")
    length_U, count_V = sequences.length_U, sequences.count_V
    length_U, count_V = length_U[length_U > 0], count_V[count_V > 0]
    pairs = tied = tied_last = 0
    times: list[int] = []
    for part in sequences.blocks():  # the log may be larger than memory
        pairs += len(np.unique(part.user_N.astype(np.int64) * part.n_items + part.item_N))
        if (time_N := part.time_N) is not None and len(time_N):
            with_next_N = (np.diff(part.user_N) == 0) & (np.diff(time_N) == 0)
            tied_N = np.append(with_next_N, False) | np.insert(with_next_N, 0, False)
            tied += int(tied_N.sum())
            tied_last += int(tied_N[part.offset_U1[1:][part.length_U > 0] - 1].sum())
            times += [int(time_N.min()), int(time_N.max())]
    events, users, impressions = len(sequences), len(length_U), None
    if log.clicked is not None:
        seen = np.count_nonzero(counted(log.user, len(log.users))), np.count_nonzero(counted(log.item, len(log.items)))
        impressions = Impressions(len(log), events / len(log), *map(int, seen))
    return Description(
        users=users,
        items=len(count_V),
        interactions=events,
        impressions=impressions,
        lengths=Lengths(int(length_U.min()), float(np.median(length_U)), float(length_U.mean()), int(length_U.max())),
        sparsity=1 - pairs / (users * len(count_V)),
        start=moment(min(times)).replace("T", " ") if times else None,
        end=moment(max(times)).replace("T", " ") if times else None,
        ties=Ties(tied, tied / events, tied_last, tied_last / users) if times else None,
        repeats=events - pairs,
        skew=Skew(gini(count_V), head(count_V, 0.01), head(count_V, 0.1), int((count_V == 1).sum())),
        too_short=int((length_U < 3).sum()),
        columns=("user", "item", *log.optional()),
    )


def gini(count_V: NDArray[np.int64] | NDArray[np.float64]) -> float:
    """Gini coefficient Σ_v (2v − V − 1)·c_(v) / (V · Σ c) of counts ≥ 0, c sorted upwards, v from 1; 0 if all are 0."""
    ordered = np.sort(count_V).astype(float)
    size, total = len(ordered), float(ordered.sum())
    return float(((2 * np.arange(1, size + 1) - size - 1) * ordered).sum() / (size * total)) if total else 0.0


def lorenz(count_V: NDArray[np.int64], share_L: NDArray[np.float64]) -> NDArray[np.float64]:
    """Share of the events on the least popular `share_L` of the items that have any; linear between two items."""
    rising_V = np.sort(count_V[count_V > 0])
    below_V1 = np.concatenate([[0.0], np.cumsum(rising_V) / rising_V.sum()])
    return np.asarray(np.interp(share_L, np.linspace(0, 1, len(below_V1)), below_V1))


def head(count_V: NDArray[np.int64], share: float) -> float:
    """Share of the events on the most popular `share` of the items: 1 − lorenz(1 − share)."""
    return 1 - float(lorenz(count_V, np.array([1 - share]))[0])


def rows(figures: Description) -> list[tuple[str, str]]:
    """The figures as labels and texts for people: the same rows for all logs with the same columns."""
    lengths, skew, impressions, ties = figures.lengths, figures.skew, figures.impressions, figures.ties
    table = [(name, f"{getattr(figures, name):,}") for name in ("users", "items", "interactions")]
    if impressions is not None:
        table += [
            ("impressions", f"{impressions.events:,}"),
            ("  clicked", f"{impressions.clicked:.1%}"),
            ("  users, items", f"{impressions.users:,}, {impressions.items:,}"),
        ]
    table += [
        ("history length, shortest", f"{lengths.shortest:,}"),
        ("  median", f"{lengths.median:,.1f}"),
        ("  mean", f"{lengths.mean:,.2f}"),
        ("  longest", f"{lengths.longest:,}"),
        ("histories below 3 events", f"{figures.too_short:,}"),
        ("sparsity", f"{figures.sparsity:.2%}"),
    ]
    if ties is None:
        table += [("clock", "none: events have an order only")]
    else:
        table += [
            ("first event (UTC)", str(figures.start)),
            ("last event (UTC)", str(figures.end)),
            ("events tied in time", f"{ties.events:,} ({ties.share:.1%})"),
            ("users with a tied last event", f"{ties.last:,} ({ties.last_share:.1%})"),
        ]
    return [
        *table,
        ("repeats of user and item", f"{figures.repeats:,}"),
        ("Gini of popularity", f"{skew.gini:.3f}"),
        ("interactions on the top 1% of items", f"{skew.top_1_percent:.1%}"),
        ("interactions on the top 10% of items", f"{skew.top_10_percent:.1%}"),
        ("items with one interaction", f"{skew.once:,}"),
        ("columns", ", ".join(figures.columns)),
    ]
