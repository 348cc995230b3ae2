"""Figure 1 of the paper: when in their histories users interact with an item, and whether that could be chance."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unveil.audit.exposure import rank_correlation
from unveil.audit.motion import against_depletion, expected_means, repeats
from unveil.audit.timing import ALPHA, LEAST, Family, Floats, Timing, positions, tied_share, timing, two_sided
from unveil.data.interactions import Interactions, Sequences
from unveil.errors import UnveilError
from unveil.files import write_json, write_whole
from unveil.report.page import Block, Figure, write_page
from unveil.report.plots import canvas, plain_numbers
from unveil.report.prose import Prose
from unveil.report.svg import COLOURS, INK, MUTED, themed
from unveil.studies.fig1_items import Group, Pair, extremes, groups_of, pair

#: The paper's two trilogies.
PAPER = "Godfather;Back to the Future"
#: What is shown of a sample, as matplotlib calls it: q1, med, q3; whislo and whishi within 1.5 quartile ranges of them.
Box = Mapping[str, Any]


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
    def by_popularity(self) -> float:
        """Spearman's correlation, over the tested items, of the number of events with the mean place."""
        return rank_correlation(*(each[self.order.tested_V] for each in (self.timing.count_V, self.timing.mean_V)))

    def families(self) -> dict[str, Family]:
        every = {"order": self.order, "shared": self.shared, "static": self.static}
        return {name: family for name, family in every.items() if family is not None}

    def table(self) -> pl.DataFrame:
        columns: dict[str, Any] = {
            "item_id": self.log.items.ids,
            "title": list(self.titles),
            "events": self.timing.count_V,
            "mean_position": self.timing.mean_V,
        }
        for name, family in self.families().items():
            tests = {key: getattr(family, f"{key}_V") for key in ("z", "p", "holm", "q")}
            columns |= {f"{name}_{key}": _blank(value_V, family.tested_V) for key, value_V in tests.items()}
        columns["order_z_spread"] = _blank(self.timing.z_spread_V, self.order.tested_V)
        if self.expected_V is not None:
            columns["static_mean_position"] = _blank(self.expected_V, self.order.tested_V)
        return pl.DataFrame(columns).filter(pl.col("events") > 0).sort("events", descending=True, maintain_order=True)


def _blank(value_V: Floats, tested_V: NDArray[np.bool_]) -> pl.Series:
    return pl.Series(value_V).set(pl.Series(~tested_V), None)


def fig1(log: Interactions, titles: Sequence[str], items: str | None = None, *, draws: int = 50, seed: int = 0) -> Fig1:
    """Test all items, and draw `items` (see `groups_of`): if None, the paper's trilogies or the earliest and latest.

    `draws` orders of all histories are drawn for the null without replacement.
    """
    sequences = Sequences.of(log)
    u_N = positions(sequences)
    found = timing(sequences, u_N)
    z_V, tested_V = found.z_V, found.tested_V
    if not tested_V.any():
        most = int(found.count_V.max(initial=0))
        raise UnveilError("no item has events enough to test", found=most, expected=f"an item with {LEAST} or more")
    try:
        groups = groups_of(PAPER if items is None else items, log.items, titles, found.count_V)
    except UnveilError:
        if items is not None:
            raise
        groups = extremes(z_V, tested_V)
    static = expected_V = shared = None
    if draws and not repeats(sequences):
        expected_V = expected_means(sequences, u_N, draws, np.random.default_rng(seed))
        static = Family.of(*against_depletion(found, expected_V, draws), tested_V)
    if tied := tied_share(sequences):
        tied_timing = timing(sequences, positions(sequences, tied=True))
        shared = Family.of(tied_timing.z_V, tied_timing.p_V, tied_timing.tested_V)
    order, mean = Family.of(z_V, found.p_V, tested_V), Family.of(z_V, two_sided(z_V), tested_V)
    pairs = [pair(sequences, *each) for group in groups for each in pairwise(group.items)]
    return Fig1(log, sequences, titles, groups, pairs, found, order, mean, shared, static, expected_V, tied, draws)


def samples(found: Fig1, group: Group) -> tuple[list[Box], list[Box]]:
    """The boxes of a group: steps counted from 1, and shares of the history."""
    from matplotlib.cbook import boxplot_stats

    sequences = found.sequences
    place_N = np.arange(len(sequences)) - np.repeat(sequences.offset_U1[:-1], sequences.length_U) + 1.0

    def box(item: int, value_N: NDArray[Any]) -> Box:
        own = value_N[sequences.item_N == item]
        return {**boxplot_stats(own)[0], "label": found.titles[item], "count": len(own)}

    steps, shares = ([box(item, value_N) for item in group.items] for value_N in (place_N, positions(sequences)))
    return steps, shares


def boxes(drawn: Sequence[Box], x: str, slug: str, *, digits: int = 0, middle: float | None = None) -> Figure:
    """A row for each box, from the top; outliers are not drawn."""
    with canvas(x, "", (5.4, 0.8 + 0.42 * len(drawn))) as on:
        on.axes.grid(visible=False, axis="y")
        on.axes.spines["left"].set_visible(False)
        if middle is not None:
            on.axes.axvline(middle, color=MUTED, linewidth=0.8, dashes=(4, 3))
        titles = {}
        for row, box in enumerate(drawn):
            on.axes.plot([box["whislo"], box["whishi"]], [row, row], color=COLOURS[0], linewidth=1.1)
            bar = on.axes.barh(row, box["q3"] - box["q1"], 0.56, left=box["q1"], color=COLOURS[0], alpha=0.35)
            bar[0].set_gid(f"box{row}")
            on.axes.plot([box["med"]] * 2, [row - 0.28, row + 0.28], color=INK, linewidth=1.8)
            quartiles = ", ".join(f"{box[name]:,.{digits}f}" for name in ("q1", "med", "q3"))
            titles[f"box{row}"] = [f"{box['label']}: {box['count']:,} events, quartiles {quartiles}"]
        labels = [name if len(name) <= 34 else f"{name[:33]}…" for name in (b["label"] for b in drawn)]
        on.axes.set_yticks(range(len(drawn)), labels, color=INK)
        on.axes.set_ylim(len(drawn) - 0.4, -0.6)
        drawing = themed(on.figure, slug, titles)
    medians = "; ".join(f"{box['label']} {box['med']:.{digits}f}" for box in drawn)
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


def figures(found: Fig1) -> dict[str, Block]:
    """By the names under which the template shows them."""
    parts: dict[str, Block] = {"funnel": funnel(found)}
    for n, group in enumerate(found.groups):
        steps, shares = samples(found, group)
        along = "place in the history, 0 first, 1 last"
        parts[f"steps-{n}"] = boxes(steps, "step", f"steps{n}")
        parts[f"shares-{n}"] = boxes(shares, along, f"shares{n}", digits=3, middle=0.5)
    return parts


def prose(found: Fig1, command: str = "") -> Prose:
    """The words, filled with the figures."""
    ends = {"earliest": found.order.most(-1, 10), "latest": found.order.most(1, 10)}
    return Prose(["fig1.md.j2"], {"found": found, "command": command, "least": LEAST, "alpha": ALPHA, "ends": ends})


def write(found: Fig1, folder: Path, command: Sequence[str]) -> list[str]:
    """Write items.csv, results.json, index.html and README.md; the findings. The same log gives the same bytes."""
    words = shlex.join(command)
    text = prose(found, words)
    findings = text.paragraphs("findings")
    paragraphs = [*findings, *text.paragraphs("caution")]
    readme = ["# When users interact with items", *paragraphs, f"```\n{words}\n```"]
    write_whole(folder / "items.csv", found.table().write_csv())
    write_page(text.page(figures(found)), folder / "index.html")
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
    ids, quartiles, groups = found.log.items, ("q1", "med", "q3"), []
    for group in found.groups:
        items = [
            {
                "item_id": ids[item],
                "title": found.titles[item],
                "events": int(found.timing.count_V[item]),
                "steps": [step[name] for name in quartiles],
                "shares": [share[name] for name in quartiles],
                "mean_position": float(found.timing.mean_V[item]),
                "z": float(found.order.z_V[item]),
                "p_holm": float(found.order.holm_V[item]),
            }
            for item, step, share in zip(group.items, *samples(found, group), strict=True)
        ]
        groups.append({"name": group.name, "items": items})
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
        "groups": groups,
        "pairs": [asdict(each) | {"first": ids[each.first], "second": ids[each.second]} for each in found.pairs],
    }
