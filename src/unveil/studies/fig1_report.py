"""The page and files of Figure 1: boxes of chosen items, all items around the middle, and the tests."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.audit.timing import ALPHA, LEAST, Family
from unveil.files import write_json, write_whole
from unveil.report.page import (
    Block,
    Cell,
    Column,
    Figure,
    Figures,
    KeyFigure,
    Page,
    Section,
    Table,
    count,
    number,
    write_page,
)
from unveil.report.plots import canvas
from unveil.report.prose import Prose
from unveil.report.svg import COLOURS, INK, MUTED, Drawing, themed
from unveil.studies.fig1 import Fig1, Group

_ROW = 0.42
_LONGEST = 34


@dataclass(frozen=True)
class Box:
    """Five numbers of a sample: quartiles, and the outermost values within 1.5 quartile ranges of them."""

    label: str
    low: float
    first: float
    median: float
    third: float
    high: float
    count: int

    @classmethod
    def of(cls, label: str, values: NDArray[np.float64]) -> "Box":
        """Of a sample that is not empty."""
        first, median, third = np.quantile(values, [0.25, 0.5, 0.75]).tolist()
        reach = 1.5 * (third - first)
        inside = values[(values >= first - reach) & (values <= third + reach)]
        return cls(label, float(inside.min()), first, median, third, float(inside.max()), len(values))


def boxes(drawn: Sequence[Box], x: str, slug: str, *, digits: int = 0, middle: float | None = None) -> Drawing:
    """A row for each box, from the top; outliers are not drawn."""
    with canvas(x, "", (5.4, 0.8 + _ROW * len(drawn))) as on:
        on.axes.grid(visible=False, axis="y")
        on.axes.spines["left"].set_visible(False)
        if middle is not None:
            on.axes.axvline(middle, color=MUTED, linewidth=0.8, dashes=(4, 3))
        for row, box in enumerate(drawn):
            on.axes.plot([box.low, box.high], [row, row], color=COLOURS[0], linewidth=1.1)
            bar = on.axes.barh(row, box.third - box.first, 0.56, left=box.first, color=COLOURS[0], alpha=0.35)
            bar[0].set_gid(f"box{row}")
            on.axes.plot([box.median] * 2, [row - 0.28, row + 0.28], color=INK, linewidth=1.8)
        on.axes.set_yticks(range(len(drawn)), [_short(box.label) for box in drawn], color=INK)
        on.axes.set_ylim(len(drawn) - 0.4, -0.6)
        return themed(on.figure, slug, {f"box{row}": [_summary(box, digits)] for row, box in enumerate(drawn)})


def funnel(
    count_V: NDArray[np.int64],
    mean_V: NDArray[np.float64],
    differs_V: NDArray[np.bool_],
    titles: Sequence[str],
    band: tuple[NDArray[np.float64], NDArray[np.float64]],
    slug: str = "funnel",
) -> Drawing:
    """Mean place against number of events; `band` is where 95% of items in random order would lie."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    with canvas("events of the item, logarithmic", "mean place in histories") as on:
        on.axes.set_xscale("log")
        on.axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
        on.axes.xaxis.set_minor_formatter(NullFormatter())
        x, half = band
        on.axes.fill_between(x, 0.5 - half, 0.5 + half, color=MUTED, alpha=0.18, linewidth=0)
        for which, colour, name in ((~differs_V, MUTED, "alike"), (differs_V, COLOURS[1], "differs")):
            marks = on.axes.scatter(count_V[which], mean_V[which], s=7, color=colour, alpha=0.7, linewidths=0)
            marks.set_gid(name)
        lines = [
            f"{title}: {n:,} events, mean place {m:.3f}" for title, n, m in zip(titles, count_V, mean_V, strict=True)
        ]
        titles_of = {
            name: [line for line, shown in zip(lines, which, strict=True) if shown]
            for name, which in (("alike", ~differs_V), ("differs", differs_V))
        }
        return themed(on.figure, slug, {name: each for name, each in titles_of.items() if each})


def _summary(box: Box, digits: int) -> str:
    quartiles = ", ".join(f"{value:,.{digits}f}" for value in (box.first, box.median, box.third))
    return f"{box.label}: {box.count:,} events, quartiles {quartiles}"


def _short(label: str) -> str:
    return label if len(label) <= _LONGEST else f"{label[: _LONGEST - 1]}…"


_MOST = 10


def write(found: Fig1, folder: Path, command: Sequence[str]) -> list[str]:
    """Write items.csv, results.json, index.html and README.md; the findings. The same log gives the same bytes."""
    parts = {**_tables(found), **_figures(found)}
    prose = _prose(found, shlex.join(command), parts)
    paragraphs = [*prose.paragraphs("findings"), *prose.paragraphs("caution")]
    write_whole(folder / "items.csv", found.table().write_csv())
    write_page(_page(found, prose, parts), folder / "index.html")
    code = f"```\n{shlex.join(command)}\n```"
    write_whole(folder / "README.md", "\n\n".join(["# When users interact with items", *paragraphs, code]) + "\n")
    write_json(folder / "results.json", results(found, shlex.join(command)))
    return paragraphs


def findings(found: Fig1) -> list[str]:
    """The conclusions, each a paragraph."""
    return _prose(found, "", {}).paragraphs("findings")


def _prose(found: Fig1, command: str, parts: Mapping[str, Block]) -> Prose:
    early, late = ([found.titles[item] for item in found.order.most(sign, 3)] for sign in (-1, 1))
    pairs = [(each, found.titles[each.first], found.titles[each.second]) for each in found.pairs]
    figures = {
        "found": found,
        "command": command,
        "parts": parts,
        "least": LEAST,
        "alpha": ALPHA,
        "by_popularity": found.by_popularity,
        "early": early,
        "late": late,
        "pairs": [each for each in pairs if each[0].share is not None],
        "family": lambda family: f"{family.certain:,} ({family.certain / family.tested:.0%})",
    }
    return Prose(["fig1.md.j2"], figures)


def _page(found: Fig1, prose: Prose, parts: Mapping[str, Block]) -> Page:
    said = [*prose.sections("findings", parts, "What the log says"), *prose.sections("caution", parts)]
    blocks = [block for section in said for block in section.blocks]
    return Page(
        title="When do users interact with items?",
        lede=prose.paragraphs("lede")[0],
        key_figures=_key_figures(found),
        sections=[
            Section("What the log says", blocks),
            *prose.sections("page", parts),
            *prose.sections("methods", parts, "How it was made"),
        ],
    )


def _key_figures(found: Fig1) -> list[KeyFigure]:
    families = [
        (found.order, f"of {found.order.tested:,} items differ from random order"),
        (found.shared, "if events with the same timestamp share their places"),
        (found.static, "differ from a static propensity without repeats"),
    ]
    shift = KeyFigure(f"{found.timing.typical_shift:.3f}", "of a history: distance of a typical item from the middle")
    return [*(KeyFigure(f"{f.certain / f.tested:.0%}", label) for f, label in families if f is not None), shift]


def _tables(found: Fig1) -> dict[str, Block]:
    ends = {"earliest": found.order.most(-1, _MOST), "latest": found.order.most(1, _MOST)}
    return {
        "counts": _counts(found),
        **{f"group-{n}": _tests(found, group.items) for n, group in enumerate(found.groups)},
        **{name: _tests(found, items) for name, items in ends.items() if items},
    }


def _figures(found: Fig1) -> dict[str, Block]:
    drawn = {f"boxes-{n}": _boxes(found, group, n) for n, group in enumerate(found.groups)}
    return {"funnel": _funnel(found), **drawn}


def _boxes(found: Fig1, group: Group, n: int) -> Figures:
    steps, shares = samples(found, group)
    return Figures(
        [
            Figure(
                "Steps: the place in the history, 1 is the first",
                boxes(steps, "step", f"steps{n}"),
                _alt(steps, 0),
                "Boxes: quartiles and median; whiskers: within 1.5 quartile ranges; outliers are not drawn.",
            ),
            Figure(
                "The same as a share of the history",
                boxes(shares, "place in the history, 0 first, 1 last", f"shares{n}", digits=3, middle=0.5),
                _alt(shares, 3),
                "In random order all boxes would span the middle half.",
            ),
        ]
    )


def samples(found: Fig1, group: Group) -> tuple[list[Box], list[Box]]:
    """The boxes of a group: steps counted from 1, and shares of the history."""
    sequences = found.sequences
    place_N = np.arange(len(sequences)) - np.repeat(sequences.offset_U1[:-1], sequences.length_U) + 1.0
    steps, shares = (
        [Box.of(found.titles[item], value_N[sequences.item_N == item]) for item in group.items]
        for value_N in (place_N, found.u_N)
    )
    return steps, shares


def _alt(drawn: Sequence[Box], digits: int) -> str:
    return f"Boxplots. Medians: {'; '.join(f'{box.label} {box.median:.{digits}f}' for box in drawn)}."


def _tests(found: Fig1, items: Sequence[int]) -> Table:
    columns = [Column("item"), Column("events", True), Column("mean place", True), Column("z", True, "of the mean")]
    families = [("random order", found.order), ("ties shared", found.shared), ("static propensity", found.static)]
    there = [(name, family) for name, family in families if family is not None]
    columns += [Column(name, True, "p, Holm-corrected") for name, _ in there]
    return Table("", columns, [_row(found, item, [family for _, family in there]) for item in items])


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
        funnel(
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
    return Table("", columns, rows, sortable=False)


def results(found: Fig1, command: str) -> dict[str, Any]:
    """All that was found."""
    families = {
        "random_order": found.order,
        "random_order_mean": found.mean,
        "ties_shared": found.shared,
        "static_propensity_mean": found.static,
    }
    return {
        "question": "fig1",
        "command": command,
        "data": {"fingerprint": found.log.fingerprint(), "events": len(found.sequences), "items": len(found.log.items)},
        "alpha": ALPHA,
        "least_events": LEAST,
        "tied": found.tied,
        "draws": found.draws,
        "tests": {name: None if family is None else family.plain() for name, family in families.items()},
        "dispersion": found.timing.dispersion,
        "typical_shift": found.timing.typical_shift,
        "popularity_correlation": found.by_popularity,
        "groups": [_group(found, n) for n in range(len(found.groups))],
        "pairs": [
            {**asdict(each), "first": _id(found, each.first), "second": _id(found, each.second)} for each in found.pairs
        ],
        "findings": findings(found),
    }


def _group(found: Fig1, n: int) -> dict[str, Any]:
    group = found.groups[n]
    places, shares = samples(found, group)
    return {
        "name": group.name,
        "items": [
            {
                "item_id": _id(found, item),
                "title": found.titles[item],
                "events": int(found.timing.count_V[item]),
                "steps": [place.first, place.median, place.third],
                "shares": [share.first, share.median, share.third],
                "mean_position": float(found.timing.mean_V[item]),
                "z": float(found.order.z_V[item]),
                "p_holm": float(found.order.holm_V[item]),
            }
            for item, place, share in zip(group.items, places, shares, strict=True)
        ],
    }


def _id(found: Fig1, item: int) -> str:
    return found.log.items[item]
