"""Tables and plots that studies share: arms by measures, tests, the paper's figures, weights, training and logs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from unveil.estimators.base import ESTIMATORS
from unveil.evaluation.statistics import Paired
from unveil.propensity.weights import WeightDiagnostics
from unveil.report.charts import Dot, Spot, curves, intervals
from unveil.report.names import COLOURS, named
from unveil.report.page import Cell, Column, Figure, Table, count, percent, plain
from unveil.report.page import number as number_cell
from unveil.report.plots import Line, Scale, lines
from unveil.report.prose import estimate, interval, number, p_value, share, signed
from unveil.report.prose import percent as percentage
from unveil.studies.arms import Variant
from unveil.studies.paper import Comparison, Published
from unveil.studies.results import Estimate, Measure, Ranking, Results
from unveil.training.recipe import Recipe

Records = Sequence[Mapping[str, Any]]
Row = Sequence[Cell | str]
_PAPER_LOG: Row = ["the paper’s sample", count(943), count(229), count(94_104), number_cell(99.79, 1), "–", "–"]


def table(
    heads: Iterable[str],
    rows: Iterable[Row],
    caption: str = "",
    *,
    text: int = 1,
    foot: str = "",
    sortable: bool = True,
) -> Table:
    """Rows under titles such as "λ | by replicate"; the first `text` columns hold words, the others numbers."""
    titles = [head.partition(" | ") for head in heads]
    columns = [Column(title, place >= text, about) for place, (title, _, about) in enumerate(titles)]
    return Table(caption, columns, list(rows), sortable, foot)


def estimate_cell(found: Estimate, mark: str = "", digits: int = 3) -> Cell:
    """0.607* [0.601, 0.613]."""
    return Cell(f"{number(found.mean, digits)}{mark} {interval(found, digits)}".rstrip(), found.mean)


def share_cell(found: Estimate | None, mark: str = "") -> Cell | str:
    """25% [20%, 30%], or a dash where there is no gap."""
    return "–" if found is None else Cell(f"{share(found)}{mark}", found.mean)


def test_cell(found: Paired) -> Cell:
    """+0.012 [+0.003, +0.021]."""
    return Cell(f"{signed(found.difference)} [{signed(found.low)}, {signed(found.high)}]", found.difference)


def share_spot(gap: Estimate | None, title: str) -> Spot:
    """A share of the gap as a point of a panel; an empty one where there is no gap."""
    return Spot(None, None, None, "") if gap is None else Spot(gap.mean, gap.low, gap.high, f"{title}: {share(gap)}")


def arms_table(
    results: Results, measures: Sequence[Measure], published: Published | None = None, caption: str = ""
) -> Table:
    """Arms down, measures across: mean with interval, * where significantly above the next best; the paper's below."""
    rankings = results.rankings(measures)
    rows: list[Row] = []
    for arm in results.arms:
        marks = ["*" if ranking.significant(arm) else "" for ranking in rankings]
        found = [results.estimate(arm, measure) for measure in measures]
        rows.append([named(arm), *(estimate_cell(*each, 4) for each in zip(found, marks, strict=True))])
        theirs = [None if published is None else published.figure(arm, measure) for measure in measures]
        if any(figure is not None for figure in theirs):
            pairs = zip(found, theirs, strict=True)
            rows.append(["  paper", *("–" if p is None else _paper_cell(f.mean / p - 1, p) for f, p in pairs)])
    foot = f"Mean [95% interval over {results.units}] · * better than the next best, p < 0.05 after Holm’s correction"
    paper = " · paper: its figure, and how far ours is from it" if len(rows) > len(results.arms) else ""
    heads = ["estimator", *(measure.name for measure in measures)]
    return table(heads, rows, caption, sortable=not paper, foot=f"{foot}{paper}")


def _paper_cell(deviation: float, figure: float) -> Cell:
    """0.6065 (+1.2%)."""
    return Cell(f"{figure:.4f} ({signed(100 * deviation, 1)}%)", figure)


def rankings_table(rankings: Sequence[Ranking]) -> Table:
    """Each arm against the next best."""
    rows = [
        (f"{named(step.arm)} over {named(step.below or '')}", each.measure.protocol, each.measure.name, step.test)
        for each in rankings
        for step in each.steps
        if step.test is not None
    ]
    heads = ["pair", "ranked against", "metric", "difference | 95% interval", "p | paired t, Holm over the table"]
    return table(heads, ([*words, test_cell(test), Cell(p_value(test.p), test.p)] for *words, test in rows), text=3)


def paper_table(every: Sequence[Comparison]) -> Table:
    """Ours and the paper's, figure by figure."""
    words = {True: "yes", False: "no", None: "–"}
    heads = [
        "estimator",
        "metric",
        "ours | mean, 95% interval",
        "paper",
        "deviation",
        "within 5%",
        "paper in our interval",
    ]
    rows: Iterable[Row] = (
        [
            named(each.arm),
            each.measure.name,
            estimate_cell(each.ours),
            Cell(f"{each.paper:.4f}", each.paper),
            Cell(f"{signed(100 * each.deviation, 1)}%", each.deviation),
            words[each.near],
            words[each.covered],
        ]
        for each in every
    )
    return table(heads, rows, text=2)


def dot(arm: str, found: Estimate, digits: int = 3, paper: float | None = None) -> Dot:
    """An arm's mean and interval as a dot of a plot."""
    low, high = (found.mean if end is None else end for end in (found.low, found.high))
    return Dot(named(arm), found.mean, low, high, COLOURS.get(arm), f"{named(arm)}: {estimate(found, digits)}", paper)


def dots_figure(results: Results, measure: Measure, published: Published) -> Figure:
    """One measure of all trained arms, the paper's figure beside each."""
    found = {arm: results.estimate(arm, measure) for arm in results.trained}
    dots = [dot(arm, each, 4, published.figure(arm, measure)) for arm, each in found.items()]
    diamonds = " Diamond: the paper." if any(dot.paper is not None for dot in dots) else ""
    slug = f"{measure.evaluation.split()[0]}-{measure.protocol}-{measure.metric.lower()}-{measure.k}"
    return Figure(
        f"{measure.name}, {measure.evaluation}",
        intervals(dots, measure.name, None, slug),
        f"Mean {measure.name} with its interval: {', '.join(f'{dot.label} {dot.mean:.3f}' for dot in dots)}.",
        f"Dot and line: our mean and 95% interval.{diamonds} The axis does not start at 0.",
    )


def along_figure(results: Results, condition: str, measure: Measure, *, level: float = 0.95) -> Figure:
    """The means of a measure along a numeric condition, each with its interval as a band."""
    at = [float(value) for value in results.along(condition)]
    drawn = {}
    for arm in results.trained:
        found = [results.at(**{condition: value}).estimate(arm, measure, level) for value in results.along(condition)]
        titles = [f"{named(arm)} at {place:g}: {estimate(each)}" for place, each in zip(at, found, strict=True)]
        low = [each.mean if each.low is None else each.low for each in found]
        high = [each.mean if each.high is None else each.high for each in found]
        drawn[named(arm)] = Line(at, [each.mean for each in found], titles, COLOURS.get(arm), low, high)
    said = "; ".join(f"{name} {', '.join(number(y) for y in line.y)}" for name, line in drawn.items())
    slug = f"band-{measure.protocol}-{measure.metric.lower()}-{measure.k}"
    scale = Scale(bottom=None, ticks={place: f"{place:g}" for place in at})
    return Figure(
        f"{measure.name}, {measure.protocol}",
        lines(drawn, (condition, measure.name), slug, scale),
        f"{measure.name} along {condition} = {', '.join(f'{place:g}' for place in at)}: {said}.",
        f"Means, and {percentage(level)} intervals over {results.units}.",
    )


def mean_of(records: Records, part: str, name: str) -> float:
    """A number of the records, averaged over cells."""
    return float(np.mean([record[part][name] for record in records if record[part] is not None]))


def ess_share(records: Records, part: str | None = None) -> float | None:
    """The effective sample size of the weights as a share of the training events, averaged over cells.

    `part`: of weights that are kept inside the others.
    """
    weights = [record["weights"] for record in records if record["weights"] is not None]
    shares = [diagnostics(each if part is None else each[part]).ess_share for each in weights]
    return float(np.mean(shares)) if shares else None


def diagnostics(weights: Mapping[str, Any]) -> WeightDiagnostics:
    """Of a record of weights."""
    return WeightDiagnostics(**{name: value for name, value in weights.items() if not isinstance(value, Mapping)})


def weights_table(at: Mapping[str, Mapping[str, Records]], place: str = "", *, as_written: bool = False) -> Table:
    """What weighting does to the sample, means over cells; if asked, also with the weights as the paper writes them."""
    rows: list[Row] = []
    for label, arms in at.items():
        for arm, records in arms.items():
            if (own := ess_share(records)) is not None:
                largest, spread, clipped = (
                    mean_of(records, "weights", name) for name in ("largest_share", "spread", "clipped")
                )
                written = [percent(ess_share(records, "as_written") or 0.0)] if as_written else []
                shown = [percent(own), percent(largest, 3), count(spread), percent(clipped), *written]
                rows.append([named(arm), *([label] if place else []), *shown])
    heads = [
        "estimator",
        *([place] if place else []),
        "effective sample | (Σw)² / Σw², of the events",
        "largest share | max w / Σw",
    ]
    heads += ["spread | max w / min w", "clipped | of the events"]
    heads += ["effective sample with 1/θ̂ | as the paper writes it"] if as_written else []
    return table(heads, rows, text=2 if place else 1)


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


def epochs_table(arms: Mapping[str, Records]) -> Table:
    """How long each trained, and which epoch was best."""
    rows: list[Row] = []
    for arm, records in arms.items():
        best = [r["training"]["best"]["epoch"] for r in records if r["training"]["best"] is not None]
        which: Cell | str = Cell(f"{min(best)} to {max(best)}", float(np.mean(best))) if best else "–"
        rows.append([named(arm), count(records[0]["training"]["epochs"]), which])
    return table(["estimator", "epochs", "best epoch | over cells"], rows, "Epochs", sortable=False)


def logs_table(drawn: Mapping[str, Records], *, paper: bool) -> Table:
    """What was drawn: means over worlds and replicates."""
    rows: list[Row] = []
    for label, records in drawn.items():
        users, items, events = (mean_of(records, "log", name) for name in ("users", "items", "events"))
        shares = [percent(mean_of(records, "log", name)) for name in ("favourite_taken", "unlearnable")]
        rows.append([label, count(users), count(items), count(events), number_cell(events / users, 1), *shares])
    chosen, unseen = "most relevant chosen | of events", "most relevant unseen | of test cases: not in training"
    heads = ["log", "users", "items | that occur", "events", "mean length", chosen, unseen]
    return table(heads, [*rows, _PAPER_LOG] if paper else rows, sortable=False)


def worlds_table(worlds: Records) -> Table:
    """How personal relevance is, and how unequal exposure, before severity."""
    heads = [
        "world",
        "users",
        "items",
        "steps",
        "favourites | distinct, at the last step",
        "commonest | share of users",
    ]
    rows: list[Row] = []
    for world in worlds:
        about = world["description"]
        sizes = [count(about[name]) for name in ("users", "items", "steps", "favourites")]
        means = (about["relevance"]["mean"], about["relevance"]["over_items"], about["exposure"]["mean"])
        shown = [percent(about["commonest_favourite"]), *(number_cell(mean, 3) for mean in means)]
        rows.append([str(world["world"]), *sizes, *shown])
    heads += ["mean γ", "γ over items | deviation", "mean θ | at the world’s own severity"]
    return table(heads, rows, "The worlds", sortable=False)


def lists_table(results: Results) -> Table:
    """What is recommended, by the ground truth and by the training counts."""
    measures = [measure for measure in results.measures if measure not in results.ranked]
    names = [f"{'true ' if measure.protocol == 'truth' else ''}{measure.name}" for measure in measures]
    rows: Iterable[Row] = (
        [named(arm), *(estimate_cell(results.estimate(arm, m)) for m in measures)] for arm in results.arms
    )
    return table(["estimator", *names], rows)


def settings_table(recipes: Mapping[str, Recipe]) -> Table:
    """How each arm is trained."""
    heads = [
        "estimator",
        "width",
        "blocks",
        "heads",
        "tokens",
        "batch",
        "dropout",
        "mask ρ",
        "epochs",
        "exponent",
        "clip of θ",
    ]
    rows: list[Row] = []
    for arm, recipe in recipes.items():
        network, task, known = recipe.model, recipe.task, ESTIMATORS.options(Variant.of(arm).estimator)
        sizes = (network.width, getattr(network, "blocks", 0), getattr(network, "heads", 0), network.length)
        rest = (task.batch_size, network.dropout, task.mask_probability, recipe.training.epochs)
        defaults = {"exponent": 1.0, "clip": 0.0}
        options = [recipe.estimator.get(name, default) if name in known else "–" for name, default in defaults.items()]
        shown = [each if isinstance(each, str) else plain(float(each)) for each in options]  # a clip may be 5%
        rows.append([named(arm), *(plain(value) for value in (*sizes, *rest)), *shown])
    return table(heads, rows, sortable=False)
