"""Figure 1 from a log: when the chosen items are taken, and how many of all items have a time of their own."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unveil.audit.motion import against_depletion, expected_means, repeats
from unveil.audit.timing import LEAST, Family, Floats, Timing, positions, tied_share, timing, two_sided
from unveil.data.interactions import Interactions
from unveil.data.sequences import Sequences
from unveil.errors import UnveilError
from unveil.experiment.fig1.pairs import Pair, pair
from unveil.experiment.fig1.pick import PAPER, Group, extremes, groups_of

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
        """A row for each item that occurs, most taken first; tests where it has events enough."""
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
