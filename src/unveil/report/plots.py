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
_BINS = 40


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


def lorenz(counts: Mapping[str, NDArray[Any]]) -> Drawing:
    """Cumulative share of the counts against share of the items, least first; equality is the diagonal."""
    with canvas("share of the items, least first", "share of the whole") as on:
        on.axes.plot([0, 1], [0, 1], color=MUTED, linewidth=0.8, dashes=(4, 3))
        slope = float(np.degrees(np.arctan2(_SIZE[1] - 0.55, _SIZE[0] - 0.65)))
        on.axes.text(0.46, 0.49, "all alike", color=MUTED, rotation=slope, ha="center", va="bottom", fontsize=9.5)
        for place, (label, count_V) in enumerate(counts.items()):
            share = np.concatenate([[0], np.cumsum(np.sort(count_V)) / count_V.sum()])
            part, at = np.linspace(0, 1, len(share)), np.linspace(0, 1, 21)
            on.axes.plot(part, share, color=COLOURS[place], linewidth=1.8)
            held = np.interp(at, part, share)
            titles = [f"{label}: the least {a:.0%} of the items hold {b:.1%}" for a, b in zip(at, held, strict=True)]
            on.marks(at, held, titles, COLOURS[place], alpha=0.0)
            height = 0.30 - 0.16 * place  # each name beside its curve, at a height of its own
            where = float(np.interp(height, share, part)), height
            write_beside(on.axes, label, where, (-5, 2), COLOURS[place], ha="right", va="bottom", fontsize=9.5)
        on.axes.set(xlim=(0, 1), ylim=(0, 1))
        percent_ticks(on.axes.xaxis, on.axes.yaxis)
        return on.drawing("lorenz")


def scatter(
    x_V: NDArray[Any], y_V: NDArray[Any], size_V: NDArray[Any], titles: Sequence[str], axes: tuple[str, str], slug: str
) -> Drawing:
    """A point for each item, its area growing with `size_V`; the horizontal axis is logarithmic."""
    area = 5 + 160 * size_V / max(1, size_V.max())
    order = np.argsort(-area, kind="stable")
    with canvas(*axes) as on:
        on.axes.set_xscale("log")
        on.marks(x_V[order], y_V[order], [titles[v] for v in order], COLOURS[0], size=area[order], alpha=0.55)
        plain_numbers(on.axes, y=False)
        return on.drawing(slug)


def distributions(
    values: Mapping[str, NDArray[Any]], x: str, slug: str = "distributions", colours: Sequence[int] = (0, 1)
) -> Drawing:
    """Histograms of positive numbers on a logarithmic axis, one outline for each name, as shares of their own whole."""
    together = np.concatenate(list(values.values()))
    edges = np.geomspace(together.min(), together.max(), _BINS + 1)
    with canvas(x, "share") as on:
        on.axes.set_xscale("log")
        percent_ticks(on.axes.yaxis)
        for place, (label, value) in zip(colours, values.items(), strict=True):
            share = np.histogram(value, edges)[0] / len(value)
            colour, peak = COLOURS[place], int(share.argmax())
            on.axes.stairs(share, edges, color=colour, linewidth=1.6)
            on.axes.stairs(share, edges, color=colour, fill=True, alpha=0.15, linewidth=0)
            spans = zip(edges, edges[1:], share, strict=False)
            titles = [f"{label}, {low:.2g} to {high:.2g}: {part:.1%}" for low, high, part in spans]
            on.marks(np.sqrt(edges[:-1] * edges[1:]).tolist(), share.tolist(), titles, colour, alpha=0.0)
            top = float(edges[peak : peak + 2].mean()), float(share[peak])
            write_beside(on.axes, label, top, (0, 4), colour, ha="center", va="bottom", fontsize=9.5)
        plain_numbers(on.axes, y=False)
        on.axes.set_ylim(bottom=0)
        on.axes.margins(y=0.12)
        return on.drawing(slug)


def plain_numbers(axes: "Axes", *, y: bool = True) -> None:
    """1, 10, 100 in place of powers of ten, with 2 and 5 between them where the axis is short."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    for axis in (axes.xaxis, axes.yaxis) if y else (axes.xaxis,):
        low, high = axis.get_view_interval()
        if high / low < _SHORT:
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
        axis.set_minor_formatter(NullFormatter())


def percent_ticks(*every: "Axis") -> None:
    """Whole percentages."""
    from matplotlib.ticker import PercentFormatter

    for axis in every:
        axis.set_major_formatter(PercentFormatter(1, decimals=0))


def write_beside(
    axes: "Axes", text: str, at: tuple[float, float], offset: tuple[float, float], colour: str, **style: Any
) -> None:
    """Write a text so many points away from a place of the plot."""
    axes.annotate(text, at, offset, textcoords="offset points", color=colour, **{"va": "center", **style})


_LONGEST = 19


@dataclass(frozen=True)
class Line:
    """Points and what each says on hover, intervals or none; `colour` of the page's colours, None: muted and dashed."""

    x: Sequence[float]
    y: Sequence[float]
    titles: Sequence[str]
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
    drawn = {name: known for name, line in drawn.items() if (known := _known(line)).x}
    with canvas(*axes) as on:
        if scale.diagonal:
            end = max(value for line in drawn.values() for value in (*line.x, *line.y))
            on.axes.plot([0, end], [0, end], color=MUTED, linewidth=0.8, dashes=(4, 3))
        for line in drawn.values():
            colour, dashes = colour_of(line.colour), (4, 3) if line.colour is None else (None, None)
            if line.low is not None and line.high is not None:
                on.axes.fill_between(line.x, line.low, line.high, color=colour, alpha=0.15, linewidth=0)
            on.axes.plot(line.x, line.y, color=colour, linewidth=1.8, dashes=dashes)
            on.marks(line.x, line.y, line.titles, colour)
        _scaled(on.axes, scale)
        _end_labels(on.axes, drawn)
        return on.drawing(slug)


def line_figure(
    drawn: Mapping[str, Line], axes: tuple[str, str], slug: str, scale: Scale | None = None, data: Table | None = None
) -> PlotFigure:
    """Lines as a figure without a title; those who cannot see it read up to five points of each line."""
    titles = []
    for name, line in drawn.items():
        some = [line.titles[round(at)] for at in np.linspace(0, len(line.titles) - 1, min(5, len(line.titles)))]
        titles.append(f"{name}: {', '.join(some)}".removeprefix(": "))
    return PlotFigure(
        "", lines(drawn, axes, slug, scale), f"{axes[1]} against {axes[0]}. {'; '.join(titles)}", data=data
    )


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
    at = [place for place, value in enumerate(line.y) if np.isfinite(value)]
    sides: dict[str, Any] = {name: getattr(line, name) for name in ("x", "y", "titles", "low", "high")}
    kept: dict[str, Any] = {name: [side[n] for n in at] for name, side in sides.items() if side is not None}
    return replace(line, **kept)


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


def _end_labels(axes: "Axes", drawn: Mapping[str, Line]) -> None:
    low, high = axes.get_ylim()
    ends = np.array([line.y[-1] for line in drawn.values()], float)
    heights = apart(ends, 0.08 * (high - low), low + 0.02 * (high - low))
    for (name, line), height in zip(drawn.items(), heights.tolist(), strict=True):
        short = name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
        write_beside(axes, short, (line.x[-1], height), (8, 0), colour_of(line.colour), annotation_clip=False)
