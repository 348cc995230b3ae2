"""Who gets the events: the Lorenz curve and what is read off it."""

from unveil.audit.advice.base import share
from unveil.audit.run import Audit
from unveil.report.page import Block, Cell, Column, Figure, Figures, Table, Text, count, number, percent
from unveil.report.plots import Line, Scale, lines

_EVERY = 5  # points of the curve between two marks


def concentration_blocks(found: Audit) -> list[Block]:
    """Curve and table."""
    shape = found.concentration
    return [
        Text(
            f"Half of all events fall on {shape.half:,} of {found.log.items:,} items ({share(shape.half_share)}). "
            "Unequal popularity is no fault as such: items differ in how much they are liked. But what is popular is "
            "shown more, and what is shown more becomes popular, and this curve cannot tell the two apart."
        ),
        Figures([_lorenz(found), _tail(found)]),
        _table(found),
    ]


def _lorenz(found: Audit) -> Figure:
    y = found.concentration.lorenz[::_EVERY]
    x = [place / (len(y) - 1) for place in range(len(y))]
    told = [f"the least popular {a:.0%} of the items hold {share(b)} of the events" for a, b in zip(x, y, strict=True)]
    curve = {"": Line(x, y, told)}
    axes = ("share of the items, least popular first", "share of the events")
    return Figure(
        f"Lorenz curve: Gini {found.concentration.gini:.2f}",
        lines(curve, axes, "lorenz", Scale((True, True), top=1.0, diagonal=True)),
        f"Lorenz curve of popularity. The least popular half of the items holds {share(found.concentration.lorenz[50])}"
        f" of the events; the Gini coefficient is {found.concentration.gini:.2f}.",
        "On the dashed line all items would be alike. The Gini coefficient is twice the area between the two.",
    )


def _tail(found: Audit) -> Figure:
    y = [1 - value for value in found.concentration.lorenz[::-1]][:21]
    x = [place / 100 for place in range(len(y))]
    told = [f"the most popular {a:.0%} of the items hold {share(b)} of the events" for a, b in zip(x, y, strict=True)]
    axes = ("share of the items, most popular first", "share of the events")
    return Figure(
        "The head: the most popular fifth",
        lines({"": Line(x, y, told, 1)}, axes, "head", Scale((True, True), top=1.0)),
        f"Share of the events on the most popular items: {', '.join(told[1::5])}.",
        "The same curve from its other end.",
    )


def _table(found: Audit) -> Table:
    shape, log = found.concentration, found.log
    head: list[list[Cell | str]] = [
        [f"events on the most popular {part} of the items", percent(held)] for part, held in shape.head.items()
    ]
    rows: list[list[Cell | str]] = [
        ["Gini coefficient", number(shape.gini, 3)],
        *head,
        ["items that hold half of the events", count(shape.half)],
        ["items with a single event", count(log.skew.once)],
        ["items with fewer than five events", percent(found.cold.rare_items)],
        ["events in a history, median", number(log.lengths.median, 0)],
        ["events in the longest history", count(log.lengths.longest)],
    ]
    return Table("Popularity and lengths in figures", [Column("figure"), Column("value", True)], rows, sortable=False)
