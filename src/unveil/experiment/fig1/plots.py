"""Plots of Figure 1: boxes of places in histories, and all items around the middle. Shapes: V items."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unveil.report.plots import canvas
from unveil.report.svg import COLOURS, INK, MUTED, Drawing, themed

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
        return themed(on.figure, slug, {f"box{row}": [_told(box, digits)] for row, box in enumerate(drawn)})


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
        told = {
            name: [line for line, shown in zip(lines, which, strict=True) if shown]
            for name, which in (("alike", ~differs_V), ("differs", differs_V))
        }
        return themed(on.figure, slug, {name: each for name, each in told.items() if each})


def _told(box: Box, digits: int) -> str:
    quartiles = ", ".join(f"{value:,.{digits}f}" for value in (box.first, box.median, box.third))
    return f"{box.label}: {box.count:,} events, quartiles {quartiles}"


def _short(label: str) -> str:
    return label if len(label) <= _LONGEST else f"{label[: _LONGEST - 1]}…"
