"""The page of a learnt exposure: figures beside popularity's, calibration curves, learning."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from unveil.experiment.exposure.words import NAMES, reading
from unveil.report import charts
from unveil.report.page import Cell, Code, Column, Figure, Figures, KeyFigure, Page, Section, Table, Text, count, number

TITLE = "How likely was an item to be shown?"
#: The curves that are drawn: one picture holds no more.
_DRAWN = ("learnt", "shown, of late", "taken, static")


def page(about: Mapping[str, Any], command: str) -> Page:
    """The whole page, from what the folder says of itself."""
    first, *rest = reading(about)
    own = about["quality"]["learnt"]
    return Page(
        TITLE,
        first,
        [
            Section("What the figures say", [Text(each) for each in rest]),
            Section("Beside popularity", [table(about["quality"])]),
            Section("Is what is promised kept?", [Figures([_curve(about["curves"])]), _bins(about["curves"])]),
            Section("How it was made", [Text(_days(about)), Figures([_learning(about["epochs"])]), Code(command)]),
        ],
        [
            KeyFigure(f"{own['auc']:.3f}", "AUC on held-out days"),
            KeyFigure(f"{own['log_loss']:.3f}", "log-loss, nats an impression"),
            KeyFigure(f"{own['ece']:.1%}", "calibration error, of what was shown"),
        ],
    )


def table(quality: Mapping[str, Mapping[str, float]]) -> Table:
    """A row for each model."""
    columns = [
        Column("model"),
        Column("AUC", True),
        Column("log-loss", True, "nats an impression"),
        Column("calibration error", True, "of what was shown"),
        Column("mass", True, "promised / shown"),
    ]
    rows: list[list[Cell | str]] = [
        [
            NAMES[name],
            number(each["auc"], 4),
            number(each["log_loss"], 4),
            number(each["ece"], 3),
            number(each["mass"], 3),
        ]
        for name, each in quality.items()
    ]
    return Table("On the held-out days", columns, rows)


def _curve(calibration: Mapping[str, Mapping[str, Sequence[float]]]) -> Figure:
    drawn = {NAMES[name]: calibration[name] for name in _DRAWN}
    told = "; ".join(
        f"{name}: {', '.join(f'{p:.2g} → {o:.2g}' for p, o in zip(each['predicted'], each['observed'], strict=True))}"
        for name, each in drawn.items()
    )
    return Figure(
        "Calibration on held-out days",
        charts.reliability(
            {name: (each["predicted"], each["observed"]) for name, each in drawn.items()},
            ("predicted θ", "share that was shown"),
            "shown",
            "calibration",
        ),
        f"Share of pairs that were shown against what was predicted, bin by bin. {told}.",
        "Bins of equal predicted mass. On the dashed line what is promised is kept; above it more was shown.",
    )


def _bins(calibration: Mapping[str, Mapping[str, Sequence[float]]]) -> Table:
    own = calibration["learnt"]
    columns = [Column("bin"), Column("predicted θ", True), Column("shown", True), Column("impressions expected", True)]
    each = zip(own["predicted"], own["observed"], own["impressions"], strict=True)
    rows: list[list[Cell | str]] = [
        [str(n), Cell(f"{p:.3g}", p), Cell(f"{o:.3g}", o), count(mass)] for n, (p, o, mass) in enumerate(each, 1)
    ]
    return Table("The learnt exposure, bin by bin", columns, rows, sortable=False)


def _days(about: Mapping[str, Any]) -> str:
    days, shown = about["days"], about["impressions"]
    return (
        f"{days['learn']} days ({shown['learn']:,} impressions) to learn from, {days['valid']} ({shown['valid']:,}) to "
        f"stop and calibrate by, {days['test']} ({shown['test']:,}) to judge on; days are UTC, and the first ones "
        f"only serve to look back on. ψ = centre + slope · log share of late + slope · log share over a longer time "
        f"+ Σ_k P_sk Q_ik W_hk, with (centre, slopes) = {', '.join(f'{each:.3f}' for each in about['line'])}; "
        f"calibrated by a rising curve through the validation days (isotonic).".replace("-", "−")
    )


def _learning(epochs: Sequence[Mapping[str, float]]) -> Figure:
    at, loss = (np.array([each[name] for each in epochs]) for name in ("epoch", "valid_log_loss"))
    return Figure(
        "How it learnt",
        charts.curves(at, {"learnt": loss[0] - loss}, [0], "nats gained, validation days", "learning"),
        f"Log-loss on the validation days after each epoch: {', '.join(f'{value:.3f}' for value in loss)}.",
        "Nats an impression below what is shown of late, from which it starts. The best epoch is kept.",
    )
