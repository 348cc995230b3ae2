"""The page and files of Figure 1: boxes of chosen items, all items around the middle, and the tests."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.audit.timing import ALPHA, LEAST, Family, positions
from unveil.files import write_json, write_whole
from unveil.report.page import Block, Cell, Figure, Table, columns, count, number, write_page
from unveil.report.plots import canvas, plain_numbers
from unveil.report.prose import Prose
from unveil.report.svg import COLOURS, INK, MUTED, themed
from unveil.studies.fig1 import Fig1, Group

_ROW = 0.42
_LONGEST = 34
#: Items in the tables of the earliest and of the latest.
_MOST = 10


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

    def title(self, digits: int) -> str:
        """What it says on hover."""
        quartiles = ", ".join(f"{value:,.{digits}f}" for value in (self.first, self.median, self.third))
        return f"{self.label}: {self.count:,} events, quartiles {quartiles}"


def samples(found: Fig1, group: Group) -> tuple[list[Box], list[Box]]:
    """The boxes of a group: steps counted from 1, and shares of the history."""
    sequences = found.sequences
    place_N = np.arange(len(sequences)) - np.repeat(sequences.offset_U1[:-1], sequences.length_U) + 1.0
    steps, shares = (
        [Box.of(found.titles[item], value_N[sequences.item_N == item]) for item in group.items]
        for value_N in (place_N, positions(sequences))
    )
    return steps, shares


def boxes(drawn: Sequence[Box], x: str, slug: str, *, digits: int = 0, middle: float | None = None) -> Figure:
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
        labels = [box.label if len(box.label) <= _LONGEST else f"{box.label[: _LONGEST - 1]}…" for box in drawn]
        on.axes.set_yticks(range(len(drawn)), labels, color=INK)
        on.axes.set_ylim(len(drawn) - 0.4, -0.6)
        drawing = themed(on.figure, slug, {f"box{row}": [box.title(digits)] for row, box in enumerate(drawn)})
    medians = "; ".join(f"{box.label} {box.median:.{digits}f}" for box in drawn)
    return Figure("", drawing, f"Boxplots. Medians: {medians}.")


def funnel(found: Fig1) -> Figure:
    """Mean place against number of events, and the band in which 95% of items in random order would lie."""
    timing, shown = found.timing, np.flatnonzero(found.order.tested_V)
    count_V, mean_V, differs = timing.count_V, timing.mean_V, found.order.holm_V[shown] < ALPHA
    spread = np.sqrt(np.median(timing.variance_V[shown] * count_V[shown]))
    x = np.geomspace(LEAST, count_V.max(), 60)
    half = 1.96 * spread / np.sqrt(x)
    titles: dict[str, list[str]] = {}
    with canvas("events of the item, logarithmic", "mean place in histories") as on:
        on.axes.set_xscale("log")
        on.axes.fill_between(x, 0.5 - half, 0.5 + half, color=MUTED, alpha=0.18, linewidth=0)
        for name, items, colour in (("alike", shown[~differs], MUTED), ("differs", shown[differs], COLOURS[1])):
            marks = on.axes.scatter(count_V[items], mean_V[items], s=7, color=colour, alpha=0.7, linewidths=0)
            marks.set_gid(name)
            titles[name] = [f"{found.titles[v]}: {count_V[v]:,} events, mean place {mean_V[v]:.3f}" for v in items]
        plain_numbers(on.axes, y=False)
        drawing = themed(on.figure, "funnel", {name: each for name, each in titles.items() if each})
    about = f"{len(shown):,} items, {int(differs.sum()):,} differ from random order"
    return Figure("", drawing, f"Mean place against number of events: {about}.")


def tests_table(found: Fig1, items: Sequence[int]) -> Table:
    """Place and tests of some items."""
    families, timing = found.families(), found.timing
    names = {"order": "random order", "shared": "ties shared", "static": "static propensity"}
    rows: list[list[Cell | str]] = [
        [
            found.titles[item],
            count(timing.count_V[item]),
            number(timing.mean_V[item], 3),
            number(timing.z_V[item], 1),
            *(_p(family, item) for family in families.values()),
        ]
        for item in items
    ]
    tests = [f"{names[family]}: p, Holm-corrected" for family in families]
    return Table("", columns("item", "events", "mean place", "z: of the mean", *tests), rows)


def _p(family: Family, item: int) -> Cell:
    p = float(family.holm_V[item])
    if not family.tested_V[item]:
        return Cell("too few events", 2.0)
    return Cell("below 0.001" if p < 0.001 else f"{p:.3f}", p)


def _parts(found: Fig1) -> dict[str, Block]:
    """Tables and figures by the names under which the template shows them."""
    parts: dict[str, Block] = {"funnel": funnel(found)}
    for n, group in enumerate(found.groups):
        steps, shares = samples(found, group)
        along = "place in the history, 0 first, 1 last"
        parts[f"steps-{n}"] = boxes(steps, "step", f"steps{n}")
        parts[f"shares-{n}"] = boxes(shares, along, f"shares{n}", digits=3, middle=0.5)
        parts[f"group-{n}"] = tests_table(found, group.items)
    ends = {"earliest": found.order.most(-1, _MOST), "latest": found.order.most(1, _MOST)}
    return parts | {name: tests_table(found, items) for name, items in ends.items() if items}


def prose(found: Fig1, command: str = "", parts: Mapping[str, Block] | None = None) -> Prose:
    """The words, filled with the figures."""
    early, late = ([found.titles[item] for item in found.order.most(sign, 3)] for sign in (-1, 1))
    pairs = [(each, found.titles[each.first], found.titles[each.second]) for each in found.pairs]
    figures = {
        "found": found,
        "command": command,
        "parts": parts or {},
        "least": LEAST,
        "alpha": ALPHA,
        "early": early,
        "late": late,
        "pairs": [each for each in pairs if each[0].share is not None],
    }
    return Prose(["fig1.md.j2"], figures)


def write(found: Fig1, folder: Path, command: Sequence[str]) -> list[str]:
    """Write items.csv, results.json, index.html and README.md; the findings. The same log gives the same bytes."""
    parts, words = _parts(found), shlex.join(command)
    text = prose(found, words, parts)
    findings = text.paragraphs("findings")
    paragraphs = [*findings, *text.paragraphs("caution")]
    readme = ["# When users interact with items", *paragraphs, f"```\n{words}\n```"]
    write_whole(folder / "items.csv", found.table().write_csv())
    write_page(text.page(parts), folder / "index.html")
    write_whole(folder / "README.md", "\n\n".join(readme) + "\n")
    write_json(folder / "results.json", results(found, words) | {"findings": findings})
    return paragraphs


def results(found: Fig1, command: str) -> dict[str, Any]:
    """All that was found."""
    families = {
        "random_order": found.order,
        "random_order_mean": found.mean,
        "ties_shared": found.shared,
        "static_propensity_mean": found.static,
    }
    ids = found.log.items
    return {
        "question": "fig1",
        "command": command,
        "data": {"fingerprint": found.log.fingerprint(), "events": len(found.sequences), "items": len(ids)},
        "alpha": ALPHA,
        "least_events": LEAST,
        "tied": found.tied,
        "draws": found.draws,
        "tests": {name: None if family is None else family.plain() for name, family in families.items()},
        "dispersion": found.timing.dispersion,
        "typical_shift": found.timing.typical_shift,
        "popularity_correlation": found.by_popularity,
        "groups": [{"name": group.name, "items": _items(found, group)} for group in found.groups],
        "pairs": [asdict(each) | {"first": ids[each.first], "second": ids[each.second]} for each in found.pairs],
    }


def _items(found: Fig1, group: Group) -> list[dict[str, Any]]:
    return [
        {
            "item_id": found.log.items[item],
            "title": found.titles[item],
            "events": int(found.timing.count_V[item]),
            "steps": [step.first, step.median, step.third],
            "shares": [share.first, share.median, share.third],
            "mean_position": float(found.timing.mean_V[item]),
            "z": float(found.order.z_V[item]),
            "p_holm": float(found.order.holm_V[item]),
        }
        for item, step, share in zip(group.items, *samples(found, group), strict=True)
    ]
