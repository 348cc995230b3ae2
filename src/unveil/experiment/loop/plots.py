"""Plots of a loop: a line for each model along the rounds, with a band where there are replicates.

Shapes: R rounds.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unveil.experiment.plots import canvas
from unveil.experiment.result_plots import apart, colour_of
from unveil.experiment.svg import themed

_LABEL_GAP = 0.075  # of the axis, between the names of two curves


@dataclass(frozen=True)
class Curve:
    """A model's means along the rounds, and the ends of their intervals where there are any."""

    label: str
    colour: int | None  # a place among the page's colours; None is muted
    round_R: Sequence[int]
    mean_R: Sequence[float]
    low_R: Sequence[float] | None
    high_R: Sequence[float] | None
    titles: Sequence[str]  # what is told of each point


def bands(curves: Sequence[Curve], y: str, slug: str) -> str:
    """One line for each curve, named at its end; a band is the interval of its means."""
    with canvas("round", y) as on:
        for place, curve in enumerate(curves):
            colour = colour_of(curve.colour)
            if curve.low_R is not None and curve.high_R is not None:
                on.axes.fill_between(curve.round_R, curve.low_R, curve.high_R, color=colour, alpha=0.16, linewidth=0)
            on.axes.plot(curve.round_R, curve.mean_R, color=colour, linewidth=1.6)
            marks = on.axes.scatter(curve.round_R, curve.mean_R, s=16, color=colour, linewidths=0, zorder=3)
            marks.set_gid(f"curve{place}")
        on.axes.margins(x=0.02, y=0.08)
        _whole_rounds(on.axes)
        low, high = on.axes.get_ylim()
        height = apart(np.array([curve.mean_R[-1] for curve in curves]), _LABEL_GAP * (high - low))
        for curve, at in zip(curves, height.tolist(), strict=True):
            on.axes.annotate(
                curve.label,
                (curve.round_R[-1], at),
                (8, 0),
                textcoords="offset points",
                va="center",
                color=colour_of(curve.colour),
                annotation_clip=False,
            )
        return themed(on.figure, slug, {f"curve{place}": curve.titles for place, curve in enumerate(curves)})


def _whole_rounds(axes: object) -> None:
    from matplotlib.axes import Axes
    from matplotlib.ticker import MaxNLocator

    assert isinstance(axes, Axes)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
