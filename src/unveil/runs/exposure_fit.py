"""What the figures of a learnt exposure say, in sentences chosen by them."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from unveil.data.interactions import Interactions
from unveil.files import atomic_folder, versions
from unveil.propensity import time_of_day
from unveil.propensity.calibration import table
from unveil.propensity.time_of_day_fit import ExposureFit, Fitted
from unveil.report import charts
from unveil.report.names import share
from unveil.report.page import (
    Cell,
    Code,
    Column,
    Figure,
    Figures,
    KeyFigure,
    Page,
    Section,
    Table,
    Text,
    count,
    number,
    write_page,
)
from unveil.settings import plain

#: Models as people call them, in the order of the tables.
NAMES = {
    "uniform": "all items alike",
    "taken, static": "popularity: taken, static",
    "taken, of late": "popularity: taken, of late",
    "shown, static": "popularity: shown, static",
    "shown, of late": "popularity: shown, of late",
    "learnt": "learnt",
}
WHAT = (
    "θ is the probability that an item is what a user is shown at an impression of that day and hour: over all items "
    "it sums to about 1, as popularity does. It is learnt from what was shown, taken or not; whether it was taken "
    "plays no part, for that is relevance."
)
CAUTION = (
    "Held-out impressions are those of the last days. Each is paired with the item that was shown and with items drawn "
    "at random, which stand for all that were not: log-loss, calibration error and mass are those of all pairs. Shares "
    "of late look back from each day only, on the held-out days too."
)


def reading(about: Mapping[str, Any]) -> list[str]:
    """Ranking and loss beside popularity, calibration, and what strangers get."""
    return [_loss(about["quality"]), _calibration(about["quality"]), WHAT, _strangers(about), CAUTION]


def _loss(quality: Mapping[str, Mapping[str, float]]) -> str:
    own = quality["learnt"]
    rivals = [name for name in quality if name not in ("learnt", "uniform")]
    best = min(rivals, key=lambda name: quality[name]["log_loss"])
    gain = quality[best]["log_loss"] - own["log_loss"]
    told = f"{abs(gain):.3f} nats an impression {'below' if gain > 0 else 'above'} the best {NAMES[best]}"
    return (
        f"On held-out days the learnt exposure has an AUC of {own['auc']:.3f} and a log-loss of {own['log_loss']:.3f}: "
        f"{told} ({quality[best]['auc']:.3f} and {quality[best]['log_loss']:.3f}). Popularity counted in what users "
        f"took, as it stands in for exposure where no impressions are known, has {quality['taken, static']['auc']:.3f} "
        f"and {quality['taken, static']['log_loss']:.3f}."
    )


def _calibration(quality: Mapping[str, Mapping[str, float]]) -> str:
    told = ", ".join(f"{NAMES[name]} {share(each['ece'])}" for name, each in quality.items() if name != "uniform")
    return (
        f"Expected calibration error, as a share of what was shown: {told}. In all, the learnt exposure promises "
        f"{quality['learnt']['mass']:.2f} impressions for each there was."
    )


def _strangers(about: Mapping[str, Any]) -> str:
    found = about["strangers"]
    return (
        f"{found['users']:.0%} of the held-out impressions are of users, {found['items']:.0%} of items, that the "
        f"fitted days do not have. To them, and to ids that the log does not have at all, θ is what "
        f"popularity alone gives."
    )


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
            Section("Beside popularity", [quality_table(about["quality"])]),
            Section("Is what is promised kept?", [Figures([_curve(about["curves"])]), _bins(about["curves"])]),
            Section("How it was made", [Text(_days(about)), Figures([_learning(about["epochs"])]), Code(command)]),
        ],
        [
            KeyFigure(f"{own['auc']:.3f}", "AUC on held-out days"),
            KeyFigure(f"{own['log_loss']:.3f}", "log-loss, nats an impression"),
            KeyFigure(f"{own['ece']:.1%}", "calibration error, of what was shown"),
        ],
    )


def quality_table(quality: Mapping[str, Mapping[str, float]]) -> Table:
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


def write(
    fitted: Fitted,
    log: Interactions,
    how: ExposureFit,
    folder: Path,
    command: Sequence[str],
    *,
    overwrite: bool = False,
) -> dict[str, Any]:
    """The folder, whole or not at all; what it says of itself is given back."""
    told = shlex.join(command)
    about = {
        "command": told,
        "versions": versions(),
        "log": {"fingerprint": log.fingerprint(), "users": len(log.users), "items": len(log.items)},
        "fit": plain(how),
        "days": fitted.days,
        "impressions": fitted.impressions,
        "strangers": fitted.strangers,
        "quality": table(fitted.quality),
        "curves": {name: asdict(each.calibration) for name, each in fitted.quality.items()},
        "epochs": fitted.epochs,
    }
    with atomic_folder(folder, overwrite=overwrite) as draft:
        time_of_day.write(fitted.model, draft, about)
        about = time_of_day.about(draft)
        write_page(page(about, told), draft / "index.html")
    return about
