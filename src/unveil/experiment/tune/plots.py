"""The drawings of a study: importance, parallel coordinates, and the curve of the best."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from unveil.experiment.tune.importance import Importance
from unveil.experiment.tune.record import Record, best_of
from unveil.experiment.tune.space import Choice, Dimension, Space
from unveil.experiment.tune.words import figure, settings_text, short, value_text
from unveil.report.plots import canvas
from unveil.report.svg import COLOURS, INK, MUTED, PAPER, Drawing, themed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROW_HEIGHT = 0.36
#: Share of the trials that is drawn in colour.
_TOP = 0.2


def importance_bars(found: Sequence[Importance], slug: str = "importance") -> Drawing:
    """A bar for each setting, the most important on top."""
    share = [each.share or 0.0 for each in found]
    with canvas("share of the variation between trials", "", (4.8, 0.75 + _ROW_HEIGHT * len(found))) as on:
        on.axes.grid(visible=False, axis="y")
        bars = on.axes.barh(range(len(found)), share, 0.6, color=COLOURS[0])
        for place, bar in enumerate(bars):
            bar.set_gid(f"bar{place}")
            on.axes.annotate(
                f"{share[place]:.0%}", (share[place], place), (5, 0), textcoords="offset points", va="center"
            )
        on.axes.set_yticks(range(len(found)), [short(each.name) for each in found], color=INK)
        on.axes.set(xlim=(0, max(0.1, *share) * 1.15), ylim=(len(found) - 0.4, -0.6))
        on.axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        titles = {f"bar{place}": [f"{each.name}: {share[place]:.1%}"] for place, each in enumerate(found)}
        return themed(on.figure, slug, titles)


def parallel(records: Sequence[Record], space: Space, metric: str, slug: str = "parallel") -> Drawing:
    """A line for each complete trial through its settings to its value; the best fifth in colour, the best thick."""
    complete = sorted((each for each in records if each.value is not None), key=lambda each: each.score or 0.0)
    names = [name for name in space.dimensions if len({str(each.settings[name]) for each in complete}) > 1]
    values = [each.value or 0.0 for each in complete]
    low, high = min(values), max(values)
    best, top = best_of(complete), math.ceil(_TOP * len(complete))
    with canvas("", "", (max(4.8, 0.8 * (len(names) + 1)), 3.3)) as on:
        on.axes.grid(visible=False)
        for rank, each in enumerate(complete):
            height = [_height(space.dimensions[name], each.settings[name]) + _aside(each.entry) for name in names]
            height.append((values[rank] - low) / (high - low) if high > low else 0.5)
            good = rank >= len(complete) - top
            (line,) = on.axes.plot(
                range(len(height)),
                height,
                color=COLOURS[0] if good else MUTED,
                alpha=0.9 if good else 0.35,
                linewidth=2.6 if each is best else 1.2,
            )
            line.set_gid(f"trial{each.entry}")
        _axes(on.axes, names, space, metric, (low, high))
        titles = {
            f"trial{each.entry}": [f"trial {each.entry}: {figure(each)} · {settings_text(each.settings)}"]
            for each in complete
        }
        return themed(on.figure, slug, titles)


def curve(record: Record, metric: str, slug: str = "best-curve") -> Drawing:
    """Validation by epoch: a thin line for each replicate, and their mean over the epochs that all of them have."""
    curves = [dict(each.curve) for each in record.replicates]
    shared = sorted(set.intersection(*(set(each) for each in curves)))
    with canvas("epoch", f"validation {metric}") as on:
        for place, each in enumerate(curves):
            epochs = sorted(each)
            (line,) = on.axes.plot(epochs, [each[epoch] for epoch in epochs], color=MUTED, linewidth=1, alpha=0.7)
            line.set_gid(f"replicate{place}")
        mean = [float(np.mean([each[epoch] for each in curves])) for epoch in shared]
        on.axes.plot(shared, mean, color=COLOURS[0], linewidth=2)
        told = [f"epoch {epoch}: {value:.4f}, mean over replicates" for epoch, value in zip(shared, mean, strict=True)]
        on.marks(shared, mean, told, COLOURS[0])
        on.axes.set_ylim(bottom=0)
        on.axes.margins(x=0.02, y=0.1)
        titles = {
            f"replicate{place}": [f"replicate {place}: best {each.value:.4f} at epoch {each.epoch}"]
            for place, each in enumerate(record.replicates)
        }
        return themed(on.figure, slug, titles | on.told)


def _axes(axes: "Axes", names: Sequence[str], space: Space, metric: str, ends: tuple[float, float]) -> None:
    for place, name in enumerate(names):
        axes.axvline(place, color=MUTED, linewidth=0.7)
        for label, height in _ticks(space.dimensions[name]):
            _tick(axes, label, place, height)
    axes.axvline(len(names), color=INK, linewidth=0.9)
    for label, height in ((f"{ends[0]:.4f}", 0.0), (f"{ends[1]:.4f}", 1.0)):
        _tick(axes, label, len(names), height)
    axes.set_xticks(range(len(names) + 1), [short(name).replace(" ", "\n") for name in [*names, metric]], color=INK)
    axes.set_yticks([])
    axes.set(xlim=(-0.15, len(names) + 0.65), ylim=(-0.08, 1.08))
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)


def _tick(axes: "Axes", label: str, place: float, height: float) -> None:
    """A value beside its axis, on the page's own ground, so that lines do not cross it out."""
    ground = {"facecolor": PAPER, "edgecolor": "none", "alpha": 0.8, "pad": 0.8}
    axes.annotate(
        label, (place, height), (4, 0), textcoords="offset points", va="center", color=INK, fontsize=9, bbox=ground
    )


def _ticks(dimension: Dimension) -> list[tuple[str, float]]:
    if isinstance(dimension, Choice):
        return [(value_text(value), _height(dimension, value)) for value in dimension.values]
    return [(value_text(dimension.low), 0.0), (value_text(dimension.high), 1.0)]


def _height(dimension: Dimension, value: object) -> float:
    """Where a value stands on its axis, from 0 to 1."""
    if isinstance(dimension, Choice):
        return dimension.values.index(value) / max(1, len(dimension.values) - 1)
    low, high, at = float(dimension.low), float(dimension.high), float(str(value))
    if dimension.log:
        low, high, at = math.log(low), math.log(high), math.log(at)
    return (at - low) / (high - low)


def _aside(entry: int) -> float:
    """A little aside, so that lines through one value can be told apart."""
    return 0.045 * ((entry * 0.618) % 1 - 0.5)
