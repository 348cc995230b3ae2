"""The plots of an audit: lines with a mark, and a hover text, at every number."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from unveil.experiment.plots import canvas
from unveil.experiment.result_plots import apart, colour_of
from unveil.experiment.svg import MUTED, themed

_LABEL_GAP = 0.08  # of the axis, between the names of two lines
_LONGEST = 18


@dataclass(frozen=True)
class Line:
    """Points and what each says on hover; `colour` counts in the page's colours, None is muted and dashed."""

    x: Sequence[float]
    y: Sequence[float]
    told: Sequence[str]
    colour: int | None = 0


def lines(
    drawn: Mapping[str, Line],
    axes: tuple[str, str],
    slug: str,
    *,
    diagonal: bool = False,
    percent: tuple[bool, bool] = (False, True),
    top: float | None = None,
) -> str:
    """One line for each name, named at its end; both axes begin at their least, the upright one at 0."""
    import numpy as np
    from matplotlib.ticker import PercentFormatter

    with canvas(*axes) as on:
        if diagonal:
            on.axes.plot([0, 1], [0, 1], color=MUTED, linewidth=0.8, dashes=(4, 3))
        for place, line in enumerate(drawn.values()):
            dashes = (4, 3) if line.colour is None else (None, None)
            on.axes.plot(line.x, line.y, color=colour_of(line.colour), linewidth=1.8, dashes=dashes)
            marks = on.axes.scatter(line.x, line.y, s=20, color=colour_of(line.colour), linewidths=0, zorder=3)
            marks.set_gid(f"line{place}")
        on.axes.set_ylim(0, top)
        on.axes.margins(x=0.02)
        for axis, is_share in zip((on.axes.xaxis, on.axes.yaxis), percent, strict=True):
            if is_share:
                axis.set_major_formatter(PercentFormatter(1))
        ends = np.array([line.y[-1] for line in drawn.values()], float)
        heights = apart(ends, _LABEL_GAP * on.axes.get_ylim()[1])
        for (name, line), height in zip(drawn.items(), heights.tolist(), strict=True):
            on.axes.annotate(
                name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…",
                (line.x[-1], height),
                (8, 0),
                textcoords="offset points",
                va="center",
                color=colour_of(line.colour),
                annotation_clip=False,
            )
        return themed(on.figure, slug, {f"line{place}": line.told for place, line in enumerate(drawn.values())})
