"""Plots of a loop: a line for each model along the rounds, with a band where there are replicates.

Shapes: R rounds.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from unveil.report.plots import Line, Scale, lines
from unveil.report.svg import Drawing


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


def bands(curves: Sequence[Curve], y: str, slug: str) -> Drawing:
    """One line for each curve, named at its end; a band is the interval of its means."""
    drawn = {
        curve.label: Line(curve.round_R, curve.mean_R, curve.titles, curve.colour, curve.low_R, curve.high_R)
        for curve in curves
    }
    return lines(drawn, ("round", y), slug, Scale(bottom=None, whole=True))
