"""Tables and plots that studies share: arms by measures, weights, training and settings."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from unveil.estimators.base import ESTIMATORS
from unveil.propensity.weights import WeightDiagnostics
from unveil.report.charts import Dot, curves, intervals
from unveil.report.names import COLOURS, named
from unveil.report.page import Cell, Column, Figure, Table, columns, plain
from unveil.report.plots import Line, Scale, line_figure
from unveil.report.prose import estimate, interval, number, signed
from unveil.report.prose import percent as percentage
from unveil.studies.arms import Variant
from unveil.studies.paper import Published
from unveil.studies.results import Estimate, Measure, Results
from unveil.training.recipe import Recipe

Records = Sequence[Mapping[str, Any]]
Row = Sequence[Cell | str]


def arms_table(
    results: Results, measures: Sequence[Measure], published: Published | None = None, caption: str = ""
) -> Table:
    """Arms down, measures across: mean with interval, * where significantly above the next best; the paper's below."""
    marked = {(step.measure, step.arm) for step in results.against_next(measures) if step.significant}
    rows = list[Row]()
    for arm in results.arms:
        found, theirs, own = [], [], [results.estimate(arm, measure) for measure in measures]
        for measure, mean in zip(measures, own, strict=True):
            mark = "*" if (measure, arm) in marked else ""
            found.append(Cell(f"{number(mean.mean, 4)}{mark} {interval(mean, 4)}".rstrip(), mean.mean))
            paper = published and published.figure(arm, measure)
            away = paper and f"({signed(100 * (mean.mean / paper - 1), 1)}%)"
            theirs.append(Cell(f"{paper:.4f} {away}", paper) if paper else "–")
        rows += [[named(arm), *found], *([["  paper", *theirs]] if set(theirs) != {"–"} else [])]
    foot = f"Mean [95% interval over {results.units}] · * better than the next best, p < 0.05 after Holm’s correction"
    paper_foot = " · paper: its figure, and how far ours is from it" if len(rows) > len(results.arms) else ""
    heads = columns("estimator", *(measure.name for measure in measures))
    return Table(caption, heads, rows, not paper_foot, f"{foot}{paper_foot}")


def dot(arm: str, found: Estimate, digits: int = 3, paper: float | None = None) -> Dot:
    """An arm's mean and interval as a dot of a plot."""
    low, high = (found.mean if end is None else end for end in (found.low, found.high))
    return Dot(named(arm), found.mean, low, high, COLOURS.get(arm), f"{named(arm)}: {estimate(found, digits)}", paper)


def dots_figure(results: Results, measure: Measure, published: Published | None = None) -> Figure:
    """One measure of all trained arms, the paper's figure beside each."""
    found = {arm: results.estimate(arm, measure) for arm in results.trained}
    dots = [dot(arm, each, 4, published.figure(arm, measure) if published else None) for arm, each in found.items()]
    diamonds = " Diamond: the paper." if any(dot.paper is not None for dot in dots) else ""
    slug = f"{measure.evaluation.split()[0]}-{measure.protocol}-{measure.metric.lower()}-{measure.k}"
    caption = f"Dot and line: our mean and 95% interval.{diamonds} The axis does not start at 0."
    title = f"{measure.name}, {measure.evaluation}"
    return replace(intervals(dots, measure.name, None, slug), title=title, caption=caption)


def along_figure(
    results: Results,
    condition: str,
    measure: Measure,
    *,
    level: float = 0.95,
    title: str = "",
    slug: str = "",
    digits: int = 3,
) -> Figure:
    """The means of a measure along a numeric condition, each with its interval as a band, and with a table of all."""
    known, drawn = results.known_along(condition, measure), dict[str, Line]()
    at, name, cells = [float(value) for value in known.values], title or measure.name, list[list[Cell]]()
    for arm in known.arms:
        found = [results.at(**{condition: value}).estimate(arm, measure, level) for value in known.values]
        texts = [estimate(each, digits) for each in found]
        ends = [(each.low, each.high) for each in found if each.low is not None and each.high is not None]
        low, high = zip(*ends, strict=True) if ends else (None, None)
        hover = [f"{named(arm)}, {condition} {place:g}: {text}" for place, text in zip(at, texts, strict=True)]
        drawn[named(arm)] = Line(at, [each.mean for each in found], COLOURS.get(arm), low, high, hover)
        cells.append([Cell(text, each.mean) for text, each in zip(texts, found, strict=True)])
    rows = [[f"{place:g}", *row] for place, *row in zip(at, *cells, strict=True)]
    heads = [Column(head, True) for head in (condition, *drawn)]
    whole = all(place.is_integer() for place in at)
    scale = Scale(bottom=None, whole=whole, ticks=None if whole else {place: f"{place:g}" for place in at})
    slug = slug or f"band-{measure.protocol}-{measure.metric.lower()}-{measure.k}"
    data = Table(f"{name} by {condition}", heads, rows, sortable=False)
    caption = f"Means, and {percentage(level)} intervals over {results.units}."
    figure = line_figure(drawn, (condition, name), slug, scale, data)
    return replace(figure, title=title or f"{name}, {measure.protocol}", caption=caption)


def ess_share(records: Records, part: str | None = None) -> float | None:
    """The mean effective sample size as a share of the events; `part`: of weights kept inside the others."""
    weights = [record["weights"] for record in records if record["weights"] is not None]
    shares = [diagnostics(each if part is None else each[part]).ess_share for each in weights]
    return float(np.mean(shares)) if shares else None


def diagnostics(weights: Mapping[str, Any]) -> WeightDiagnostics:
    """Of a record of weights."""
    return WeightDiagnostics(**{name: value for name, value in weights.items() if not isinstance(value, Mapping)})


def weight_means(arms: Mapping[str, Records]) -> dict[str, dict[str, float]]:
    """What weighting does to the sample, means over cells, for the arms that are weighted."""
    shares = {arm: share for arm, records in arms.items() if (share := ess_share(records)) is not None}
    names = ("largest_share", "spread", "clipped")
    return {arm: {"ess_share": share, **means_of(arms[arm], "weights", *names)} for arm, share in shares.items()}


def means_of(records: Records, part: str, *names: str) -> dict[str, float]:
    """Numbers of the records, averaged over cells."""
    found = [record[part] for record in records if record[part] is not None]
    return {name: float(np.mean([each[name] for each in found])) for name in names}


def weight_warnings(trained: Mapping[str, Records]) -> dict[str, str]:
    """What is wrong with the weights of an arm in its first cell, for arms whose weights are degenerate."""
    weights = {arm: records[0]["weights"] for arm, records in trained.items()}
    found = {arm: diagnostics(each).warnings() for arm, each in weights.items() if each is not None}
    return {arm: " ".join(each) for arm, each in found.items() if each}


def learning_figure(arms: Mapping[str, Records], where: str, slug: str) -> Figure:
    """Validation along the epochs, averaged over cells; arms may be validated at different epochs."""
    runs = {arm: [dict(record["training"]["validation"]) for record in records] for arm, records in arms.items()}
    shared = {arm: set.intersection(*(set(run) for run in every)) for arm, every in runs.items()}
    epochs = sorted(set().union(*shared.values()))
    value = {
        named(arm): np.array([np.mean([run[e] for run in every]) if e in shared[arm] else np.nan for e in epochs])
        for arm, every in runs.items()
    }
    figure = curves(np.array(epochs), value, [COLOURS.get(arm) for arm in arms], "validation NDCG@10", slug)
    caption = "On the validation cases, mean over cells. The weights of each training’s best epoch are evaluated."
    return replace(figure, title=f"Training curves at {where}", caption=caption)


def settings_table(recipes: Mapping[str, Recipe]) -> Table:
    """How each arm is trained."""
    sizes = ("width", "blocks", "heads", "tokens", "batch", "dropout", "mask ρ", "epochs")
    rows: list[Row] = []
    for arm, recipe in recipes.items():
        network: Any = recipe.model
        task, known = recipe.task, ESTIMATORS.options(Variant.of(arm).estimator)
        shape = (network.width, getattr(network, "blocks", 0), getattr(network, "heads", 0), network.length)
        rest = (task.batch_size, network.dropout, task.mask_probability, recipe.training.epochs)
        defaults = {"exponent": 1.0, "clip": 0.0}
        options = [recipe.estimator.get(name, default) if name in known else "–" for name, default in defaults.items()]
        shown = [each if isinstance(each, str) else plain(float(each)) for each in options]  # a clip may be 5%
        rows.append([named(arm), *(plain(value) for value in (*shape, *rest)), *shown])
    return Table("", columns("estimator", *sizes, "exponent", "clip of θ"), rows, sortable=False)
