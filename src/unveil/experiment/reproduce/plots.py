"""Plots of the questions: means beside the paper's, bands along the severity, and ranks that flip."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from unveil.experiment.plots import canvas
from unveil.experiment.result_plots import apart, colour_of
from unveil.experiment.svg import INK, MUTED, themed

_ROW_HEIGHT = 0.42
_LABEL_GAP = 0.075  # of the axis, between the names of two curves
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


def beside(marks: Sequence[Mark], x: str, slug: str) -> str:
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


def bands(at: Sequence[float], curves: Mapping[str, Band], axes: tuple[str, str], slug: str) -> str:
    """One line for each name with its interval as a band, named at its end."""
    with canvas(*axes) as on:
        for band in curves.values():
            colour = colour_of(band.colour)
            on.axes.fill_between(at, band.low, band.high, color=colour, alpha=0.15, linewidth=0)
            on.axes.plot(at, band.mean, color=colour, linewidth=1.8, marker="o", markersize=4.5, markeredgewidth=0)
        on.axes.set_xticks(list(at), [f"{place:g}" for place in at])
        on.axes.margins(x=0.02, y=0.06)
        low, high = on.axes.get_ylim()
        height = apart(np.array([band.mean[-1] for band in curves.values()]), _LABEL_GAP * (high - low))
        for (label, band), place in zip(curves.items(), height.tolist(), strict=True):
            on.axes.annotate(
                label,
                (at[-1], place),
                (7, 0),
                textcoords="offset points",
                va="center",
                color=colour_of(band.colour),
                annotation_clip=False,
            )
        return themed(on.figure, slug)


def slopes(
    left: Mapping[str, float],
    right: Mapping[str, float],
    colours: Sequence[int | None],
    ends: tuple[str, str],
    slug: str,
) -> str:
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
            on.axes.plot([0, 1], [left[arm], right[arm]], color=colour_of(place), linewidth=1.8, marker="o")
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
        return themed(on.figure, slug)
