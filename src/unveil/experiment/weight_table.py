"""The figures of weights, as tables show them."""

from unveil.experiment.report import Cell, Column, count, percent
from unveil.propensity.weights import WeightDiagnostics

WEIGHT_COLUMNS = (
    Column("events", True),
    Column("worth", True, "(Σw)² / Σw²"),
    Column("of events", True),
    Column("largest share", True, "max w / Σw"),
    Column("spread", True, "max w / min w"),
    Column("clipped", True, "of events"),
)


def weight_cells(found: WeightDiagnostics) -> list[Cell]:
    """A cell for each of the columns."""
    return [
        count(found.slots),
        count(found.effective_sample_size),
        percent(found.ess_share),
        percent(found.largest_share, 2),
        count(found.spread),
        percent(found.clipped),
    ]
