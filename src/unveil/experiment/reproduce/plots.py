"""Plots of the questions: means beside the paper's, bands along the severity, and ranks that flip."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from unveil.report.plots import Line, Scale, apart, canvas, colour_of, lines
from unveil.report.svg import INK, MUTED, Drawing, themed

_ROW_HEIGHT = 0.42
_ROOM = 0.08  # of the range, left free on either side


@dataclass(frozen=True)
class Mark:
    """A mean with its interval, and the published figure where there is one."""

    label: str
    mean: float
    low: float
    high: float
    paper: float | None
    colour: int | None
    title: str


def beside(marks: Sequence[Mark], x: str, slug: str) -> Drawing:
    """A row for each arm: our mean and interval as a dot on a line, the paper's figure as an open diamond."""
    edges = [value for mark in marks for value in (mark.low, mark.high, mark.paper) if value is not None]
    room = _ROOM * (max(edges) - min(edges) or max(edges))
    with canvas(x, "", (4.8, 0.75 + _ROW_HEIGHT * len(marks))) as on:
        on.axes.grid(visible=False, axis="y")
        on.axes.spines["left"].set_visible(False)
        for row, mark in enumerate(marks):
            colour = colour_of(mark.colour)
            on.axes.plot([mark.low, mark.high], [row, row], color=colour, linewidth=2.2)
            on.axes.scatter([mark.mean], [row], s=44, color=colour, linewidths=0, zorder=3).set_gid(f"dot{row}")
            if mark.paper is not None:
                on.axes.scatter([mark.paper], [row], s=40, marker="D", facecolors="none", edgecolors=INK, zorder=4)
        on.axes.set_yticks(range(len(marks)), [mark.label for mark in marks], color=INK)
        on.axes.set(xlim=(min(edges) - room, max(edges) + room), ylim=(len(marks) - 0.4, -0.6))
        return themed(on.figure, slug, {f"dot{row}": [mark.title] for row, mark in enumerate(marks)})


@dataclass(frozen=True)
class Band:
    """A mean and its interval at each of several places."""

    mean: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    colour: int | None


def bands(at: Sequence[float], curves: Mapping[str, Band], axes: tuple[str, str], slug: str) -> Drawing:
    """One line for each name with its interval as a band, named at its end."""
    drawn = {
        label: Line(at, band.mean, _told(label, at, band), band.colour, band.low, band.high)
        for label, band in curves.items()
    }
    return lines(drawn, axes, slug, Scale(bottom=None, ticks={place: f"{place:g}" for place in at}))


def _told(label: str, at: Sequence[float], band: Band) -> list[str]:
    each = zip(at, band.mean, band.low, band.high, strict=True)
    return [f"{label} at {place:g}: {mean:.3f}, {low:.3f} to {high:.3f}" for place, mean, low, high in each]


def slopes(
    left: Mapping[str, float],
    right: Mapping[str, float],
    colours: Sequence[int | None],
    ends: tuple[str, str],
    slug: str,
) -> Drawing:
    """A line for each arm from one evaluation to another: lines that cross are ranks that flip."""
    with canvas("", "", (4.8, 2.9)) as on:
        on.axes.grid(visible=False)
        for spine in on.axes.spines.values():
            spine.set_visible(False)
        on.axes.set_yticks([])
        on.axes.set_xticks([0, 1], list(ends), color=INK)
        on.axes.set_xlim(-0.55, 1.55)
        for side in (0, 1):
            on.axes.axvline(side, color=MUTED, linewidth=0.8)
        for arm, place in zip(left, colours, strict=True):
            on.axes.plot([0, 1], [left[arm], right[arm]], color=colour_of(place), linewidth=1.8)
            told = [f"{arm}, {end}: {value[arm]:.3f}" for end, value in zip(ends, (left, right), strict=True)]
            on.marks([0, 1], [left[arm], right[arm]], told, colour_of(place), size=36)
        on.axes.margins(y=0.14)
        low, high = on.axes.get_ylim()
        for side, values, way in ((0, left, "right"), (1, right, "left")):
            height = apart(np.array(list(values.values())), 0.1 * (high - low))
            for (arm, value), at, place in zip(values.items(), height.tolist(), colours, strict=True):
                on.axes.annotate(
                    f"{arm} {value:.3f}",
                    (side, at),
                    (-8 if way == "right" else 8, 0),
                    textcoords="offset points",
                    ha=way,
                    va="center",
                    color=colour_of(place),
                    annotation_clip=False,
                )
        return on.drawing(slug)
