"""Parts of a page that all questions share: arms beside the paper, lists, weights, learning, worlds and logs."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from unveil.experiment.outcome import Estimate
from unveil.experiment.reproduce.results import Figure as Judged
from unveil.experiment.reproduce.results import Results
from unveil.experiment.reproduce.words import gap_text, interval
from unveil.propensity.weights import WeightDiagnostics
from unveil.report import charts
from unveil.report.names import COLOURS, named, signed
from unveil.report.page import Cell, Column, Figure, Note, Table, count, number, percent


def figure_cell(found: Estimate, mark: str = "") -> Cell:
    """0.607* [0.601, 0.613]."""
    return Cell(f"{found.mean:.3f}{mark}{interval(found)}", found.mean)


def deviation(value: float) -> str:
    """+1.2%."""
    return f"{signed(100 * value, 1)}%"


def gap_cell(gap: Estimate | None) -> Cell | str:
    """25% [20%, 30%], or a dash where there is no gap."""
    return "–" if gap is None else Cell(gap_text(gap), gap.mean)


def mean_of(results: Results, severity: float, arm: str, part: str, name: str) -> float | None:
    """A number of the cells of an arm, averaged; None where they have none."""
    values = [cell[part][name] for cell in results.every(severity, arm) if cell[part] is not None]
    return float(np.mean(values)) if values else None


def ess_share(results: Results, severity: float, arm: str) -> float | None:
    """The effective sample size of an arm's weights as a share of the training events, averaged over cells."""
    cells = [cell["weights"] for cell in results.every(severity, arm)]
    shares = [WeightDiagnostics(**weights).ess_share for weights in cells if weights is not None]
    return float(np.mean(shares)) if shares else None


def weights_table(results: Results) -> Table:
    """What weighting does to the sample, at each severity."""
    rows: list[list[Cell | str]] = [
        [
            named(arm),
            Cell(f"{severity:g}", severity),
            percent(found),
            percent(_weight(results, severity, arm, "largest_share"), 2),
            count(_weight(results, severity, arm, "spread")),
            percent(_weight(results, severity, arm, "clipped")),
        ]
        for severity in results.severities
        for arm in results.trained
        if (found := ess_share(results, severity, arm)) is not None
    ]
    columns = [
        Column("estimator"),
        Column("severity p", True),
        Column("effective sample", True, "(Σw)² / Σw², of the events"),
        Column("largest share", True, "max w / Σw"),
        Column("spread", True, "max w / min w"),
        Column("clipped", True, "of the events"),
    ]
    return Table("What weighting leaves of the sample: training events, means over cells", columns, rows)


def _weight(results: Results, severity: float, arm: str, name: str) -> float:
    value = mean_of(results, severity, arm, "weights", name)
    assert value is not None
    return value


def warnings(results: Results) -> list[Note]:
    """A note for each estimator whose weights are degenerate, at the severity where that is seen first."""
    notes: dict[str, Note] = {}
    for severity in results.severities:
        for arm in results.trained:
            weights = results.cell(severity, arm)["weights"]
            told = [] if weights is None else WeightDiagnostics(**weights).warnings()
            if told and arm not in notes:
                notes[arm] = Note(f"{named(arm)} at severity {severity:g}: {' '.join(told)}", warning=True)
    return list(notes.values())


def learning(results: Results, severity: float) -> Figure:
    """Validation along the epochs, averaged over cells; arms may be validated at different epochs."""
    curves = {arm: _curve(results, severity, arm) for arm in results.trained}
    epochs = sorted({epoch for curve in curves.values() for epoch in curve})
    value = {named(arm): np.array([curve.get(e, np.nan) for e in epochs]) for arm, curve in curves.items()}
    return Figure(
        f"How they learnt, at severity {severity:g}",
        charts.curves(
            np.array(epochs),
            value,
            [COLOURS.get(arm) for arm in curves],
            "validation NDCG@10",
            f"learning-{severity:g}",
        ),
        f"Validation NDCG@10 along the epochs: {', '.join(map(named, curves))}.",
        "On the validation cases, mean over cells. The weights of each training’s best epoch are the ones judged.",
    )


def _curve(results: Results, severity: float, arm: str) -> dict[int, float]:
    runs = [dict(cell["training"]["validation"]) for cell in results.every(severity, arm)]
    shared = set.intersection(*(set(run) for run in runs))
    return {epoch: float(np.mean([run[epoch] for run in runs])) for epoch in sorted(shared)}


def epochs_table(results: Results, severity: float) -> Table:
    """How long each trained, and which epoch was best."""
    rows: list[list[Cell | str]] = []
    for arm in results.trained:
        cells = [cell["training"] for cell in results.every(severity, arm)]
        best = [cell["best"]["epoch"] for cell in cells if cell["best"] is not None]
        told = "–" if not best else Cell(f"{min(best)} to {max(best)}", float(np.mean(best)))
        rows.append([named(arm), count(cells[0]["epochs"]), told])
    columns = [Column("estimator"), Column("epochs", True), Column("best epoch", True, "over cells")]
    return Table("Epochs", columns, rows, sortable=False)


def logs_table(results: Results, *, paper: bool) -> Table:
    """What was drawn, at each severity: means over worlds and replicates."""
    arm = results.arms[0]
    names = ("users", "items", "events", "favourite_taken", "unlearnable")
    rows: list[list[Cell | str]] = []
    for severity in results.severities:
        users, items, events, taken, hidden = (mean_of(results, severity, arm, "log", name) or 0.0 for name in names)
        length = number(events / users, 1)
        rows.append(
            [f"p = {severity:g}", count(users), count(items), count(events), length, percent(taken), percent(hidden)]
        )
    if paper:
        rows.append(["the paper’s sample", count(943), count(229), count(94_104), number(99.79, 1), "–", "–"])
    columns = [
        Column("log"),
        Column("users", True),
        Column("items", True, "that occur"),
        Column("events", True),
        Column("mean length", True),
        Column("favourite taken", True, "of events"),
        Column("favourite unseen", True, "of test cases: never in training"),
    ]
    return Table("The logs that were drawn: means over worlds and replicates", columns, rows, sortable=False)


def worlds_table(worlds: list[dict[str, Any]]) -> Table:
    """How personal relevance is, and how unequal exposure, before severity."""
    columns = [
        Column("world"),
        Column("users", True),
        Column("items", True),
        Column("steps", True),
        Column("favourites", True, "distinct, at the last step"),
        Column("commonest", True, "share of users"),
        Column("mean γ", True),
        Column("γ over items", True, "deviation"),
        Column("mean θ", True, "at the world’s own severity"),
    ]
    return Table("The worlds", columns, [_world(world) for world in worlds], sortable=False)


def _world(world: Mapping[str, Any]) -> list[Cell | str]:
    about = world["description"]
    return [
        str(world["world"]),
        count(about["users"]),
        count(about["items"]),
        count(about["steps"]),
        count(about["favourites"]),
        percent(about["commonest_favourite"]),
        number(about["relevance"]["mean"], 3),
        number(about["relevance"]["over_items"], 3),
        number(about["exposure"]["mean"], 3),
    ]


def lists_table(results: Results, severity: float) -> Table:
    """What is recommended, as the world and the training counts see it."""
    figures = results.list_figures
    return Table(
        f"The ten items recommended, at severity {severity:g}: means and 95% intervals",
        [Column("estimator"), *(Column(_short(figure), True) for figure in figures)],
        [
            [named(arm), *(figure_cell(results.estimate(severity, arm, figure)) for figure in figures)]
            for arm in results.arms
        ],
    )


def _short(figure: Judged) -> str:
    return f"{'true ' if figure.protocol == 'truth' else ''}{figure.name}"
