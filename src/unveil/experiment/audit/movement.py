"""Does popularity stand still: tests of all items, heads that change, items that move."""

from collections.abc import Collection, Sequence

from unveil.audit.motion import Motion, Tested
from unveil.audit.run import Audit
from unveil.experiment.audit.words import NO_CLOCK, TESTS, TOO_FEW
from unveil.report.page import Block, Cell, Column, Figure, Figures, Note, Table, Text, count, number, percent
from unveil.report.plots import Line, Scale, lines


def blocks(found: Audit, titles: Sequence[str]) -> list[Block]:
    """Along histories and along the calendar, where the log allows them."""
    clocks = {"histories": found.histories, "the calendar": found.calendar}
    there = {name: motion for name, motion in clocks.items() if motion is not None}
    if not there:
        return [Note(TOO_FEW)]
    told: list[Block] = [Text(TESTS), _tests(there)]
    if found.log.start is None:
        told.append(Note(NO_CLOCK))
    told.append(Figures([_heads(there)]))
    told += [Figures([_movers(motion, name, titles)]) for name, motion in there.items() if motion.movers]
    return _side_by_side(told)


def _side_by_side(told: list[Block]) -> list[Block]:
    """All plots in one row of the page, after the rest."""
    plots = [figure for block in told if isinstance(block, Figures) for figure in block.figures]
    return [*(block for block in told if not isinstance(block, Figures)), Figures(plots)]


def _tests(there: dict[str, Motion]) -> Table:
    rows: list[list[Cell | str]] = []
    for name, motion in there.items():
        shift = number(motion.typical_shift, 3)
        rows.append([f"{name}: random order", *_counts(motion.random_order), number(motion.dispersion, 1), shift])
        if motion.static is not None:
            rows.append([f"{name}: static propensity, nothing taken twice", *_counts(motion.static), "", ""])
    columns = [
        Column("along … against …"),
        Column("items tested", True, "ten events or more"),
        Column("reject", True, "Holm, 5%"),
        Column("share", True, "of the tested"),
        Column("reject", True, "false discovery rate, 5%"),
        Column("dispersion", True, "mean z²; 1 by chance"),
        Column("typical shift", True, "of the whole span"),
    ]
    events = next(iter(there.values())).events
    caption = f"How many items reject a popularity that stands still, {events:,} first takes"
    return Table(caption, columns, rows, sortable=False)


def _counts(tested: Tested) -> list[Cell]:
    return [count(tested.items), count(tested.holm), percent(tested.share), count(tested.fdr)]


def _heads(there: dict[str, Motion]) -> Figure:
    drawn: dict[str, Line] = {}
    for place, (name, motion) in enumerate(there.items()):
        drawn[f"along {name}"] = _lags(motion.heads.shared, "", place)
        chance = motion.heads.chance
    size = next(iter(there.values())).heads.size
    drawn["dealt at random"] = _lags(chance, "dealt at random: ", None)
    return Figure(
        f"Are the {size} most taken items still the same?",
        lines(drawn, ("tenths apart", "of the head in common"), "heads", Scale((False, True), top=1.0)),
        "; ".join(f"{name}: {', '.join(f'{value:.0%}' for value in line.y)}" for name, line in drawn.items()),
        f"Histories, and the log, cut into tenths: how many of the {size} most taken items of one tenth are among "
        "those of another, by how many tenths lie between. The dashed line is what small counts alone would do.",
    )


def _lags(shared: Sequence[float], before: str, colour: int | None) -> Line:
    lags = range(1, len(shared) + 1)
    told = [f"{before}{lag} apart: {value:.0%} in common" for lag, value in zip(lags, shared, strict=True)]
    return Line(list(lags), shared, told, colour)


def _movers(motion: Motion, name: str, titles: Sequence[str]) -> Figure:
    drawn: dict[str, Line] = {}
    for place, mover in enumerate(motion.movers):
        title = _apart(titles[mover.item], drawn)
        tenths = range(1, motion.periods + 1)
        told = [f"{title}, tenth {n}: {value:.2%} of the events" for n, value in zip(tenths, mover.shares, strict=True)]
        drawn[title] = Line(list(tenths), mover.shares, told, place)
    axes = (f"tenth of {'a history' if name == 'histories' else 'the log'}", "share of the events")
    slug = "movers-" + name.split()[-1]
    table = Table(
        f"Shares of the events along {name}",
        [Column("tenth", True), *(Column(title, True) for title in drawn)],
        [[count(n + 1), *(percent(line.y[n], 2) for line in drawn.values())] for n in range(motion.periods)],
        sortable=False,
    )
    return Figure(
        f"Along {name}: the items that move most",
        lines(drawn, axes, slug, Scale((False, True))),
        "; ".join(f"{title}: {', '.join(f'{value:.2%}' for value in line.y)}" for title, line in drawn.items()),
        "Of the items that reject standing still, the two furthest to the early side and the two to the late side.",
        table,
    )


def _apart(title: str, others: Collection[str]) -> str:
    """The title, with a number behind it where another item has the same."""
    same = sum(other == title or other.startswith(f"{title} #") for other in others)
    return f"{title} #{same + 1}" if same else title
