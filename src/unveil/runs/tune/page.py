"""How much each setting mattered: the share of the variation between trials that knowing it alone explains.

For a setting with G groups of values among n trials, with SS the sums of squares around means,

    ε² = (SS_between − (G − 1) · SS_within / (n − G)) / SS_total,

the share of explained variance less what G groups would explain by chance (Kelley's epsilon-squared), not below 0. It
is exact where every combination is equally likely to be tried, as in a random search or a grid; TPE prefers some, which
mixes the settings' effects. Interactions belong to no single setting: the shares need not add up to 1. (fANOVA in
Optuna needs scikit-learn; with thirty trials a forest says no more than these means.)
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from unveil.report.page import (
    Block,
    Cell,
    Code,
    Column,
    Figure,
    KeyFigure,
    Note,
    Page,
    Section,
    Table,
    Text,
    count,
    number,
    percent,
    plain,
)
from unveil.report.plots import canvas
from unveil.report.svg import COLOURS, INK, MUTED, PAPER, Drawing, themed
from unveil.runs.tune.claims import Record, best_of
from unveil.runs.tune.space import Choice, Dimension, Space
from unveil.runs.tune.subject import Study
from unveil.runs.tune.worker import figure, settings_text, short, spread, value_text
from unveil.wording import quantity

if TYPE_CHECKING:
    from matplotlib.axes import Axes


#: Groups that a range is cut into, with as many trials in each as can be.
_PARTS = 4


@dataclass(frozen=True)
class Group:
    """Trials that share a value of a setting, or a part of its range."""

    label: str
    mean: float
    trials: int


@dataclass(frozen=True)
class Importance:
    """One setting: its share (None where it cannot be told) and the mean of each group."""

    name: str
    share: float | None
    groups: Sequence[Group]


def importances(records: Sequence[Record], space: Space) -> list[Importance]:
    """All settings that were given more than one value, the most important first."""
    complete = [each for each in records if each.value is not None]
    value_N = np.array([each.value for each in complete], dtype=float)
    found = [
        _importance(name, _labels(dimension, [each.settings[name] for each in complete]), value_N)
        for name, dimension in space.dimensions.items()
    ]
    return sorted((each for each in found if len(each.groups) > 1), key=lambda each: -(each.share or 0.0))


def _importance(name: str, label_N: Sequence[str], value_N: NDArray[np.float64]) -> Importance:
    members: dict[str, list[float]] = {}
    for label, value in zip(label_N, value_N.tolist(), strict=True):
        members.setdefault(label, []).append(value)
    groups = [Group(label, float(np.mean(each)), len(each)) for label, each in members.items()]
    return Importance(name, epsilon_squared(members), sorted(groups, key=lambda group: _in_order(group.label)))


def epsilon_squared(members: Mapping[str, Sequence[float]]) -> float | None:
    """ε² of values in groups; None where there is no variation, or none within groups to compare with."""
    everything = np.concatenate([np.zeros(0), *(np.asarray(each, float) for each in members.values())])
    n, groups = len(everything), len(members)
    total = float(((everything - everything.mean()) ** 2).sum()) if n else 0.0
    if total <= 0 or n <= groups:
        return None
    within = sum(float(((np.asarray(each) - np.mean(each)) ** 2).sum()) for each in members.values())
    return max(0.0, (total - within - (groups - 1) * within / (n - groups)) / total)


def _labels(dimension: Dimension, values: Sequence[object]) -> list[str]:
    if isinstance(dimension, Choice):
        return [value_text(value) for value in values]
    number_N = np.array(values, dtype=float)
    if len(np.unique(number_N)) <= _PARTS:
        return [value_text(value) for value in values]
    rank_N = number_N.argsort(kind="stable").argsort(kind="stable")
    part_N = rank_N * _PARTS // len(number_N)
    ends = [(number_N[part_N == part].min(), number_N[part_N == part].max()) for part in range(_PARTS)]
    return [f"{ends[part][0]:.3g} to {ends[part][1]:.3g}" for part in part_N]


def _in_order(label: str) -> tuple[float, str]:
    head = label.split(" ", maxsplit=1)[0]
    try:
        return float(head), label
    except ValueError:
        return 0.0, label


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


_SEARCH = {
    "random": (
        "Settings were drawn at random, no combination twice; for a seed, trial i has the same settings whoever works "
        "on it. Combinations that no model can have were left out."
    ),
    "grid": "Every combination that a model can have was tried.",
    "tpe": (
        "Settings were guessed by TPE from the trials that were over when each began, so the study depends on how many "
        "worked on it and how fast. Combinations that no model can have were guessed anew."
    ),
}


def made(study: Study) -> list[str]:
    """The space, the search, the replicates and what went wrong."""
    plan = study.plan
    tried = ", ".join(f"{name} in {_tried(values)}" for name, values in plan.space.plain().items())
    return [
        f"Space {plan.space.name}: {tried}.",
        f"{_SEARCH[plan.sampler]} {_pruning(study)}",
        f"{_seeds(study)} {study.subject.words.judging}",
        _mishaps(study),
    ]


def _pruning(study: Study) -> str:
    if not study.plan.prune:
        return "No trial was stopped early."
    return f"Trials whose first replicate fell behind the median were stopped: {study.count('pruned')} of them."


def _seeds(study: Study) -> str:
    return f"Replicate r has the same seed in every trial (from {study.subject.seed} on): they are compared in pairs."


def _mishaps(study: Study) -> str:
    again = sum(each.attempts > 1 for each in study.records)
    start = "last replicate that was done" if study.subject.epochs is None else "last checkpoint"
    return (
        f"{quantity(study.count('failed'), 'trial')} failed. {quantity(again, 'trial')} had to be begun anew because a "
        f"worker died or was stopped: with the same settings, from the {start} where it could be reached."
    )


def _tried(values: object) -> str:
    if isinstance(values, list):
        return "{" + ", ".join(map(value_text, values)) + "}"
    assert isinstance(values, dict)
    return f"[{values['low']:g}, {values['high']:g}]" + (" by ratio" if values["log"] else "")


_IMPORTANT = (
    "The share of the variation between trials that knowing this setting alone explains, less what its number of "
    "values would explain by chance (ε²). What settings do together belongs to none of them alone, so the shares need "
    "not add up to 100%."
)
_LEARNT = " TPE tries promising settings more often, which mixes the effects of settings: read these as hints."
#: A group mean of fewer complete trials than this says little.
_FEW = 10


def page(study: Study, command: str) -> Page:
    """The whole page."""
    best, once, words = study.best, study.plan.replicates == 1, study.subject.words
    judged = "best" if once else "best mean"
    off = "" if once else " (± standard deviation of its replicates)"
    less = "; less is better" if study.subject.lower else ""
    return Page(
        title=f"Tuning: {study.name}",
        lede=words.once if once else words.several,
        key_figures=[
            KeyFigure(figure(best), f"{judged} validation {study.metric}{off}{less}"),
            KeyFigure(
                str(study.count("complete")), f"complete trials of {quantity(study.plan.replicates, words.unit)}"
            ),
            KeyFigure(
                f"{sum(each.seconds for each in study.records) / 3600:.2f} h", "of training, all trials together"
            ),
        ],
        sections=[
            Section("The best settings", [*_unfinished(study), *_best(study)]),
            Section("What mattered", _mattered(study)),
            Section("All trials", [*_coordinates(study), _trials(study), *_failures(study)]),
            Section("How it was made", [*map(Text, made(study)), Code(command)]),
        ],
    )


def _unfinished(study: Study) -> list[Block]:
    """A study that was stopped says so."""
    over = len(study.records)
    told = f"The study is not finished: {over} of {quantity(over + study.left, 'trial')} are over."
    return [Note(told, warning=True)] if study.left else []


def _best(study: Study) -> list[Block]:
    best, words = study.best, study.subject.words
    rows: list[list[Cell | str]] = [[name, value_text(value)] for name, value in best.settings.items()]
    table = Table(f"Trial {best.entry}: {settings_text(best.settings)}", [Column("setting"), Column("value")], rows)
    return [table, Code(words.command.format(config="best.toml")), Note(words.chosen), *_replicates(study)]


def _replicates(study: Study) -> list[Block]:
    """How the replicates of the best came to their values, where they were judged on their way."""
    best = study.best
    if study.subject.epochs is None:
        return [_value_table(best)] if len(best.replicates) > 1 else []
    several = (
        f"Thin: each of {quantity(len(best.replicates), 'replicate')}. Thick: their mean where all of them were "
        "validated. The best epoch of each replicate counts."
    )
    return [
        Figure(
            f"Validation {study.metric} of trial {best.entry} by epoch",
            curve(best, study.metric),
            f"Validation {study.metric} of the best trial by epoch, for each replicate and on average.",
            several if len(best.replicates) > 1 else "The best epoch counts.",
            _curve_table(best),
        )
    ]


def _value_table(best: Record) -> Table:
    rows: list[list[Cell | str]] = [
        [str(place), number(each.value, 4), number(each.seconds, 1)] for place, each in enumerate(best.replicates)
    ]
    return Table(
        "Replicates of the best trial", [Column("replicate"), Column("value", True), Column("seconds", True)], rows
    )


def _curve_table(best: Record) -> Table:
    rows: list[list[Cell | str]] = [
        [str(place), number(each.value, 4), count(each.epoch or 0), number(each.seconds, 1)]
        for place, each in enumerate(best.replicates)
    ]
    columns = [Column("replicate"), Column("best value", True), Column("at epoch", True), Column("seconds", True)]
    return Table("Replicates of the best trial", columns, rows)


def _mattered(study: Study) -> list[Block]:
    found = importances(study.records, study.plan.space)
    if not found or all(each.share is None for each in found):
        return [Text("Too few trials are complete, or too much alike, to tell which setting mattered.")]
    told = _IMPORTANT + (_LEARNT if study.plan.sampler == "tpe" else "")
    drawn = Figure(
        "Importance of each setting",
        importance_bars(found),
        "Bars: the share of the variation between trials that each setting explains.",
        told,
        _shares(found),
    )
    few = [Note(f"Only {quantity(study.count('complete'), 'trial')}: these shares are rough.", warning=True)]
    return [*(few if study.count("complete") < _FEW else []), drawn, _means(study, found)]


def _shares(found: Sequence[Importance]) -> Table:
    rows: list[list[Cell | str]] = [[each.name, percent(each.share or 0.0)] for each in found]
    return Table("Importance", [Column("setting"), Column("share", True)], rows)


def _means(study: Study, found: Sequence[Importance]) -> Table:
    rows: list[list[Cell | str]] = [
        [f"{short(each.name)} {group.label}", number(group.mean, 4), count(group.trials)]
        for each in found
        for group in each.groups
    ]
    columns = [Column("setting and value"), Column(f"mean {study.metric}", True), Column("trials", True)]
    return Table("Mean over the complete trials that share a value", columns, rows, sortable=False)


def _coordinates(study: Study) -> list[Block]:
    if study.count("complete") < 2:
        return []
    return [
        Figure(
            "Every trial through its settings",
            parallel(study.records, study.plan.space, study.metric),
            "Parallel coordinates: an axis for each setting and one for the value, a line for each trial.",
            "The best fifth in colour, the best of all thick. Point at a line to read it.",
        )
    ]


def _trials(study: Study) -> Table:
    names = list(study.plan.space.dimensions)
    columns = [Column("trial"), Column(f"mean {study.metric}", True), Column("± sd", True)]
    columns += [*(Column(short(name), True) for name in names), Column("seconds", True), Column("state")]
    rows = [_row(each, names) for each in study.ranked()]
    return Table("All trials, the best first", columns, rows)


def _row(record: Record, names: Sequence[str]) -> list[Cell | str]:
    blank = Cell("–", "–")  # sorted last either way: some metrics are better when lower
    value = blank if record.value is None else number(record.value, 4)
    off = blank if record.value is None or len(record.replicates) == 1 else number(spread(record), 4)
    settings = [_cell(record.settings.get(name)) for name in names]
    state = record.state + (f", attempt {record.attempts}" if record.attempts > 1 else "")
    return [str(record.entry), value, off, *settings, number(record.seconds, 1), state]


def _failures(study: Study) -> list[Block]:
    rows: list[list[Cell | str]] = [[str(each.entry), each.why] for each in study.records if each.why]
    return [Table("Trials that failed", [Column("trial"), Column("why")], rows)] if rows else []


def _cell(value: object) -> Cell | str:
    return plain(value) if isinstance(value, int | float) and not isinstance(value, bool) else value_text(value)
