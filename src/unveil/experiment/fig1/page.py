"""The page of Figure 1: boxes of chosen items, all items around the middle, and the tests."""

from collections.abc import Sequence

import numpy as np

from unveil.audit.timing import ALPHA, LEAST, Family
from unveil.experiment.fig1 import plots
from unveil.experiment.fig1.pick import Group
from unveil.experiment.fig1.run import Fig1
from unveil.experiment.fig1.words import caution, reading
from unveil.report.page import (
    Block,
    Cell,
    Code,
    Column,
    Figure,
    Figures,
    KeyFigure,
    Note,
    Page,
    Section,
    Table,
    Text,
    count,
    number,
)

_LEDE = (
    "If the chance of being shown an item never changed, it would not matter when in a history the item stands. The "
    "paper shows two film trilogies whose sequels are taken later than the originals, and concludes that propensities "
    "change with time. Here the same boxes are drawn, and every item of the log is put to the test."
)
_NULL = (
    "Each event stands at u = (place + ½) / n in its user's history of n events. In random order an item's places are "
    "drawn from its users' histories, so mean and variance are known exactly, history by history. Two things are "
    "tested together: the mean of u, and its spread around the middle (χ² with two degrees of freedom). p-values are "
    "corrected for the number of items: by Holm, so that hardly one item is named by chance, and by Benjamini and "
    "Hochberg, so that at most one in twenty of those named is."
)
_STATIC = (
    "The second null is a static propensity with the items that were taken used up: every item has a rate at which it "
    "reaches users, the same at all times and for all, fitted to how often items were taken and how long histories "
    "are; likely items come first. Orders are drawn {draws} times, given which items each user took; only mean places "
    "are compared with them."
)
_MOST = 10


def fig1_page(found: Fig1, command: str) -> Page:
    """The whole page."""
    first, *rest = reading(found)
    static = [Text(_STATIC.format(draws=found.draws))] if found.static is not None else []
    ends = [_ends(found, -1, "earliest"), _ends(found, 1, "latest")]
    return Page(
        title="When items are taken",
        lede=_LEDE,
        key_figures=_key_figures(found),
        sections=[
            Section("What the log says", [Note(first), *map(Text, rest), Note(caution(found))]),
            *(Section(group.name, _boxes(found, group, n)) for n, group in enumerate(found.groups)),
            Section("All items", [_funnel(found), _counts(found), *(table for table in ends if table.rows)]),
            Section("How it was made", [Text(_NULL), *static, Code(command)]),
        ],
    )


def _key_figures(found: Fig1) -> list[KeyFigure]:
    order = found.order
    told = [KeyFigure(f"{order.certain / order.tested:.0%}", f"of {order.tested:,} items differ from random order")]
    if found.shared is not None:
        told.append(KeyFigure(f"{found.shared.certain / found.shared.tested:.0%}", "where ties share their places"))
    if found.static is not None:
        label = "differ from a static propensity without repeats"
        told.append(KeyFigure(f"{found.static.certain / found.static.tested:.0%}", label))
    return [
        *told,
        KeyFigure(f"{found.timing.typical_shift:.3f}", "of a history: how far a typical item lies off the middle"),
    ]


def _boxes(found: Fig1, group: Group, n: int) -> list[Block]:
    places, shares = samples(found, group)
    drawn = [
        Figure(
            "Steps: the place in the history, 1 is the first",
            plots.boxes(places, "step", f"steps{n}"),
            _alt(places, 0),
            "As in the paper: boxes from the first to the third quartile, the median inside, whiskers within 1.5 "
            "quartile ranges, outliers left out. Users with long histories have large steps.",
        ),
        Figure(
            "The same as a share of the history",
            plots.boxes(shares, "place in the history, 0 first, 1 last", f"shares{n}", digits=3, middle=0.5),
            _alt(shares, 3),
            "In random order all boxes would span the middle half.",
        ),
    ]
    return [Figures(drawn), _items(found, group)]


def samples(found: Fig1, group: Group) -> tuple[list[plots.Box], list[plots.Box]]:
    """The boxes of a group: steps counted from 1, and shares of the history."""
    sequences = found.sequences
    place_N = np.arange(len(sequences)) - np.repeat(sequences.offset_U1[:-1], sequences.length_U) + 1.0
    steps, shares = (
        [plots.Box.of(found.titles[item], value_N[sequences.item_N == item]) for item in group.items]
        for value_N in (place_N, found.u_N)
    )
    return steps, shares


def _alt(drawn: Sequence[plots.Box], digits: int) -> str:
    return f"Boxplots. Medians: {'; '.join(f'{box.label} {box.median:.{digits}f}' for box in drawn)}."


def _items(found: Fig1, group: Group) -> Table:
    return _tests(found, f"The tests of {group.name}", group.items)


def _ends(found: Fig1, sign: int, name: str) -> Table:
    caption = f"The items that come {name}: furthest from random order first, of those that differ by Holm's correction"
    return _tests(found, caption, found.order.most(sign, _MOST))


def _tests(found: Fig1, caption: str, items: Sequence[int]) -> Table:
    columns = [Column("item"), Column("events", True), Column("mean place", True), Column("z", True, "of the mean")]
    families = [("random order", found.order), ("ties shared", found.shared), ("static propensity", found.static)]
    there = [(name, family) for name, family in families if family is not None]
    columns += [Column(name, True, "p, Holm-corrected") for name, _ in there]
    return Table(caption, columns, [_row(found, item, [family for _, family in there]) for item in items])


def _row(found: Fig1, item: int, families: Sequence[Family]) -> list[Cell | str]:
    timing = found.timing
    head: list[Cell | str] = [
        found.titles[item],
        count(timing.count_V[item]),
        number(timing.mean_V[item], 3),
        number(timing.z_V[item], 1),
    ]
    return [*head, *(_p(family, item) for family in families)]


def _p(family: Family, item: int) -> Cell:
    p = float(family.holm_V[item])
    if not family.tested_V[item]:
        return Cell("too few events", 2.0)
    return Cell("below 0.001" if p < 0.001 else f"{p:.3f}", p)


def _funnel(found: Fig1) -> Figure:
    timing, shown = found.timing, np.flatnonzero(found.order.tested_V)
    differs = found.order.holm_V[shown] < ALPHA
    spread = np.sqrt(np.median(timing.variance_V[shown] * timing.count_V[shown]))
    x = np.geomspace(LEAST, timing.count_V.max(), 60)
    return Figure(
        "Mean place of every item",
        plots.funnel(
            timing.count_V[shown],
            timing.mean_V[shown],
            differs,
            [found.titles[item] for item in shown.tolist()],
            (x, 1.96 * spread / np.sqrt(x)),
        ),
        f"Mean place against number of events: {len(shown):,} items, {int(differs.sum()):,} differ from random order.",
        "The band holds 95% of items in random order; coloured are those that differ by Holm's correction.",
    )


def _counts(found: Fig1) -> Table:
    families = [
        ("random order, ties as in the file", found.order),
        ("the same, by the mean place alone", found.mean),
        ("random order, ties share their places", found.shared),
        ("a static propensity without repeats, by the mean place alone", found.static),
    ]
    rows: list[list[Cell | str]] = [
        [name, *(count(family.plain()[key]) for key in ("tested", "holm", "fdr", "early", "late"))]
        for name, family in families
        if family is not None
    ]
    columns = [
        Column("null"),
        Column("items tested", True),
        Column("differ", True, "Holm"),
        Column("differ", True, "false discovery rate"),
        Column("early", True, "of the latter"),
        Column("late", True, "of the latter"),
    ]
    return Table(f"How many items differ, at {ALPHA:.0%}", columns, rows, sortable=False)
