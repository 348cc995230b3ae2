"""Plots of results: means with their intervals, and figures along the epochs. Shapes: E epochs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from unveil.experiment.lines import Line, Scale, colour_of, lines
from unveil.experiment.plots import canvas, plain_numbers
from unveil.experiment.svg import INK, MUTED, Drawing, themed

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


def intervals(dots: Sequence[Dot], x: str, highest: float, slug: str) -> Drawing:
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
) -> Drawing:
    """One line for each name along the epochs, named at its end."""
    at = epoch_E.tolist()
    drawn = {
        label: Line(at, value_E.tolist(), [f"{label}, epoch {e}: {v:.3f}" for e, v in zip(at, value_E, strict=True)], c)
        for (label, value_E), c in zip(value.items(), colours, strict=True)
    }
    return lines(drawn, ("epoch", y), slug, Scale(whole=True))


def reliability(
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]], axes: tuple[str, str], verb: str, slug: str
) -> Drawing:
    """Observed against predicted, both logarithmic; bins in which nothing came stand at the lower edge.

    `verb` says what came, as in “0.12 promised, 0.10 shown”.
    """
    every = [value for curve in curves.values() for side in curve for value in side if value > 0]
    low, high = min(every) / 1.5, max(every) * 1.5
    with canvas(*axes) as on:
        on.axes.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high))
        on.axes.plot([low, high], [low, high], color=MUTED, linewidth=0.8, dashes=(4, 3))
        for place, (name, (predicted, observed)) in enumerate(curves.items()):
            seen, colour = [max(value, low) for value in observed], colour_of(place)
            told = [f"{name}: {p:.3g} promised, {o:.3g} {verb}" for p, o in zip(predicted, observed, strict=True)]
            on.axes.plot(predicted, seen, color=colour, linewidth=1.6)
            on.marks(predicted, seen, told, colour)
            on.axes.annotate(
                name, (0.03, 0.96 - 0.08 * place), xycoords="axes fraction", color=colour, va="top", fontsize=9.5
            )
        plain_numbers(on.axes)
        return on.drawing(slug)
