"""The study folder and its report. Prose is in `tune.md.j2`.

```
study.json         what was planned, with what, and the best; written first, to say what the folder is
journal.log        Optuna's journal, unless the study is in a database
trials/NNN/rM/     replicate M of trial NNN: of a training a line an epoch, and while it lasts a checkpoint
trials.csv         a row a trial
best.toml          the winning settings, as a config of `unveil train` or `unveil world fit`
index.html         the report
```
"""

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from optuna.distributions import CategoricalDistribution, FloatDistribution

from unveil.errors import UnveilError
from unveil.files import explained, versions, write_json, write_whole
from unveil.report.page import Block, Cell, Column, Figure, Page, Table, count, number, percent, plain, write_page
from unveil.report.plots import Line, Scale, canvas, lines
from unveil.report.prose import Prose
from unveil.report.svg import COLOURS, INK, MUTED, PAPER, Drawing, themed
from unveil.runs.run_folder import read_json
from unveil.runs.tune.study import Dimension, Space, Study, Trial, settings_text, short, value_text, values_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STUDY, TABLE, BEST, PAGE = "study.json", "trials.csv", "best.toml", "index.html"
#: Groups that a range is cut into, with as many trials in each as can be.
_GROUPS = 4
#: Share of the trials that is drawn in colour.
_TOP = 0.2


def check_folder(folder: Path, storage: str) -> None:
    """Before any work is done: a new place, or one that holds a study, which keeps to one storage."""
    if folder.exists() and not folder.is_dir():
        raise UnveilError("the output is a file, not a folder", where=folder, hint="Name another place.")
    if not (folder / STUDY).exists():
        if folder.is_dir() and any(folder.iterdir()):
            raise UnveilError("the folder holds something else than a study", where=folder, hint="Name another.")
        return
    kept = read_json(folder / STUDY).get("storage")
    if kept is None:
        hint = "Restore it from a copy, or name another folder."
        raise UnveilError("does not say where the study is kept", where=folder / STUDY, hint=hint)
    if kept != storage:
        hint = "Join with the --storage it began with, or name another folder."
        raise UnveilError(f"the study is kept in {kept}, not in {storage}", where=folder, hint=hint)


def begin(folder: Path, study: Study) -> None:
    """Say what the folder is, before it holds anything else."""
    with explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
    if not (folder / STUDY).exists():
        write_json(folder / STUDY, _about(study))
    check_folder(folder, study.storage)


def write(folder: Path, study: Study, command: str) -> None:
    """All results; whoever writes them writes the same."""
    best, prose = study.best, _prose(study, command)
    states = {state: study.count(state) for state in ("complete", "pruned", "failed")}
    values = [each.value for each in best.replicates]
    winner = {"trial": best.index, "settings": dict(best.settings), "mean": best.value, "values": values}
    write_json(folder / STUDY, {**_about(study), "command": command, "best": {**winner, "trials": states}})
    write_whole(folder / TABLE, _csv(study))
    write_whole(folder / BEST, study.subject.changed(best.settings).toml("\n".join(prose.paragraphs("head"))))
    write_page(page(study, command), folder / PAGE)


def _about(study: Study) -> dict[str, Any]:
    plan = study.plan
    return {
        "study": study.name,
        "storage": study.storage,
        "log": study.fingerprint,
        "metric": f"validation {study.subject.metric}",
        "space": {"name": plan.space.name, "settings": plan.space.plain()},
        **{name: getattr(plan, name) for name in ("sampler", "replicates", "prune")},
        "judging": Prose(["tune.md.j2"], {"subject": study.subject}).line("validation"),
        "seed": study.subject.seed,
        "versions": versions(),
    }


def _csv(study: Study) -> str:
    text, names, places = StringIO(), list(study.plan.space.dimensions), range(study.plan.replicates)
    rows = csv.writer(text, lineterminator="\n")
    each_replicate = [*(f"replicate {place}" for place in places), *(f"best epoch {place}" for place in places)]
    rows.writerow(["trial", "state", *names, "mean", "sd", *each_replicate, "seconds", "attempts", "why"])
    for each in study.trials:
        missing = [None] * (study.plan.replicates - len(each.replicates))
        values = [*(one.value for one in each.replicates), *missing, *(one.epoch for one in each.replicates), *missing]
        settings = [each.settings.get(name, "") for name in names]
        ended = [round(each.seconds, 2), each.attempts, each.why]
        rows.writerow([each.index, each.state, *settings, each.value, each.spread, *values, *ended])
    return text.getvalue()


def page(study: Study, command: str) -> Page:
    """The whole report."""
    best, found = study.best, importances(study.trials, study.plan.space)
    parts: dict[str, Block] = {
        "settings": _table(["setting", "value"], [[name, value_text(each)] for name, each in best.settings.items()]),
        "replicates": _replicates(best),
        "trials": _trials(study),
        "failures": _table(["trial", "why"], [[str(each.index), each.why] for each in study.trials if each.why]),
    }
    if study.subject.epochs is not None:
        parts["curve"] = Figure("", _curve(best, study.subject.metric), "", data=_replicates(best))
    if found:
        shares = [[each.name, percent(each.share or 0.0)] for each in found]
        parts["importance"] = Figure("", _bars(found), "", data=_table(["setting", "-share"], shares, "Importance"))
        parts["means"] = _means(study.subject.metric, found)
    if study.count("complete") > 1:
        parts["parallel"] = Figure("", _parallel(study), "")
    shares_known = any(each.share is not None for each in found)
    return _prose(study, command, parts=parts, shares_known=shares_known).page(parts)


def _prose(study: Study, command: str, **more: Any) -> Prose:
    subject, space = study.subject, {name: _tried(values) for name, values in study.plan.space.plain().items()}
    figures = {"study": study, "plan": study.plan, "best": study.best, "subject": subject, "metric": subject.metric}
    figures |= {"best_settings": settings_text(study.best.settings), "space": space, "use": subject.command.format}
    return Prose(["tune.md.j2"], {**figures, "command": command, **more})


def _tried(values: Any) -> str:
    if isinstance(values, list):
        return "{" + ", ".join(map(value_text, values)) + "}"
    return f"[{values['low']:g}, {values['high']:g}]" + (", uniform in the logarithm" if values["log"] else "")


def _table(columns: Sequence[str], rows: Sequence[Sequence[Any]], caption: str = "", *, sortable: bool = True) -> Table:
    """Columns whose name begins with `-` hold numbers."""
    titles = [Column(each.removeprefix("-"), each.startswith("-")) for each in columns]
    return Table(caption, titles, rows, sortable=sortable)


def _replicates(best: Trial) -> Table:
    columns = ["replicate", "-best value", "-at epoch", "-seconds"]
    rows = [
        [str(place), number(each.value, 4), _or_dash(each.epoch), number(each.seconds, 1)]
        for place, each in enumerate(best.replicates)
    ]
    return _table(columns, rows, "Replicates of the best trial")


def _trials(study: Study) -> Table:
    names = list(study.plan.space.dimensions)
    columns = ["trial", f"-mean {study.subject.metric}", "-± sd", *(f"-{short(name)}" for name in names)]
    rows = []
    for each in study.ranked():
        state = each.state + (f", attempt {each.attempts}" if each.attempts > 1 else "")
        means = [_or_dash(each.value, 4), _or_dash(each.spread, 4)]
        settings = [_cell(each.settings.get(name)) for name in names]
        rows.append([str(each.index), *means, *settings, number(each.seconds, 1), state])
    return _table([*columns, "-seconds", "state"], rows)


def _or_dash(value: float | None, digits: int = 0) -> Cell:
    """Sorted last either way: some metrics are better when lower."""
    return Cell("–", "–") if value is None else number(value, digits)


def _cell(value: object) -> Cell | str:
    return plain(value) if isinstance(value, int | float) and not isinstance(value, bool) else value_text(value)


@dataclass(frozen=True)
class Importance:
    """One setting: the share of the variation between trials that it explains (None: not known), and its groups."""

    name: str
    share: float | None
    groups: Mapping[str, Sequence[float]]


def importances(trials: Sequence[Trial], space: Space) -> list[Importance]:
    """All settings that were given more than one value, the most important first."""
    complete = [each for each in trials if each.value is not None]
    found = []
    for name, dimension in space.dimensions.items():
        members: dict[str, list[float]] = {}
        labels = _labels(dimension, [each.settings[name] for each in complete])
        for label, each in sorted(zip(labels, complete, strict=True), key=lambda pair: pair[0]):
            members.setdefault(label[1], []).append(each.value or 0.0)
        found += [Importance(name, epsilon_squared(members), members)] if len(members) > 1 else []
    return sorted(found, key=lambda each: -(each.share or 0.0))


def epsilon_squared(members: Mapping[str, Sequence[float]]) -> float | None:
    """Kelley's ε² of values in G groups; None where there is no variation, or none within groups to compare with.

        ε² = (SS_between − (G − 1) · SS_within / (n − G)) / SS_total,

    the share of the variance explained less what G groups would explain by chance, not below 0. It is exact where every
    combination is equally likely, as in a random search or a grid; TPE prefers some, which mixes effects. Interactions
    belong to no single setting: the shares need not add up to 1. Why not Optuna's PED-ANOVA: ADR 0017.
    """
    everything = np.concatenate([np.zeros(0), *(np.asarray(each, float) for each in members.values())])
    n, groups = len(everything), len(members)
    total = float(((everything - everything.mean()) ** 2).sum()) if n else 0.0
    if total <= 0 or n <= groups:
        return None
    within = sum(float(((np.asarray(each) - np.mean(each)) ** 2).sum()) for each in members.values())
    return max(0.0, (total - within - (groups - 1) * within / (n - groups)) / total)


def _labels(dimension: Dimension, values: Sequence[Any]) -> list[tuple[float, str]]:
    """The group of each value: a key to order groups by, and a name."""
    if isinstance(dimension, CategoricalDistribution) or len(set(values)) <= _GROUPS:
        numbers = all(isinstance(value, int | float) for value in values)
        return [(float(value) if numbers else 0.0, value_text(value)) for value in values]
    number_N = np.array(values, dtype=float)
    part_N = number_N.argsort(kind="stable").argsort(kind="stable") * _GROUPS // len(number_N)
    ends = [(number_N[part_N == part].min(), number_N[part_N == part].max()) for part in range(_GROUPS)]
    return [(float(part), f"{ends[part][0]:.3g} to {ends[part][1]:.3g}") for part in part_N]


def _means(metric: str, found: Sequence[Importance]) -> Table:
    rows = [
        [f"{short(each.name)} {label}", number(float(np.mean(values)), 4), count(len(values))]
        for each in found
        for label, values in each.groups.items()
    ]
    return _table(["setting and value", f"-mean {metric}", "-trials"], rows, sortable=False)


def _bars(found: Sequence[Importance]) -> Drawing:
    """A bar for each setting, the most important on top."""
    share, rows = [each.share or 0.0 for each in found], range(len(found))
    with canvas("share of the variation between trials", "", (4.8, 0.75 + 0.36 * len(found))) as on:
        on.axes.grid(visible=False, axis="y")
        bars = on.axes.barh(rows, share, 0.6, color=COLOURS[0])
        on.axes.bar_label(bars, [f"{each:.0%}" for each in share], padding=5)
        for place, bar in enumerate(bars):
            bar.set_gid(f"bar{place}")
        on.axes.set_yticks(rows, [short(each.name) for each in found], color=INK)
        on.axes.set(xlim=(0, max(0.1, *share) * 1.15), ylim=(len(found) - 0.4, -0.6))
        on.axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        titles = {f"bar{place}": [f"{found[place].name}: {share[place]:.1%}"] for place in rows}
        return themed(on.figure, "importance", titles)


def _curve(best: Trial, metric: str) -> Drawing:
    """Mean and range over the replicates at the epochs that all of them have."""
    curves = [dict(each.curve) for each in best.replicates]
    epochs = sorted(set.intersection(*map(set, curves)))
    values = [[each[epoch] for each in curves] for epoch in epochs]
    mean, low, high = [float(np.mean(each)) for each in values], list(map(min, values)), list(map(max, values))
    titles = [f"epoch {epoch}: {value:.4f}" for epoch, value in zip(epochs, mean, strict=True)]
    drawn = {"mean": Line(epochs, mean, titles, 0, low, high)}
    return lines(drawn, ("epoch", f"validation {metric}"), "best-curve", Scale(whole=True))


def _parallel(study: Study) -> Drawing:
    """A line for each complete trial through its settings to its value; the best fifth in colour, the best thick."""
    complete = [each for each in reversed(study.ranked()) if each.value is not None]
    metric, values = study.subject.metric, [each.value or 0.0 for each in complete]
    names = {name: len({str(each.settings[name]) for each in complete}) > 1 for name in study.plan.space.dimensions}
    axes: dict[str, Dimension] = {name: study.plan.space.dimensions[name] for name in names if names[name]}
    axes[metric] = FloatDistribution(min(values), max(values))
    top = len(complete) - math.ceil(_TOP * len(complete))
    with canvas("", "", (max(4.8, 0.8 * len(axes)), 3.3)) as on:
        on.axes.grid(visible=False)
        for rank, each in enumerate(complete):
            aside = 0.045 * ((each.index * 0.618) % 1 - 0.5)  # so that lines through one value can be told apart
            places = {**each.settings, metric: each.value}
            height = [_height(axes[name], places[name]) + aside * (name != metric) for name in axes]
            colour, alpha = (COLOURS[0], 0.9) if rank >= top else (MUTED, 0.35)
            width = 2.6 if each is complete[-1] else 1.2
            (line,) = on.axes.plot(range(len(height)), height, color=colour, alpha=alpha, linewidth=width)
            line.set_gid(f"trial{each.index}")
        _draw_axes(on.axes, axes)
        titles = {f"trial{e.index}": [f"trial {e.index}: {e} · {settings_text(e.settings)}"] for e in complete}
        return themed(on.figure, "parallel", titles)


def _draw_axes(on: "Axes", axes: Mapping[str, Dimension]) -> None:
    """An upright axis for each name; its values stand beside it on the page's own ground."""
    ground = {"facecolor": PAPER, "edgecolor": "none", "alpha": 0.8, "pad": 0.8}
    style: dict[str, Any] = {"textcoords": "offset points", "va": "center", "color": INK, "fontsize": 9, "bbox": ground}
    for place, dimension in enumerate(axes.values()):
        on.axvline(place, color=MUTED, linewidth=0.7)
        for value in dict.fromkeys(values_of(dimension)):
            on.annotate(value_text(value), (place, _height(dimension, value)), (4, 0), **style)
    on.set_xticks(range(len(axes)), [short(name).replace(" ", "\n") for name in axes], color=INK)
    on.set(yticks=[], xlim=(-0.15, len(axes) - 0.35), ylim=(-0.08, 1.08))
    on.spines[["left", "bottom"]].set_visible(False)


def _height(dimension: Dimension, value: Any) -> float:
    """Where a value stands on its axis, from 0 to 1."""
    ends = values_of(dimension)
    if isinstance(dimension, CategoricalDistribution):
        return ends.index(value) / max(1, len(ends) - 1)
    if ends[0] == ends[1]:
        return 0.5
    low, high, at = (math.log(each) if dimension.log else float(each) for each in (*ends, value))
    return (at - low) / (high - low)
