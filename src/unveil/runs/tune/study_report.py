"""The study folder and its report; the files are listed in docs/commands/tune.md. Prose is in `tune.md.j2`."""

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
from optuna.distributions import CategoricalDistribution, FloatDistribution

from unveil.errors import UnveilError
from unveil.files import is_empty, versions, write_json, write_whole
from unveil.report.charts import bars, parallel
from unveil.report.page import Figure, Page, Table, write_page
from unveil.report.plots import Line, Scale, line_figure
from unveil.report.prose import Prose
from unveil.report.svg import Drawing
from unveil.runs.run_folder import read_json
from unveil.runs.tune.study import OVER, Dimension, Space, Study, Trial, settings_text, short, value_text, values_of

STUDY, TABLE, BEST, PAGE = "study.json", "trials.csv", "best.toml", "index.html"
_GROUPS = 4  # groups that a range is cut into, with as many trials in each as can be


def check_folder(folder: Path, storage: str) -> None:
    """Before any work is done: a new place, or one that holds a study, which keeps to one storage."""
    if folder.exists() and not folder.is_dir():
        raise UnveilError("the output is a file, not a folder", where=folder, hint="Name another place.")
    if not (folder / STUDY).exists():
        if folder.is_dir() and not is_empty(folder):
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
    if not (folder / STUDY).exists():
        write_json(folder / STUDY, _about(study))
    check_folder(folder, study.storage)


def write(folder: Path, study: Study, command: str) -> None:
    """All results; whoever writes them writes the same."""
    best, prose = study.best, _prose(study, command)
    winner: dict[str, Any] = {"trial": best.index, "settings": dict(best.settings), "mean": best.value}
    winner |= {
        "values": [each.value for each in best.replicates],
        "trials": {state: study.count(state) for state in OVER},
    }
    write_json(folder / STUDY, {**_about(study), "command": command, "best": winner})
    write_whole(folder / TABLE, _csv(study))
    write_whole(folder / BEST, study.subject.changed(best.settings).toml("\n".join(prose.paragraphs("head"))))
    write_page(page(study, command), folder / PAGE)


def _about(study: Study) -> dict[str, Any]:
    plan = study.plan
    return {
        "study": study.name,
        "storage": study.storage,
        "log": study.fingerprint,
        "metric": f"validation {study.subject.objective.metric}",
        "space": {"name": plan.space.name, "settings": plan.space.plain()},
        **{name: getattr(plan, name) for name in ("sampler", "replicates", "prune")},
        "judging": Prose(["tune.md.j2"], {"subject": study.subject}).line("validation"),
        "seed": study.subject.objective.seed,
        "versions": versions(),
    }


def _csv(study: Study) -> str:
    text, places = StringIO(), range(study.plan.replicates)
    replicates = [f"{what} {place}" for what in ("replicate", "best epoch") for place in places]
    names = ["trial", "state", *study.plan.space.dimensions, "mean", "sd", *replicates, "seconds", "attempts", "why"]
    rows = csv.DictWriter(text, names, lineterminator="\n")
    rows.writeheader()
    for each in study.trials:
        row = {"trial": each.index, "state": each.state, **each.settings, "mean": each.value, "sd": each.spread}
        for place, one in enumerate(each.replicates):
            row |= {f"replicate {place}": one.value, f"best epoch {place}": one.epoch}
        rows.writerow(row | {"seconds": round(each.seconds, 2), "attempts": each.attempts, "why": each.why})
    return text.getvalue()


def page(study: Study, command: str) -> Page:
    """The whole report."""
    found, parts = importances(study.trials, study.plan.space), dict[str, Figure]()
    prose = _prose(study, command, importances=found, parts=parts)
    if study.subject.objective.epochs is not None:
        parts["curve"] = _curve(study, prose.table("replicates"))
    if any(each.share is not None for each in found):
        shares = {each.name: each.share or 0.0 for each in found}
        drawing = bars(shares, [short(name) for name in shares], "share of the variation between trials", "importance")
        parts["importance"] = Figure("", drawing, "", data=prose.table("shares"))
    if study.count("complete") > 1:
        parts["parallel"] = Figure("", _parallel(study), "")
    return prose.page(parts)


def _prose(study: Study, command: str, **more: Any) -> Prose:
    figures = {"study": study, "plan": study.plan, "best": study.best, "subject": study.subject, "command": command}
    figures |= {"metric": study.subject.objective.metric, "use": study.subject.command.format}
    figures |= {"text": value_text, "short": short, "best_settings": settings_text(study.best.settings)}
    return Prose(["tune.md.j2"], {**figures, "space": study.plan.space.plain(), **more})


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
    combination is equally likely; TPE prefers some, which mixes effects. Why not Optuna's PED-ANOVA: ADR 0017.
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


def _curve(study: Study, data: Table) -> Figure:
    curves = [dict(each.curve) for each in study.best.replicates]
    epochs = sorted(set.intersection(*map(set, curves)))
    values = [[each[epoch] for each in curves] for epoch in epochs]
    mean, low, high = [float(np.mean(each)) for each in values], list(map(min, values)), list(map(max, values))
    axes = ("epoch", f"validation {study.subject.objective.metric}")
    return line_figure({"mean": Line(epochs, mean, 0, low, high)}, axes, "best-curve", Scale(whole=True), data)


def _parallel(study: Study) -> Drawing:
    complete = [each for each in study.ranked() if each.value is not None]
    space, values = study.plan.space.dimensions, [each.value or 0.0 for each in complete]
    axes = {name: space[name] for name in space if len({str(each.settings[name]) for each in complete}) > 1}
    axes[study.subject.objective.metric] = FloatDistribution(min(values), max(values))
    ticks = [
        (short(name), [(value_text(value), _height(dimension, value)) for value in dict.fromkeys(values_of(dimension))])
        for name, dimension in axes.items()
    ]
    heights = {
        f"trial {each.index}: {each} · {settings_text(each.settings)}": [
            _height(dimension, each.settings.get(name, each.value)) for name, dimension in axes.items()
        ]
        for each in complete
    }
    return parallel(ticks, heights, "parallel")


def _height(dimension: Dimension, value: Any) -> float:
    if isinstance(dimension, CategoricalDistribution):
        return dimension.choices.index(value) / max(1, len(dimension.choices) - 1)
    every = (dimension.low, dimension.high, value)
    low, high, at = (math.log(each) if dimension.log else float(each) for each in every)
    return (at - low) / (high - low) if high > low else 0.5
