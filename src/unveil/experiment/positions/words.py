"""Positions as a table, and what it says."""

from unveil.experiment.positions.run import Places
from unveil.propensity.positions import CHANCE
from unveil.report.page import Cell, Column, Table, count, number, percent
from unveil.wording import quantity

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
