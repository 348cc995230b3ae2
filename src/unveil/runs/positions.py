"""Examination of every position of a log, with intervals, beside plain shares of clicks. Shapes: K positions."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unveil.data.interactions import Interactions
from unveil.propensity.positions import CHANCE, Placings, Position, alike, drawn_again, examined, placings_of
from unveil.report.page import Cell, Column, Table, count, number, percent
from unveil.wording import quantity

#: Ends of the interval.
ENDS = (0.025, 0.975)


@dataclass(frozen=True)
class Place:
    """A position; `relative` and `examined` are as shares of the position that is examined best."""

    position: int
    shown: int
    clicked: int
    rate: float
    relative: float  # the plain share of clicks, liking and all
    examined: float
    low: float
    high: float


@dataclass(frozen=True)
class Places:
    """Every position, the one that others are compared with, and how much tells of them."""

    places: tuple[Place, ...]
    best: int
    items: int  # that were clicked and shown at several positions
    clicks: int  # on them
    p: float  # of a test that all positions are examined alike


def looked_at(
    log: Interactions, *, deepest: int = 0, add: float = Position.add, draws: int = 400, seed: int = 0
) -> Places:
    """e of a whole log: what was marked as exposed, or all of it."""
    placings = placings_of(log, np.ones(len(log), bool) if log.exposed is None else log.exposed, deepest)
    shown_K, clicked_K = placings.by_position()
    telling = placings.telling().linked(clicked_K > 0)
    e_K = examined(telling, add)
    best = int(e_K.argmax())
    e_DK = drawn_again(telling, add, draws, np.random.default_rng(seed))
    low_K, high_K = np.quantile(e_DK / e_DK[:, [best]], ENDS, axis=0)
    kept_K = np.isin(placings.position_K, telling.position_K)
    places = _places(telling, shown_K[kept_K], clicked_K[kept_K], best, (e_K, low_K, high_K))
    return Places(
        places, places[best].position, len(np.unique(telling.item_P)), int(telling.clicked_P.sum()), alike(telling)
    )


def _places(
    telling: Placings,
    shown_K: NDArray[np.float64],
    clicked_K: NDArray[np.float64],
    best: int,
    figures: tuple[NDArray[np.float64], ...],
) -> tuple[Place, ...]:
    rate_K = clicked_K / shown_K
    counts = (shown_K.astype(int), clicked_K.astype(int))
    columns = (telling.position_K, *counts, rate_K, rate_K / rate_K[best], *figures)
    return tuple(Place(*row) for row in zip(*(column.tolist() for column in columns), strict=True))


WHAT = (
    "“Examined” is how often something at the position is looked at, as a share of position {best}: the clicks on "
    "{items} that were shown at several positions tell it ({clicks}), each item compared with itself. “Clicked, "
    "relative” compares positions as they are, with whatever is placed there. Intervals are of “examined”, as if "
    "impressions were independent; position {best} was picked for being the highest, so that others look a little low."
)
UNSURE = (
    "It may all be chance: that every position is looked at alike has p = {p:.2g}. Weights by these figures "
    "would be mostly noise."
)
SURE = "Positions are not looked at alike (p = {p:.1g})."
USE = (
    "Use it: --set propensity.name=position, with an estimator that weights (itps). It corrects for the place on the "
    "page, not for what was never shown."
)


def table(found: Places) -> Table:
    """A row for each position."""
    columns = [
        Column("position"),
        Column("shown", True),
        Column("clicked", True),
        Column("share", True),
        Column("clicked, relative", True),
        Column("examined", True),
        Column("95%", True),
    ]
    rows: list[list[Cell | str]] = [
        [
            str(each.position),
            count(each.shown),
            count(each.clicked),
            percent(each.rate, 2),
            number(each.relative),
            number(each.examined),
            Cell("" if each.position == found.best else f"{each.low:.2f} to {each.high:.2f}", each.low),
        ]
        for each in found.places
    ]
    return Table("How often is each position looked at?", columns, rows, sortable=False)


def reading(found: Places) -> list[str]:
    """What the columns are, whether anything is sure, and what to do with it."""
    items, clicks = quantity(found.items, "item"), quantity(found.clicks, "click")
    sure = (SURE if found.p < CHANCE else UNSURE).format(p=found.p)
    return [sure, WHAT.format(best=found.best, items=items, clicks=clicks), USE]
