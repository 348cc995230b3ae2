"""Pages of propensities that are learned from impressions: exposure by time of day, and positions. K positions."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from unveil.data.interactions import Interactions
from unveil.files import atomic_folder, versions
from unveil.propensity import time_of_day
from unveil.propensity.positions import CHANCE, Position, bootstrap, examination, p_equal, position_counts
from unveil.propensity.time_of_day_fit import ExposureFit, FittedExposure
from unveil.report.charts import curves, reliability_figure
from unveil.report.page import Code, Page, write_page
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
#: Ends of the interval.
ENDS = (0.025, 0.975)


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
    quality = {name: asdict(each) for name, each in fitted.quality.items()}
    about = {
        "command": shlex.join(command),
        "versions": versions(),
        "log": {"fingerprint": log.fingerprint(), "users": len(log.users), "items": len(log.items)},
        "fit": plain(how),
        "days": fitted.days,
        "impressions": fitted.impressions,
        "strangers": fitted.unknown,
        "curves": {name: each.pop("calibration") for name, each in quality.items()},
        "quality": quality,
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
    at, loss = (np.array([each[name] for each in about["epochs"]]) for name in ("epoch", "valid_log_loss"))
    learning = curves(at, {"learned": loss[0] - loss}, [0], "nats gained, validation days", "learning")
    by_epoch = f"Log-loss on the validation days by epoch: {', '.join(f'{x:.3f}' for x in loss)}."
    return fit_prose(about).page(
        {
            "calibration": reliability_figure(drawn, ("predicted θ", "share that was shown"), "shown", "calibration"),
            "learning": replace(learning, alt=by_epoch),
            "command": Code(about["command"]),
        }
    )


def fit_prose(about: Mapping[str, Any]) -> Prose:
    """The table and what its figures say."""
    quality = about["quality"]
    best = min((name for name in quality if name not in ("learnt", "uniform")), key=lambda n: quality[n]["log_loss"])
    facts = {
        "labels": LABELS,
        "own": quality["learnt"],
        "bins": about["curves"]["learnt"],
        "clicks": quality["taken, static"],
        "best": best,
        "gain": quality[best]["log_loss"] - quality["learnt"]["log_loss"],
    }
    return Prose(["propensity_fit.md.j2"], {**about, **facts})


def examine_positions(
    log: Interactions, *, deepest: int = 0, add: float = Position.add, draws: int = 400, seed: int = 0
) -> dict[str, Any]:
    """How often each position of a log is examined (e), from what was marked as exposed, or all of it.

    Of each of the `places`, `relative` (the plain share of clicks, relevance and all) and `examined`, with its interval
    from `low` to `high`, are shares of the position that is examined `best`. `clicks` were on the `items` that were
    clicked and shown at several positions; `p` is of a test that all positions are examined alike.
    """
    counts = position_counts(log, np.ones(len(log), bool) if log.exposed is None else log.exposed, deepest)
    shown_K, clicked_K = counts.by_position()
    informative = counts.informative().connected(clicked_K > 0)
    kept_K = np.isin(counts.position_K, informative.position_K)
    rate_K = (clicked_K / shown_K)[kept_K]
    e_K = examination(informative, add)
    best = int(e_K.argmax())
    e_DK = bootstrap(informative, add, draws, np.random.default_rng(seed))
    low_K, high_K = np.quantile(e_DK / e_DK[:, [best]], ENDS, axis=0)
    columns = {
        "position": informative.position_K,
        "shown": shown_K[kept_K].astype(int),
        "clicked": clicked_K[kept_K].astype(int),
        "rate": rate_K,
        "relative": rate_K / rate_K[best],
        "examined": e_K,
        "low": low_K,
        "high": high_K,
    }
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    return {
        "places": [dict(zip(columns, row, strict=True)) for row in rows],
        "best": int(informative.position_K[best]),
        "items": len(np.unique(informative.item_P)),
        "clicks": int(informative.clicked_P.sum()),
        "p": p_equal(informative),
    }


def positions_prose(found: Mapping[str, Any]) -> Prose:
    """The table; whether anything is certain, what the columns are, and how to use them."""
    return Prose(["positions.md.j2"], {**found, "chance": CHANCE})
