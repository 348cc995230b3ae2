"""Plots as inline SVG: each function takes numbers and gives one drawing. Shapes: V items, U users."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unveil.errors import UnveilError
from unveil.report.page import Figure as PlotFigure
from unveil.report.page import Table
from unveil.report.svg import COLOURS, MUTED, STYLE, Drawing, themed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure


_SHORT = 100  # a logarithmic axis that spans less than this needs more than powers of ten
_SIZE = (4.8, 3.1)
_BINS = 50


@dataclass
class Canvas:
    """A figure, its axes, and what its marks say on hover."""

    figure: "Figure"
    axes: "Axes"
    titles: dict[str, Sequence[str]] = field(default_factory=dict)

    def marks(
        self,
        x: Sequence[float] | NDArray[Any],
        y: Sequence[float] | NDArray[Any],
        titles: Sequence[str],
        colour: str,
        *,
        size: Any = 20,
        alpha: float | None = None,
    ) -> None:
        """A mark at every point, with what it says; many show under the pointer only, unless `alpha` is given."""
        seen = 0.0 if alpha is None and len(x) > 40 else alpha
        marks = self.axes.scatter(x, y, s=size, color=colour, linewidths=0, zorder=3, alpha=seen)
        name = f"marks{len(self.titles)}"
        marks.set_gid(name)
        self.titles[name] = titles

    def drawing(self, slug: str) -> Drawing:
        return themed(self.figure, slug, self.titles)


@contextmanager
def canvas(x: str, y: str, size: tuple[float, float] = _SIZE) -> Iterator[Canvas]:
    """One pair of axes in the house style."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UnveilError("plots need matplotlib", hint="pip install 'unveil[report]'") from error
    with rc_context(STYLE):
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.add_subplot(xlabel=x, ylabel=y)
        axes.tick_params(length=0, which="both")
        yield Canvas(figure, axes)


def scatter(
    x_V: NDArray[Any], y_V: NDArray[Any], size_V: NDArray[Any], titles: Sequence[str], axes: tuple[str, str], slug: str
) -> PlotFigure:
    """A point for each item, its area growing with `size_V`; the horizontal axis is logarithmic."""
    area = 5 + 160 * size_V / max(1, size_V.max())
    order = np.argsort(-area, kind="stable")
    with canvas(*axes) as on:
        on.axes.set_xscale("log")
        on.marks(x_V[order], y_V[order], [titles[v] for v in order], COLOURS[0], size=area[order], alpha=0.55)
        plain_numbers(on.axes.xaxis)
        return PlotFigure("", on.drawing(slug), "")


def distributions(
    values: Mapping[str, NDArray[Any]], x: str, slug: str = "distributions", colours: Sequence[int] = (0, 1)
) -> PlotFigure:
    """Histograms of positive numbers on a logarithmic axis, a line for each name, as shares of their own whole."""
    together = np.concatenate(list(values.values()))
    edges = np.geomspace(together.min(), together.max(), _BINS + 1)
    drawn = {}
    for colour, (label, value) in zip(colours, values.items(), strict=True):
        share = (np.histogram(value, edges)[0] / len(value)).tolist()
        spans = zip(edges, edges[1:], share, strict=False)
        titles = [f"{label}, {low:.2g} to {high:.2g}: {part:.1%}" for low, high, part in spans]
        drawn[label] = Line(np.sqrt(edges[:-1] * edges[1:]).tolist(), share, colour, titles=titles)
    return line_figure(drawn, (x, "share"), slug, Scale((False, True), log=(True, False)))


def plain_numbers(axis: "Axis") -> None:
    """1, 10, 100 in place of powers of ten, with 2 and 5 between them where the axis is short."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    if high / low < _SHORT:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axis.set_minor_formatter(NullFormatter())


def write_beside(
    axes: "Axes", text: str, at: tuple[float, float], offset: tuple[float, float], colour: str, **style: Any
) -> None:
    """Write a text so many points away from a place of the plot."""
    axes.annotate(text, at, offset, textcoords="offset points", color=colour, **{"va": "center", **style})


_LONGEST = 19


@dataclass(frozen=True)
class Line:
    """Points, with intervals or none; `colour` of the page's colours, None: muted and dashed. `titles` is what each
    says on hover, if more than its name and place."""

    x: Sequence[float]
    y: Sequence[float]
    colour: int | None = 0
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    titles: Sequence[str] = ()


@dataclass(frozen=True)
class Scale:
    """How the axes are: percentages or logarithmic, where the upright one begins and ends, what stands below."""

    percent: tuple[bool, bool] = (False, False)
    log: tuple[bool, bool] = (False, False)
    bottom: float | None = 0.0  # None, or logarithmic: where the lines do
    top: float | None = None
    ticks: Mapping[float, str] | None = None
    whole: bool = False  # only whole numbers below
    diagonal: bool = False


def colour_of(place: int | None) -> str:
    """One of the page's colours, or the muted one."""
    return MUTED if place is None else COLOURS[place % len(COLOURS)]


def line_figure(
    drawn: Mapping[str, Line], axes: tuple[str, str], slug: str, scale: Scale | None = None, data: Table | None = None
) -> PlotFigure:
    """One line for each name, named at its end; points without a value are left out. The figure has no title; those who
    cannot see it read up to five points of each line."""
    scale, read = scale or Scale(), []
    drawn = {name: known for name, line in drawn.items() if (known := _known(name, line, axes[0], scale)).x}
    for line in drawn.values():
        some = [line.titles[round(at)] for at in np.linspace(0, len(line.titles) - 1, min(5, len(line.titles)))]
        read.append(", ".join(some))
    with canvas(*axes) as on:
        if scale.diagonal:
            every = [value for line in drawn.values() for value in (*line.x, *line.y)]
            ends = [min(every) if any(scale.log) else 0, max(every)]
            on.axes.plot(ends, ends, color=MUTED, linewidth=0.8, dashes=(4, 3))
        for line in drawn.values():
            colour, dashes = colour_of(line.colour), (4, 3) if line.colour is None else (None, None)
            if line.low is not None and line.high is not None:
                on.axes.fill_between(line.x, line.low, line.high, color=colour, alpha=0.15, linewidth=0)
            on.axes.plot(line.x, line.y, color=colour, linewidth=1.8, dashes=dashes)
            on.marks(line.x, line.y, line.titles, colour)
        _scaled(on.axes, scale)
        _end_labels(on.axes, drawn)
        return PlotFigure("", on.drawing(slug), f"{axes[1]} against {axes[0]}. {'; '.join(read)}", data=data)


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


def _known(name: str, line: Line, x: str, scale: Scale) -> Line:
    """The points that have a value, and what each says on hover."""

    def text(value: float, plain: str, is_share: bool) -> str:
        return f"{100 * value:.3g}%" if is_share else format(value, plain)

    (of_x, of_y), ticks = scale.percent, scale.ticks or {}
    places = [ticks.get(each, text(each, "g", of_x)) for each in line.x]
    at = [place for place, value in enumerate(line.y) if np.isfinite(value)]
    sides: dict[str, Any] = {name: getattr(line, name) for name in ("x", "y", "low", "high")}
    kept: dict[str, Any] = {name: [side[n] for n in at] for name, side in sides.items() if side is not None}
    said = (f"{name}, {x} {places[n]}: {text(line.y[n], '.4f', of_y)}".removeprefix(", ") for n in at)
    return replace(line, **kept, titles=[line.titles[n] for n in at] if line.titles else list(said))


def _scaled(axes: "Axes", scale: Scale) -> None:
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    axes.margins(x=0.02, y=0.08)
    axes.set(xscale="log" if scale.log[0] else "linear", yscale="log" if scale.log[1] else "linear")
    axes.set_ylim(None if scale.log[1] else scale.bottom, scale.top)
    for axis, is_share, is_log in zip((axes.xaxis, axes.yaxis), scale.percent, scale.log, strict=True):
        if is_share:
            axis.set_major_formatter(PercentFormatter(1))
        if is_log:
            plain_numbers(axis)
    if scale.ticks is not None:
        axes.set_xticks(list(scale.ticks), list(scale.ticks.values()))
    if scale.whole:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))


def _end_labels(axes: "Axes", drawn: Mapping[str, Line]) -> None:
    axes.autoscale_view()  # limits are known from here on
    place = axes.transScale + axes.transLimits  # as shares of the height, whatever the scale
    ends = np.array([place.transform((line.x[-1], line.y[-1]))[1] for line in drawn.values()], float)
    heights = apart(ends, 0.08, 0.02)
    for (name, line), height in zip(drawn.items(), heights.tolist(), strict=True):
        short = name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
        at, style = (line.x[-1], height), {"xycoords": ("data", "axes fraction"), "annotation_clip": False}
        write_beside(axes, short, at, (8, 0), colour_of(line.colour), **style)
