"""Plots of results: means with their intervals, and figures along the epochs. Shapes: E epochs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unveil.report.names import listed, named
from unveil.report.page import Column, Table, count, number
from unveil.report.page import Figure as PlotFigure
from unveil.report.plots import Line, Scale, canvas, colour_of, line_figure, write_beside
from unveil.report.prose import share
from unveil.report.svg import COLOURS, INK, LINE, MUTED, PAPER, Drawing, themed

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_ROW_HEIGHT = 0.36


@dataclass(frozen=True)
class Dot:
    """A mean with its interval. `colour` counts in the page's colours; None is muted."""

    label: str
    mean: float
    low: float
    high: float
    colour: int | None
    title: str
    paper: float | None = None  # a published figure, drawn as an open diamond


def intervals(dots: Sequence[Dot], x: str, highest: float | None, slug: str) -> PlotFigure:
    """A row for each dot, from the top; the axis goes from 0 to `highest`, or as far as the dots need."""
    edges = [value for dot in dots for value in (dot.low, dot.high, dot.paper) if value is not None]
    room = 0.08 * (max(edges) - min(edges) or max(edges))
    limits = (min(edges) - room, max(edges) + room) if highest is None else (0, highest * 1.14)
    with canvas(x, "", (4.8, 0.75 + _ROW_HEIGHT * len(dots))) as on:
        on.axes.grid(visible=False, axis="y")
        on.axes.spines["left"].set_visible(False)
        for row, dot in enumerate(dots):
            colour = colour_of(dot.colour)
            on.axes.plot([dot.low, dot.high], [row, row], color=colour, linewidth=2.2)
            on.axes.scatter([dot.mean], [row], s=44, color=colour, linewidths=0, zorder=3).set_gid(f"dot{row}")
            if dot.paper is not None:
                on.axes.scatter([dot.paper], [row], s=40, marker="D", facecolors="none", edgecolors=INK, zorder=4)
            if highest is not None:
                write_beside(on.axes, f"{dot.mean:.3f}", (dot.high, row), (6, 0), INK, fontsize=9.5)
        on.axes.set_yticks(range(len(dots)), [dot.label for dot in dots], color=INK)
        on.axes.set(xlim=limits, ylim=(len(dots) - 0.4, -0.6))
        drawing = themed(on.figure, slug, {f"dot{row}": [dot.title] for row, dot in enumerate(dots)})
        return PlotFigure("", drawing, f"{x}: {'; '.join(dot.title for dot in dots)}")


#: What is shown of a sample, as matplotlib calls it: q1, med, q3; whislo and whishi within 1.5 quartile ranges of them.
Box = Mapping[str, Any]


def boxes(drawn: Sequence[Box], x: str, slug: str, *, digits: int = 0, middle: float | None = None) -> PlotFigure:
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
    return PlotFigure("", drawing, f"Boxplots. Medians: {medians}.")


def bars(shares: Mapping[str, float], labels: Sequence[str], x: str, slug: str) -> Drawing:
    """A bar for each share, from the top."""
    rows, share = range(len(shares)), list(shares.values())
    with canvas(x, "", (4.8, 0.75 + _ROW_HEIGHT * len(shares))) as on:
        on.axes.grid(visible=False, axis="y")
        drawn = on.axes.barh(rows, share, 0.6, color=COLOURS[0])
        on.axes.bar_label(drawn, [f"{each:.0%}" for each in share], padding=5)
        for place, bar in enumerate(drawn):
            bar.set_gid(f"bar{place}")
        on.axes.set_yticks(rows, labels, color=INK)
        on.axes.set(xlim=(0, max(0.1, *share) * 1.15), ylim=(len(shares) - 0.4, -0.6))
        on.axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        titles = {f"bar{place}": [f"{name}: {each:.1%}"] for place, (name, each) in enumerate(shares.items())}
        return themed(on.figure, slug, titles)


def parallel(
    axes: Sequence[tuple[str, Sequence[tuple[str, float]]]], paths: Mapping[str, Sequence[float]], slug: str
) -> Drawing:
    """Upright axes with texts at heights from 0 to 1, and paths across them, the best first: by hover text, heights.
    The best fifth is in colour, the best thick."""
    ground = {"facecolor": PAPER, "edgecolor": "none", "alpha": 0.8, "pad": 0.8}
    with canvas("", "", (max(4.8, 0.8 * len(axes)), 3.3)) as on:
        on.axes.grid(visible=False)
        for rank, height in reversed([*enumerate(paths.values())]):
            colour, alpha = (COLOURS[0], 0.9) if rank < 0.2 * len(paths) else (MUTED, 0.35)
            aside = 0.045 * ((rank * 0.618) % 1 - 0.5)  # paths through one point are a little apart
            drawn = [each + aside for each in height[:-1]] + [height[-1]]
            (line,) = on.axes.plot(drawn, color=colour, alpha=alpha, linewidth=1.2 if rank else 2.6)
            line.set_gid(f"path{rank}")
        for place, (_, ticks) in enumerate(axes):
            on.axes.axvline(place, color=MUTED, linewidth=0.7)
            for text, at in ticks:
                write_beside(on.axes, text, (place, at), (4, 0), INK, fontsize=9, bbox=ground)
        on.axes.set_xticks(range(len(axes)), [name.replace(" ", "\n") for name, _ in axes], color=INK)
        on.axes.set(yticks=[], xlim=(-0.15, len(axes) - 0.35), ylim=(-0.08, 1.08))
        on.axes.spines[["left", "bottom"]].set_visible(False)
        return themed(on.figure, slug, {f"path{rank}": [title] for rank, title in enumerate(paths)})


def curves(
    at_E: NDArray[Any],
    value: Mapping[str, NDArray[Any]],
    colours: Sequence[int | None],
    y: str,
    slug: str,
    x: str = "epoch",
) -> PlotFigure:
    """One line for each name along the epochs, or what else `x` is; with all numbers in a table."""
    at, named = at_E.tolist(), zip(value.items(), colours, strict=True)
    drawn = {label: Line(at, value_E.tolist(), colour) for (label, value_E), colour in named}
    each = zip(at, *value.values(), strict=True)
    rows = [[count(e), *("–" if np.isnan(v) else number(v, 3) for v in row)] for e, *row in each]
    data = Table(f"{y[0].upper()}{y[1:]} by {x}", [Column(name, True) for name in (x, *value)], rows, sortable=False)
    return line_figure(drawn, (x, y), slug, Scale(whole=True), data)


def lorenz_figure(held: Mapping[str, NDArray[Any]], whole: str, slug: str) -> PlotFigure:
    """What even shares of the items hold of the whole, the least popular first; equality is the diagonal."""
    drawn = {
        name: Line(np.linspace(0, 1, len(held_L)).tolist(), held_L.tolist(), place)
        for place, (name, held_L) in enumerate(held.items())
    }
    scale = Scale((True, True), top=1.0, diagonal=True)
    return line_figure(drawn, ("share of the items, least first", f"share of {whole}"), slug, scale)


def reliability_figure(
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]], axes: tuple[str, str], verb: str, slug: str
) -> PlotFigure:
    """Observed against predicted, both logarithmic, empty bins at the lower edge; `verb`: 0.10 “shown”, “right” …"""
    every = [value for curve in curves.values() for side in curve for value in side if value > 0]
    low, drawn = min(every) / 1.5, {}
    for place, (name, (predicted, observed)) in enumerate(curves.items()):
        pairs = zip(predicted, observed, strict=True)
        titles = [f"{name}: {p:.3g} predicted, {o:.3g} {verb}" for p, o in pairs]
        drawn[name] = Line(predicted, [max(value, low) for value in observed], place, titles=titles)
    return line_figure(drawn, axes, slug, Scale(log=(True, True), diagonal=True))


#: Shares outside are drawn at the edge, as an arrow: a share has no bounds, and one far below 0 would flatten the rest.
_LOW, _HIGH = -0.6, 1.5


def shares_figure(
    gaps: Mapping[tuple[str, str], Mapping[str, Any]],
    slug: str,
    joined: Mapping[str, bool] | None = None,
    aims: Mapping[str, float] | None = None,
) -> PlotFigure:
    """Shares of the gap from naive, 0, to ideal, 1: arms down, titles across, in each panel estimates by their levels.

    Columns that are `joined`, by default all, are points of a scale. An aim is a line of its arm's row.
    """
    arms, titles = (list(dict.fromkeys(side)) for side in zip(*gaps, strict=True))
    levels = {title: list(own) for (_, title), own in gaps.items()}
    size = (1.3 + 2.35 * len(titles), 0.9 + 0.95 * len(arms))  # inches
    with canvas("", "", size) as on:
        on.axes.remove()
        grid = on.figure.subplots(len(arms), len(titles), sharex="col", sharey=True, squeeze=False)
        for r, arm in enumerate(arms):
            _name(grid[r, 0], named(arm).replace(" · ", "\n"))
            for c, title in enumerate(titles):
                _ground(grid[r, c], (aims or {}).get(arm))
                along, colour = joined is None or joined[title], COLOURS[r % len(COLOURS)]
                known = [(x, gap) for x, gap in enumerate(gaps.get((arm, title), {}).values()) if gap is not None]
                _draw(grid[r, c], known, along, colour, f"at{r}-{c}-")
                where = f"{named(arm)}, {' '.join(title.split())}"
                on.titles |= {f"at{r}-{c}-{x}": [f"{where}, {levels[title][x]}: {share(gap)}"] for x, gap in known}
        for c, title in enumerate(titles):
            grid[0, c].set_title(title, fontsize=10, color=INK, loc="left")
            ticks = [level.replace(" (", "\n(") for level in levels[title]]
            leaning = sum(max(map(len, tick.split("\n"))) for tick in ticks) > 26  # letters side by side
            turned = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"} if leaning else {}
            grid[-1, c].set_xticks(range(len(ticks)), ticks, **turned)
            grid[-1, c].set_xlim(-0.4, len(ticks) - 0.6)
        drawing, rem = on.drawing(slug), 6.5 * size[0]
    # Wider than other drawings where the page is, and never so narrow that its words cannot be read.
    style = f'class="wide" style="max-width: {rem:g}rem; min-width: {rem * 0.7:g}rem"'
    drawing = replace(drawing, svg=drawing.svg.replace("<svg ", f"<svg {style} ", 1))
    return PlotFigure("", drawing, f"A row for each of {listed(arms)}. The numbers are in the tables below.")


def _name(axes: "Axes", name: str) -> None:
    """Left of the scale, each line by itself: as one text they would not end at the same place."""
    lines = name.split("\n")
    style: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points", "ha": "right", "va": "center"}
    for nth, line in enumerate(lines):
        place = (-38, ((len(lines) - 1) / 2 - nth) * 12)  # points
        axes.annotate(line, xy=(0, 0.5), xytext=place, color=INK, **style)


def _ground(axes: "Axes", aim: float | None) -> None:
    axes.grid(visible=False, axis="x")
    axes.tick_params(length=0, which="both")
    axes.axhline(0, color=INK, linewidth=0.9)
    axes.axhline(1, color=LINE, linewidth=0.9)
    if aim is not None:
        axes.axhline(aim, color=MUTED, linewidth=0.8, dashes=(4, 3))
    axes.set(ylim=(_LOW, _HIGH), yticks=(0, 0.5, 1))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}".replace("-", "−"))


def _draw(axes: "Axes", known: Sequence[tuple[int, Any]], joined: bool, colour: str, gid: str) -> None:
    """Means, joined along a scale, and their intervals; what lies outside is an arrow at the edge."""
    if joined:
        axes.plot([x for x, _ in known], [_inside(gap.mean) for _, gap in known], color=colour, linewidth=1.6)
    for x, gap in known:
        if gap.low is not None and gap.high is not None:
            ends = [_inside(gap.low), _inside(gap.high)]
            axes.plot([x, x], ends, color=colour, linewidth=4, alpha=0.3, solid_capstyle="butt")
        marker = "v" if gap.mean < _LOW else "^" if gap.mean > _HIGH else "o"
        y = gap.mean if marker == "o" else _LOW + 0.08 if marker == "v" else _HIGH - 0.08
        axes.scatter([x], [y], s=26, marker=marker, color=colour, linewidths=0, zorder=3).set_gid(f"{gid}{x}")


def _inside(share: float) -> float:
    return min(max(share, _LOW), _HIGH)
