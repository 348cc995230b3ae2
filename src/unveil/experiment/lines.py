"""The plot that most pages need: lines with a value on hover at every point, named at their ends."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from unveil.experiment.plots import Canvas, canvas
from unveil.experiment.svg import COLOURS, MUTED, Drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LABEL_GAP = 0.08  # of the axis, between the names of two lines
_LONGEST = 18


@dataclass(frozen=True)
class Line:
    """Points and what each says on hover; `colour` counts in the page's colours, None is muted and dashed.

    `low` and `high` are the ends of an interval at each point, where there is one.
    """

    x: Sequence[float]
    y: Sequence[float]
    told: Sequence[str]
    colour: int | None = 0
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None


@dataclass(frozen=True)
class Scale:
    """How the axes are: shares as percentages, where the upright one begins and ends, where numbers stand below."""

    percent: tuple[bool, bool] = (False, False)
    bottom: float | None = 0.0  # None: where the lines do
    top: float | None = None
    ticks: Mapping[float, str] | None = None
    whole: bool = False  # only whole numbers below
    diagonal: bool = False


def colour_of(place: int | None) -> str:
    """One of the page's colours, or the muted one."""
    return MUTED if place is None else COLOURS[place % len(COLOURS)]


def lines(drawn: Mapping[str, Line], axes: tuple[str, str], slug: str, scale: Scale | None = None) -> Drawing:
    """One line for each name, named at its end. Points without a value are left out."""
    scale = scale or Scale()
    known = {name: _known(line) for name, line in drawn.items()}
    drawn = {name: line for name, line in known.items() if line.x}
    with canvas(*axes) as on:
        if scale.diagonal:
            end = max(value for line in drawn.values() for value in (*line.x, *line.y))
            on.axes.plot([0, end], [0, end], color=MUTED, linewidth=0.8, dashes=(4, 3))
        for line in drawn.values():
            _line(on, line)
        _scaled(on.axes, scale)
        _named(on.axes, drawn)
        return on.drawing(slug)


def apart(height: NDArray[np.float64], gap: float, floor: float = -np.inf) -> NDArray[np.float64]:
    """The heights moved as little as a few passes need for neighbours to stand `gap` apart, and none below `floor`."""
    order = np.argsort(height, kind="stable")
    placed = height[order].astype(float)
    for _ in range(50):
        for low in range(len(placed) - 1):
            missing = gap - (placed[low + 1] - placed[low])
            if missing > 0:
                placed[low], placed[low + 1] = placed[low] - missing / 2, placed[low + 1] + missing / 2
    for place in range(len(placed)):
        placed[place] = max(placed[place], floor if place == 0 else placed[place - 1] + gap * (floor > -np.inf))
    spread = np.empty_like(placed)
    spread[order] = placed
    return spread


def _known(line: Line) -> Line:
    """The points that have a value."""
    at = [place for place, value in enumerate(line.y) if np.isfinite(value)]

    def kept(side: Sequence[float] | None) -> list[float] | None:
        return None if side is None else [side[place] for place in at]

    told = [line.told[place] for place in at]
    return Line(kept(line.x) or [], kept(line.y) or [], told, line.colour, kept(line.low), kept(line.high))


def _line(on: Canvas, line: Line) -> None:
    colour, dashes = colour_of(line.colour), (4, 3) if line.colour is None else (None, None)
    if line.low is not None and line.high is not None:
        on.axes.fill_between(line.x, line.low, line.high, color=colour, alpha=0.15, linewidth=0)
    on.axes.plot(line.x, line.y, color=colour, linewidth=1.8, dashes=dashes)
    on.marks(line.x, line.y, line.told, colour)


def _scaled(axes: "Axes", scale: Scale) -> None:
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    axes.margins(x=0.02, y=0.08)
    axes.set_ylim(scale.bottom, scale.top)
    for axis, is_share in zip((axes.xaxis, axes.yaxis), scale.percent, strict=True):
        if is_share:
            axis.set_major_formatter(PercentFormatter(1))
    if scale.ticks is not None:
        axes.set_xticks(list(scale.ticks), list(scale.ticks.values()))
    if scale.whole:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))


def _named(axes: "Axes", drawn: Mapping[str, Line]) -> None:
    low, high = axes.get_ylim()
    ends = np.array([line.y[-1] for line in drawn.values()], float)
    heights = apart(ends, _LABEL_GAP * (high - low), low + 0.02 * (high - low))
    for (name, line), height in zip(drawn.items(), heights.tolist(), strict=True):
        axes.annotate(
            name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…",
            (line.x[-1], height),
            (8, 0),
            textcoords="offset points",
            va="center",
            color=colour_of(line.colour),
            annotation_clip=False,
        )
