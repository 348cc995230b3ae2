"""How the losses of the demo were trained: validation along the epochs, and what their weights do to the sample.

Shapes: E epochs, N events.
"""

import numpy as np
from numpy.typing import NDArray

from unveil.experiment.outcome import Outcome
from unveil.report import charts, plots
from unveil.report.names import COLOURS, named
from unveil.report.page import Column, Figure, Note, Table, count, number
from unveil.runs.card import WEIGHT_COLUMNS, weight_cells
from unveil.studies.trial import Weights


def learning(outcome: Outcome) -> Figure:
    """Validation along the epochs, averaged over replicates."""
    epochs = outcome.trials[0].arm(outcome.trained[0]).fitted
    assert epochs is not None
    shown = [epoch.epoch for epoch in epochs.epochs if epoch.validation is not None]
    curves = {arm: _validation(outcome, arm) for arm in outcome.trained}
    return Figure(
        "How they learnt",
        charts.curves(
            np.array(shown),
            {named(arm): curve for arm, curve in curves.items()},
            [COLOURS.get(arm) for arm in curves],
            "validation NDCG@10",
            "learning",
        ),
        f"NDCG@10 of the true favourite on validation cases along the epochs, for {', '.join(map(named, curves))}.",
        "On the true favourites of the validation cases. The weights of each loss’s best epoch are the ones judged.",
        Table(
            "Validation NDCG@10 by epoch",
            [Column("epoch", True), *(Column(named(arm), True) for arm in curves)],
            [[count(at), *(number(curve[e], 3) for curve in curves.values())] for e, at in enumerate(shown)],
            sortable=False,
        ),
    )


def _validation(outcome: Outcome, arm: str) -> NDArray[np.float64]:
    runs = [trial.arm(arm).fitted for trial in outcome.trials]
    values = [[next(iter(e.validation.values())) for e in run.epochs if e.validation] for run in runs if run]
    return np.asarray(np.mean(values, axis=0))


def weighted(outcome: Outcome) -> dict[str, Weights]:
    """The weights of the first trial's arms that have them."""
    return {arm.name: arm.weights for arm in outcome.trials[0].arms if arm.weights is not None}


def weights_figure(outcome: Outcome) -> Figure:
    """How unequally the events count."""
    every = weighted(outcome)
    medians = ", ".join(f"{named(arm)} {np.median(each.weight_N):.3g}" for arm, each in every.items())
    return Figure(
        "How much an event counts",
        plots.distributions(
            {named(arm): each.weight_N for arm, each in every.items()},
            "weight 1/θ, logarithmic",
            "weights",
            colours=[COLOURS[arm] for arm in every],
        ),
        f"Histograms of the weights of the training events on a logarithmic axis: {', '.join(map(named, every))}.",
        f"Over the training events; the naive loss gives each of them 1. Medians: {medians}.",
    )


def weights_table(outcome: Outcome) -> Table:
    """The figures that warn."""
    return Table(
        "What weighting leaves of the sample: the training events, weighted by the true propensities",
        [Column("loss"), *WEIGHT_COLUMNS],
        [[named(arm), *weight_cells(each.diagnostics)] for arm, each in weighted(outcome).items()],
        sortable=False,
    )


def warnings(outcome: Outcome) -> list[Note]:
    """A note for each weight that is degenerate."""
    every = weighted(outcome).items()
    return [Note(f"{named(arm)}: {line}", warning=True) for arm, each in every for line in each.diagnostics.warnings()]
