"""What a log is, in figures: counts, lengths, sparsity, time span, ties, repeats, popularity skew."""

from dataclasses import dataclass, fields, is_dataclass
from typing import Annotated, Any, get_type_hints

import numpy as np
from numpy.typing import NDArray

from unveil.data.indexing import counted
from unveil.data.interactions import Interactions, Sequences, moment
from unveil.errors import UnveilError
from unveil.wording import quantity

TIE_RULE = "events of one user at the same time stay in file order (stable)"


def rows(figures: Any, of: str = "") -> list[tuple[str, str]]:
    """The figures as labels and texts for people: the same rows for all logs with the same columns.

    A field says it in its type: a label, a format of it and those beside it, and perhaps the row where there is none.
    """
    values = {each.name: getattr(figures, each.name) for each in fields(figures)}
    texts = {name: ", ".join(value) if isinstance(value, tuple) else value for name, value in values.items()}
    table: list[tuple[str, str]] = []
    for name, kind in get_type_hints(type(figures), include_extras=True).items():
        label, text, *missing = getattr(kind, "__metadata__", ("", ""))
        if is_dataclass(values[name]):
            table += rows(values[name], label)
        elif values[name] is None:
            table += missing
        elif text:
            table.append((label.format(of=of), text.format(**texts)))
    return table


@dataclass(frozen=True)
class Impressions:
    """What users were shown, whether they clicked or not."""

    events: Annotated[int, "impressions", "{events:,}"]
    clicked: Annotated[float, "  clicked", "{clicked:.1%}"]  # share of the events
    users: Annotated[int, "  users, items", "{users:,}, {items:,}"]
    items: int


@dataclass(frozen=True)
class Lengths:
    """How long the histories are, over users with at least one interaction."""

    shortest: Annotated[int, "history length, shortest", "{shortest:,}"]
    median: Annotated[float, "  median", "{median:,.1f}"]
    mean: Annotated[float, "  mean", "{mean:,.2f}"]
    longest: Annotated[int, "  longest", "{longest:,}"]


@dataclass(frozen=True)
class Ties:
    """Events whose place in the history the clock does not settle."""

    #: That share their time with another event of the same user.
    events: Annotated[int, "events tied in time", "{events:,} ({share:.1%})"]
    share: float  # of all interactions
    #: Users whose last time is shared by two or more events: their test item depends on the tie rule.
    last: Annotated[int, "users with a tied last event", "{last:,} ({last_share:.1%})"]
    last_share: float  # of all users


@dataclass(frozen=True)
class Skew:
    """How unequally the interactions fall on the items."""

    gini: Annotated[float, "Gini of popularity", "{gini:.3f}"]  # 0: all items alike; 1: one item has everything
    top_1_percent: Annotated[float, "interactions on the top 1% of items", "{top_1_percent:.1%}"]
    top_10_percent: Annotated[float, "interactions on the top 10% of items", "{top_10_percent:.1%}"]
    once: Annotated[int, "items with one interaction", "{once:,}"]


@dataclass(frozen=True, repr=False)
class Description:
    """The figures of one log; all but `impressions` are about interactions. Printed, it is a table."""

    users: Annotated[int, "users", "{users:,}"]
    items: Annotated[int, "items", "{items:,}"]
    interactions: Annotated[int, "interactions", "{interactions:,}"]
    impressions: Impressions | None  # None where the log has no impressions without a click
    lengths: Lengths
    too_short: Annotated[int, "histories below 3 events", "{too_short:,}"]  # training only under leave-one-out
    sparsity: Annotated[float, "sparsity", "{sparsity:.2%}"]  # 1 − distinct (user, item) pairs / (users × items)
    #: UTC; None where the log has an order but no clock.
    start: Annotated[str | None, "first event (UTC)", "{start}", ("clock", "none: events have an order only")]
    end: Annotated[str | None, "last event (UTC)", "{end}"]
    ties: Ties | None
    repeats: Annotated[int, "repeats of user and item", "{repeats:,}"]  # with an item that the same user had before
    skew: Skew
    columns: Annotated[tuple[str, ...], "columns", "{columns}"]

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


def lorenz(count_V: NDArray[np.int64] | NDArray[np.float64], share_L: NDArray[np.float64]) -> NDArray[np.float64]:
    """Share of the events on the least popular `share_L` of the items; linear between two items."""
    below_V1 = np.concatenate([[0.0], np.cumsum(np.sort(count_V)) / count_V.sum()])
    return np.asarray(np.interp(share_L, np.linspace(0, 1, len(below_V1)), below_V1))


def head(count_V: NDArray[np.int64], share: float) -> float:
    """Share of the events on the most popular `share` of the items that have any: 1 − lorenz(1 − share)."""
    return 1 - float(lorenz(count_V[count_V > 0], np.array([1 - share]))[0])
