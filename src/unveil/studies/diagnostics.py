"""What the cells of a study say beside their metrics: weights, training, recommendations, worlds and drawn logs."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from unveil.propensity.weights import WeightDiagnostics
from unveil.report.charts import curves
from unveil.report.names import COLOURS, named
from unveil.report.page import Cell, Column, Figure, Figures, Note, Table, count, number, percent, plain
from unveil.studies.engine import Answer
from unveil.studies.results import Results
from unveil.studies.tables import estimate_cell
from unveil.training.recipe import Recipe

Records = Sequence[Mapping[str, Any]]
_PAPER_LOG: list[Cell | str] = ["the paper’s sample", count(943), count(229), count(94_104), number(99.79, 1), "–", "–"]


def diagnostic_tables(answer: Answer) -> dict[str, Any]:
    """The tables that all semi-synthetic studies show."""
    study, results = answer.study, answer.results
    fitted = answer.source.name != "builtin"
    return {
        "epochs": epochs_table(_by_arm(answer, study.severities[0])),
        "weights": weights_table(answer),
        "warnings": weight_warnings(answer),
        "recommendations": lists_table(results.at(severity=study.severities[0])),
        "worlds": worlds_table([answer.records[f"w{number}"] for number in range(study.worlds)]),
        "logs": logs_table({f"p = {p:g}": answer.where(severity=p) for p in study.severities}, paper=fitted),
        "settings": settings_table({arm: study.recipe(arm, 0) for arm in results.trained}),
    }


def diagnostic_figures(answer: Answer) -> dict[str, Any]:
    """Training curves at each severity."""
    each = {f"{p:g}": _by_arm(answer, p) for p in answer.study.severities}
    return {"learning": Figures([learning_figure(arms, f"severity {p}", f"learning-{p}") for p, arms in each.items()])}


def _by_arm(answer: Answer, severity: float) -> dict[str, Records]:
    return {arm: answer.where(estimator=arm, severity=severity) for arm in answer.results.trained}


def mean_of(records: Records, part: str, name: str) -> float | None:
    """A number of the records, averaged; None where they have none."""
    values = [record[part][name] for record in records if record[part] is not None]
    return float(np.mean(values)) if values else None


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


def weights_table(answer: Answer) -> Table:
    """What weighting does to the sample, at each severity."""
    rows: list[list[Cell | str]] = []
    for severity in answer.study.severities:
        for arm in answer.results.trained:
            records = answer.where(severity=severity, estimator=arm)
            if (share := ess_share(records)) is not None:
                largest, spread, clipped = (
                    mean_of(records, "weights", name) or 0.0 for name in ("largest_share", "spread", "clipped")
                )
                own = [percent(share), percent(largest, 2), count(spread), percent(clipped)]
                rows.append([named(arm), Cell(f"{severity:g}", severity), *own])
    columns = [
        Column("estimator"),
        Column("severity p", True),
        Column("effective sample", True, "(Σw)² / Σw², of the events"),
        Column("largest share", True, "max w / Σw"),
        Column("spread", True, "max w / min w"),
        Column("clipped", True, "of the events"),
    ]
    return Table("", columns, rows)


def weight_warnings(answer: Answer) -> list[Note]:
    """A note for each estimator whose weights are degenerate, at the severity where that is seen first."""
    notes: dict[str, Note] = {}
    for severity in answer.study.severities:
        for arm in answer.results.trained:
            weights = answer.where(severity=severity, estimator=arm)[0]["weights"]
            found = [] if weights is None else diagnostics(weights).warnings()
            if found and arm not in notes:
                notes[arm] = Note(f"{named(arm)} at severity {severity:g}: {' '.join(found)}", warning=True)
    return list(notes.values())


def learning_figure(arms: Mapping[str, Records], where: str, slug: str) -> Figure:
    """Validation along the epochs, averaged over cells; arms may be validated at different epochs."""
    runs = {arm: [dict(record["training"]["validation"]) for record in records] for arm, records in arms.items()}
    shared = {arm: set.intersection(*(set(run) for run in every)) for arm, every in runs.items()}
    epochs = sorted(set().union(*shared.values()))
    value = {
        named(arm): np.array([np.mean([run[e] for run in every]) if e in shared[arm] else np.nan for e in epochs])
        for arm, every in runs.items()
    }
    colours = [COLOURS.get(arm) for arm in arms]
    return Figure(
        f"Training curves at {where}",
        curves(np.array(epochs), value, colours, "validation NDCG@10", slug),
        f"Validation NDCG@10 along the epochs: {', '.join(value)}.",
        "On the validation cases, mean over cells. The weights of each training’s best epoch are evaluated.",
    )


def epochs_table(arms: Mapping[str, Records]) -> Table:
    """How long each trained, and which epoch was best."""
    rows: list[list[Cell | str]] = []
    for arm, records in arms.items():
        best = [r["training"]["best"]["epoch"] for r in records if r["training"]["best"] is not None]
        which: Cell | str = Cell(f"{min(best)} to {max(best)}", float(np.mean(best))) if best else "–"
        rows.append([named(arm), count(records[0]["training"]["epochs"]), which])
    columns = [Column("estimator"), Column("epochs", True), Column("best epoch", True, "over cells")]
    return Table("Epochs", columns, rows, sortable=False)


def logs_table(drawn: Mapping[str, Records], *, paper: bool) -> Table:
    """What was drawn: means over worlds and replicates."""
    names = ("users", "items", "events", "favourite_taken", "unlearnable")
    rows: list[list[Cell | str]] = []
    for label, records in drawn.items():
        users, items, events, best, hidden = (mean_of(records, "log", name) or 0.0 for name in names)
        sizes = [count(users), count(items), count(events), number(events / users, 1)]
        rows.append([label, *sizes, percent(best), percent(hidden)])
    columns = [
        Column("log"),
        Column("users", True),
        Column("items", True, "that occur"),
        Column("events", True),
        Column("mean length", True),
        Column("most relevant chosen", True, "of events"),
        Column("most relevant unseen", True, "of test cases: not in training"),
    ]
    return Table("", columns, [*rows, _PAPER_LOG] if paper else rows, sortable=False)


def worlds_table(worlds: Records) -> Table:
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
    rows: list[list[Cell | str]] = []
    for world in worlds:
        about = world["description"]
        sizes = [count(about[name]) for name in ("users", "items", "steps", "favourites")]
        gamma = [number(about["relevance"][name], 3) for name in ("mean", "over_items")]
        shares = [percent(about["commonest_favourite"]), *gamma, number(about["exposure"]["mean"], 3)]
        rows.append([str(world["world"]), *sizes, *shares])
    return Table("The worlds", columns, rows, sortable=False)


def lists_table(results: Results) -> Table:
    """What is recommended, by the ground truth and by the training counts."""
    measures = [measure for measure in results.measures if measure not in results.ranked]
    names = [f"{'true ' if measure.protocol == 'truth' else ''}{measure.name}" for measure in measures]
    rows: list[list[Cell | str]] = [
        [named(arm), *(estimate_cell(results.estimate(arm, m)) for m in measures)] for arm in results.arms
    ]
    return Table("", [Column("estimator"), *(Column(name, True) for name in names)], rows)


def settings_table(recipes: Mapping[str, Recipe]) -> Table:
    """How each arm is trained."""
    heads = ("width", "blocks", "heads", "batch", "dropout", "mask ρ", "epochs", "clip of θ")
    rows: list[list[Cell | str]] = []
    for arm, recipe in recipes.items():
        network, task = recipe.model, recipe.task
        sizes = (network.width, getattr(network, "blocks", 0), getattr(network, "heads", 0), task.batch_size)
        rest = (network.dropout, task.mask_probability, recipe.training.epochs)
        clip = recipe.estimator.get("clip")  # a number, or a share of the events as it is written
        shown: Cell | str = "–" if clip is None else clip if isinstance(clip, str) else plain(float(clip))
        rows.append([named(arm), *(plain(value) for value in (*sizes, *rest)), shown])
    return Table("", [Column("estimator"), *(Column(head, True) for head in heads)], rows, sortable=False)
