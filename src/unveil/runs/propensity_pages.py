"""Pages of propensities that are learned from impressions: exposure by time of day, and positions. K positions."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.data.interactions import Interactions
from unveil.files import atomic_folder, versions
from unveil.propensity import time_of_day
from unveil.propensity.calibration import quality_table as quality_figures
from unveil.propensity.positions import (
    CHANCE,
    Position,
    PositionCounts,
    bootstrap,
    examination,
    p_equal,
    position_counts,
)
from unveil.propensity.time_of_day_fit import ExposureFit, FittedExposure
from unveil.report.charts import curves, reliability_figure
from unveil.report.page import Cell, Code, Column, Figure, Page, Table, count, number, percent, write_page
from unveil.report.prose import Prose
from unveil.settings import plain

#: Models as people call them, in the order of the tables.
LABELS = {
    "uniform": "uniform",
    "taken, static": "popularity: clicks, static",
    "taken, of late": "popularity: clicks, recent",
    "shown, static": "popularity: impressions, static",
    "shown, of late": "popularity: impressions, recent",
    "learnt": "learned",
}
#: The curves that are drawn: one plot holds no more.
_DRAWN = ("learnt", "shown, of late", "taken, static")


def write_fit(
    fitted: FittedExposure,
    log: Interactions,
    how: ExposureFit,
    folder: Path,
    command: Sequence[str],
    *,
    overwrite: bool = False,
) -> dict[str, Any]:
    """A folder with the model, its quality and a page, whole or not at all; gives what the folder says of itself."""
    about = {
        "command": shlex.join(command),
        "versions": versions(),
        "log": {"fingerprint": log.fingerprint(), "users": len(log.users), "items": len(log.items)},
        "fit": plain(how),
        "days": fitted.days,
        "impressions": fitted.impressions,
        "strangers": fitted.unknown,
        "quality": quality_figures(fitted.quality),
        "curves": {name: asdict(each.calibration) for name, each in fitted.quality.items()},
        "epochs": fitted.epochs,
    }
    with atomic_folder(folder, overwrite=overwrite) as draft:
        written = time_of_day.write(fitted.model, draft, about)
        write_page(fit_page(written), draft / "index.html")
    return written


def fit_page(about: Mapping[str, Any]) -> Page:
    """The whole page, from what the folder says of itself."""
    bins = about["curves"]
    drawn = {LABELS[name]: (bins[name]["predicted"], bins[name]["observed"]) for name in _DRAWN}
    return _fit_prose(about).page(
        {
            "quality": quality_table(about["quality"]),
            "calibration": reliability_figure(drawn, ("predicted θ", "share that was shown"), "shown", "calibration"),
            "bins": _bins(bins["learnt"]),
            "learning": _learning(about["epochs"]),
            "command": Code(about["command"]),
        }
    )


def fit_findings(about: Mapping[str, Any]) -> list[str]:
    """What the figures say, each a paragraph."""
    return _fit_prose(about).paragraphs("findings")


def _fit_prose(about: Mapping[str, Any]) -> Prose:
    quality = about["quality"]
    best = min((name for name in quality if name not in ("learnt", "uniform")), key=lambda n: quality[n]["log_loss"])
    facts = {
        "labels": LABELS,
        "own": quality["learnt"],
        "clicks": quality["taken, static"],
        "best": best,
        "gain": quality[best]["log_loss"] - quality["learnt"]["log_loss"],
    }
    return Prose(["propensity_fit.md.j2"], {**about, **facts})


def quality_table(quality: Mapping[str, Mapping[str, float]]) -> Table:
    """A row for each model."""
    columns = [
        Column("model"),
        Column("AUC", True),
        Column("log-loss", True, "nats per impression"),
        Column("calibration error", True, "of the impressions"),
        Column("mass", True, "predicted / observed"),
    ]
    digits = {"auc": 4, "log_loss": 4, "ece": 3, "mass": 3}
    rows: list[list[Cell | str]] = [
        [LABELS[name], *(number(each[figure], places) for figure, places in digits.items())]
        for name, each in quality.items()
    ]
    return Table("On the held-out days", columns, rows)


def _bins(own: Mapping[str, Sequence[float]]) -> Table:
    columns = [Column("bin"), Column("predicted θ", True), Column("shown", True), Column("impressions expected", True)]
    each = zip(own["predicted"], own["observed"], own["impressions"], strict=True)
    rows: list[list[Cell | str]] = [
        [str(n), Cell(f"{p:.3g}", p), Cell(f"{o:.3g}", o), count(mass)] for n, (p, o, mass) in enumerate(each, 1)
    ]
    return Table("", columns, rows, sortable=False)


def _learning(epochs: Sequence[Mapping[str, float]]) -> Figure:
    at, loss = (np.array([each[name] for each in epochs]) for name in ("epoch", "valid_log_loss"))
    drawing = curves(at, {"learned": loss[0] - loss}, [0], "nats gained, validation days", "learning")
    return Figure("", drawing, f"Log-loss on the validation days by epoch: {', '.join(f'{x:.3f}' for x in loss)}.")


#: Ends of the interval.
ENDS = (0.025, 0.975)


@dataclass(frozen=True)
class Place:
    """A position; `relative` and `examined` are as shares of the position that is examined best."""

    position: int
    shown: int
    clicked: int
    rate: float
    relative: float  # the plain share of clicks, liking and all
    examined: float
    low: float
    high: float


@dataclass(frozen=True)
class Places:
    """Every position, the one that others are compared with, and how much tells of them."""

    places: tuple[Place, ...]
    best: int
    items: int  # that were clicked and shown at several positions
    clicks: int  # on them
    p: float  # of a test that all positions are examined alike


def looked_at(
    log: Interactions, *, deepest: int = 0, add: float = Position.add, draws: int = 400, seed: int = 0
) -> Places:
    """e of a whole log: what was marked as exposed, or all of it."""
    counts = position_counts(log, np.ones(len(log), bool) if log.exposed is None else log.exposed, deepest)
    shown_K, clicked_K = counts.by_position()
    informative = counts.informative().connected(clicked_K > 0)
    e_K = examination(informative, add)
    best = int(e_K.argmax())
    e_DK = bootstrap(informative, add, draws, np.random.default_rng(seed))
    low_K, high_K = np.quantile(e_DK / e_DK[:, [best]], ENDS, axis=0)
    kept_K = np.isin(counts.position_K, informative.position_K)
    places = _places(informative, shown_K[kept_K], clicked_K[kept_K], best, (e_K, low_K, high_K))
    return Places(
        places,
        places[best].position,
        len(np.unique(informative.item_P)),
        int(informative.clicked_P.sum()),
        p_equal(informative),
    )


def _places(
    informative: PositionCounts,
    shown_K: NDArray[np.float64],
    clicked_K: NDArray[np.float64],
    best: int,
    figures: tuple[NDArray[np.float64], ...],
) -> tuple[Place, ...]:
    rate_K = clicked_K / shown_K
    totals = (shown_K.astype(int), clicked_K.astype(int))
    columns = (informative.position_K, *totals, rate_K, rate_K / rate_K[best], *figures)
    return tuple(Place(*row) for row in zip(*(column.tolist() for column in columns), strict=True))


def positions_table(found: Places) -> Table:
    """A row for each position."""
    titles = ("shown", "clicked", "click rate", "clicked, relative", "examined", "95% interval")
    rows: list[list[Cell | str]] = [
        [
            str(each.position),
            count(each.shown),
            count(each.clicked),
            percent(each.rate, 2),
            number(each.relative),
            number(each.examined),
            Cell("" if each.position == found.best else f"{each.low:.2f} to {each.high:.2f}", each.low),
        ]
        for each in found.places
    ]
    columns = [Column("position"), *(Column(title, True) for title in titles)]
    return Table("How often each position is examined", columns, rows, sortable=False)


def positions_findings(found: Places) -> list[str]:
    """Whether anything is certain, what the columns are, and how to use them."""
    return Prose(["positions.md.j2"], {**vars(found), "chance": CHANCE}).paragraphs("findings")
