"""Plots of results: means with their intervals, and figures along the epochs. Shapes: E epochs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.experiment.plots import canvas
from unveil.experiment.svg import COLOURS, INK, MUTED, themed

_ROW_HEIGHT = 0.36
_LABEL_GAP = 0.075  # of the axis, between the names of two curves


@dataclass(frozen=True)
class Dot:
    """A mean with its interval. `colour` counts in the page's colours; None is muted."""

    label: str
    mean: float
    low: float
    high: float
    colour: int | None
    title: str


def colour_of(place: int | None) -> str:
    """One of the page's colours, or the muted one."""
    return MUTED if place is None else COLOURS[place % len(COLOURS)]


def intervals(dots: Sequence[Dot], x: str, highest: float, slug: str) -> str:
    """A row for each dot, from the top; the axis goes from 0 to `highest`, so that drawings can be compared."""
    with canvas(x, "", (4.8, 0.75 + _ROW_HEIGHT * len(dots))) as on:
        on.axes.grid(visible=False, axis="y")
        on.axes.spines["left"].set_visible(False)
        for row, dot in enumerate(dots):
            colour = colour_of(dot.colour)
            on.axes.plot([dot.low, dot.high], [row, row], color=colour, linewidth=2.2)
            on.axes.scatter([dot.mean], [row], s=44, color=colour, linewidths=0, zorder=3).set_gid(f"dot{row}")
            on.axes.annotate(
                f"{dot.mean:.3f}",
                (dot.high, row),
                (6, 0),
                textcoords="offset points",
                va="center",
                color=INK,
                fontsize=9.5,
            )
        on.axes.set_yticks(range(len(dots)), [dot.label for dot in dots], color=INK)
        on.axes.set(xlim=(0, highest * 1.14), ylim=(len(dots) - 0.4, -0.6))
        return themed(on.figure, slug, {f"dot{row}": [dot.title] for row, dot in enumerate(dots)})


def curves(
    epoch_E: NDArray[Any], value: Mapping[str, NDArray[Any]], colours: Sequence[int | None], y: str, slug: str
) -> str:
    """One line for each name along the epochs, named at its end."""
    with canvas("epoch", y) as on:
        for (_, value_E), place in zip(value.items(), colours, strict=True):
            on.axes.plot(epoch_E, value_E, color=colour_of(place), linewidth=1.8)
        on.axes.set_ylim(bottom=0)
        on.axes.margins(x=0.01, y=0.08)
        last = {label: float(value_E[-1]) for label, value_E in value.items()}
        height = apart(np.array(list(last.values())), _LABEL_GAP * on.axes.get_ylim()[1])
        for label, at, place in zip(last, height.tolist(), colours, strict=True):
            on.axes.annotate(
                label,
                (float(epoch_E[-1]), at),
                (6, 0),
                textcoords="offset points",
                va="center",
                color=colour_of(place),
                annotation_clip=False,
            )
        return themed(on.figure, slug)


def apart(height: NDArray[np.float64], gap: float) -> NDArray[np.float64]:
    """The heights moved as little as a few passes need for neighbours to stand at least `gap` apart."""
    order = np.argsort(height, kind="stable")
    placed = height[order].astype(float)
    for _ in range(50):
        for low in range(len(placed) - 1):
            missing = gap - (placed[low + 1] - placed[low])
            if missing > 0:
                placed[low], placed[low + 1] = placed[low] - missing / 2, placed[low + 1] + missing / 2
    spread = np.empty_like(placed)
    spread[order] = placed
    return spread
