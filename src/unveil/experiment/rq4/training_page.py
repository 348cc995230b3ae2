"""Training and weights on the page of RQ4."""

import numpy as np

from unveil.experiment.outcome import BASE
from unveil.experiment.rq4.control import CONTROL
from unveil.experiment.rq4.results import AS_IT_IS, RealResults
from unveil.experiment.rq4.words import diagnostics, ess
from unveil.report import charts
from unveil.report.names import COLOURS, named
from unveil.report.page import Block, Cell, Column, Figure, Figures, Note, Section, Table, Text, count, percent

_EXPONENTS = (
    "The paper weights by 1/θ̂; the authors’ code weights by θ̂ to the power of −exponent, and the exponents are in no "
    "text. The last column says what would be left of the sample without them."
)


def trained(results: RealResults) -> list[str]:
    """The arms with a training of their own: the control shares the naive one’s."""
    return [arm for arm in results.trained if arm != CONTROL]


def weights_section(results: RealResults) -> Section:
    """What weighting does to the sample."""
    notes: list[Block] = []
    for arm in trained(results):
        weights = results.cell(AS_IT_IS, arm)["weights"]
        told = [] if weights is None else diagnostics(weights).warnings()
        notes += [Note(f"{named(arm)}: {' '.join(told)}", warning=True)] if told else []
    return Section("What weighting leaves of the sample", [Text(_EXPONENTS), *notes, _weights(results)])


def _weights(results: RealResults) -> Table:
    columns = [
        Column("estimator"),
        Column("effective sample", True, "(Σw)² / Σw², of the events"),
        Column("largest share", True, "max w / Σw"),
        Column("spread", True, "max w / min w"),
        Column("clipped", True, "of the events"),
        Column("effective sample with 1/θ̂", True, "as the paper writes it"),
    ]
    rows: list[list[Cell | str]] = []
    for arm in trained(results):
        own, as_written = ess(results, arm), ess(results, arm, "as_written")
        if own is not None and as_written is not None:
            found = diagnostics(results.cell(AS_IT_IS, arm)["weights"])
            shares = [percent(found.largest_share, 3), count(found.spread), percent(found.clipped)]
            rows.append([named(arm), percent(own), *shares, percent(as_written)])
    return Table("Weights of the training events", columns, rows, sortable=False)


def training_section(results: RealResults) -> Section:
    """Validation along the epochs, and the epochs that were kept."""
    return Section("How they were trained", [Figures([_learning(results)]), _epochs(results)])


def _learning(results: RealResults) -> Figure:
    curves = {arm: _curve(results, arm) for arm in trained(results)}
    epochs = sorted({epoch for curve in curves.values() for epoch in curve})
    value = {named(arm): np.array([curve.get(epoch, np.nan) for epoch in epochs]) for arm, curve in curves.items()}
    return Figure(
        "How they learnt",
        charts.curves(np.array(epochs), value, [COLOURS.get(arm) for arm in curves], "validation NDCG@10", "learning"),
        f"Validation NDCG@10 along the epochs: {', '.join(map(named, curves))}.",
        "Mean over replicates. The weights of each training’s best epoch are the ones judged.",
    )


def _curve(results: RealResults, arm: str) -> dict[int, float]:
    runs = [dict(cell["training"]["validation"]) for cell in results.every(AS_IT_IS, arm)]
    shared = set.intersection(*(set(run) for run in runs))
    return {epoch: float(np.mean([run[epoch] for run in runs])) for epoch in sorted(shared)}


def _epochs(results: RealResults) -> Table:
    rows: list[list[Cell | str]] = []
    for arm in trained(results):
        cells = [cell["training"] for cell in results.every(AS_IT_IS, arm)]
        best = [cell["best"]["epoch"] for cell in cells if cell["best"] is not None]
        told = "–" if not best else Cell(f"{min(best)} to {max(best)}", float(np.mean(best)))
        seconds = float(np.mean([cell["seconds"] for cell in results.every(AS_IT_IS, arm)]))
        rows.append([named(arm), count(max(cell["epochs"] for cell in cells)), told, count(seconds)])
    columns = [
        Column("estimator"),
        Column("epochs", True),
        Column("best epoch", True, "over replicates"),
        Column("seconds", True, f"of one core, judging included; {named(BASE)} with the control"),
    ]
    return Table("Epochs", columns, rows, sortable=False)
