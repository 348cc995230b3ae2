"""The control arm on the page: what each ranking pays for avoiding popular items."""

import numpy as np

from unveil.experiment.outcome import BASE, STANDARD
from unveil.experiment.reproduce import plots
from unveil.experiment.reproduce.results import Figure as Judged
from unveil.experiment.rq4.control import CONTROL
from unveil.experiment.rq4.results import AS_IT_IS, RealResults
from unveil.experiment.rq4.tables import protocols
from unveil.experiment.rq4.words import control
from unveil.report.names import against, signed
from unveil.report.page import Cell, Column, Figure, Figures, Section, Table, Text


def control_section(results: RealResults) -> Section:
    """Validation along λ, and what the chosen λ gives on the test cases."""
    return Section(
        "What avoiding popular items is worth", [Text(control(results)), Figures([_along(results)]), _table(results)]
    )


def _along(results: RealResults) -> Figure:
    """Each ranking's validation NDCG@10 as a multiple of the naive model's."""
    cells = results.every(AS_IT_IS, CONTROL)
    strengths = cells[0]["strengths"]
    curves = {}
    for place, protocol in enumerate(protocols(results)):
        ratio_RS = np.array([np.array(cell["along"][protocol]) / (cell["along"][protocol][0] or 1) for cell in cells])
        ends = (ratio_RS.mean(0).tolist(), ratio_RS.min(0).tolist(), ratio_RS.max(0).tolist())
        curves[against(protocol)] = plots.Band(*ends, place)
    told = "; ".join(f"{name} {', '.join(f'{value:.2f}' for value in band.mean)}" for name, band in curves.items())
    return Figure(
        "NDCG@10 along λ, as a multiple of the naive model’s",
        plots.bands(strengths, curves, ("strength λ", "× naive"), "control"),
        f"Validation NDCG@10 at λ = {', '.join(f'{each:g}' for each in strengths)}: {told}.",
        "On the validation cases: mean and range over replicates. Above 1 a ranking rewards avoiding popular items.",
    )


def _table(results: RealResults) -> Table:
    columns = [
        Column("ranked against"),
        Column("λ", True, "by replicate"),
        Column("naive", True),
        Column("with λ", True),
        Column("difference", True),
    ]
    return Table("NDCG@10 on the test cases", columns, [_row(results, name) for name in protocols(results)])


def _row(results: RealResults, protocol: str) -> list[Cell | str]:
    figure = Judged(STANDARD, protocol, "NDCG", 10)
    strengths = [cell["strength"][protocol] for cell in results.every(AS_IT_IS, CONTROL)]
    naive, own = (results.estimate(AS_IT_IS, arm, figure).mean for arm in (BASE, CONTROL))
    return [
        against(protocol),
        Cell(", ".join(f"{each:g}" for each in strengths), float(np.mean(strengths))),
        Cell(f"{naive:.4f}", naive),
        Cell(f"{own:.4f}", own),
        Cell(signed(own - naive, 4), own - naive),
    ]
