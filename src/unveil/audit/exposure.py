"""What a log records about exposure, and how many equally weighted events IPS and ITPS weights would leave.

Shapes: N rows, M slots, V items, P positions.
"""

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from unveil.data.interactions import Interactions, Sequences
from unveil.estimators.base import events
from unveil.propensity.base import PropensityModel
from unveil.propensity.popularity import StaticPopularity, TemporalPopularity
from unveil.propensity.weights import diagnose, inverse

PLACES = 10  # positions that are reported one by one
RARE = 0.01  # a propensity below this has a weight above 100: poor overlap


@dataclass(frozen=True)
class Impressions:
    """Impressions, clicked or not."""

    rows: int
    clicked: float  # share of the rows
    items: int  # that were shown
    never_clicked: float  # share of them that nobody clicked
    correlation: float  # Spearman's, over items shown: impressions and clicks
    explained: float  # share of the variance of log popularity that log exposure explains, over items clicked
    by_position: tuple[float, ...] | None  # click rate at each of the first positions; None: no positions


@dataclass(frozen=True)
class Exposure:
    """Which of the columns that tell of exposure or of relevance the log has, and what they say."""

    columns: tuple[str, ...]
    impressions: Impressions | None
    randomised: float | None  # share of the rows that a random policy showed
    logged_ess: float | None  # effective sample size of 1 / logged propensity over interactions, as a share
    logged_smallest: float | None  # the smallest logged propensity of an interaction
    logged_rare: float | None  # share of the interactions whose logged propensity is below `RARE`

    @property
    def only_popularity(self) -> bool:
        return self.impressions is None and self.logged_ess is None


def exposure(log: Interactions) -> Exposure:
    """Look at every optional column that tells of exposure."""
    telling = ("clicked", "exposed", "propensity", "position", "randomised", "rating")
    theta_N = log.interacted().propensity
    logged: tuple[float | None, ...] = (None, None, None)
    if theta_N is not None and len(theta_N) and (theta_N > 0).all():
        ess = diagnose(torch.from_numpy(1 / np.asarray(theta_N, np.float64))).ess_share
        logged = ess, float(theta_N.min()), float((theta_N < RARE).mean())
    return Exposure(
        tuple(name for name in telling if name in log.optional()),
        None if log.clicked is None or log.clicked.all() else _impressions(log, log.clicked),
        None if log.randomised is None else float(log.randomised.mean()),
        *logged,
    )


def _impressions(log: Interactions, clicked_N: NDArray[np.bool_]) -> Impressions:
    shown_V, clicked_V = (np.bincount(item, minlength=len(log.items)) for item in (log.item, log.item[clicked_N]))
    seen_V, both_V = shown_V > 0, clicked_V > 0
    by_position = None
    if log.position is not None:  # counted from the lowest one there is; places where nothing was shown have 0
        place_N = log.position - log.position.min()
        near_N = place_N < PLACES
        count_P = np.bincount(place_N[near_N])
        click_P = np.bincount(place_N[near_N & clicked_N], minlength=len(count_P))
        by_position = tuple((click_P / np.maximum(count_P, 1)).tolist())
    return Impressions(
        rows=len(log),
        clicked=float(clicked_N.mean()),
        items=int(seen_V.sum()),
        never_clicked=float((clicked_V[seen_V] == 0).mean()),
        correlation=rank_correlation(shown_V[seen_V], clicked_V[seen_V]),
        explained=_correlation(np.log(shown_V[both_V]), np.log(clicked_V[both_V])) ** 2,
        by_position=by_position,
    )


def rank_correlation(x_V: NDArray[Any], y_V: NDArray[Any]) -> float:
    """Spearman's ρ: the correlation of ranks, equal values sharing their mean rank; 0 where all of one are equal."""
    from scipy.stats import rankdata

    return _correlation(rankdata(x_V), rankdata(y_V))


def _correlation(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    return float(np.corrcoef(x, y)[0, 1]) if len(x) > 1 and np.ptp(x) > 0 and np.ptp(y) > 0 else 0.0


WINDOW = 50  # events of each user that a model is trained on: the default length of the network of `unveil train`
EXPONENTS = (1.0, 0.75, 0.5, 0.25)
HALF_WIDTH = 5  # steps on either side over which the smoothed popularity is spread
CLIPPED = (0.0, 0.1, 0.25, 0.5)  # shares of the events whose propensity is clipped


@dataclass(frozen=True)
class Cost:
    """One setting of an estimator, and what it leaves."""

    estimator: str  # ips, itps, or itps-smoothed: popularity spread over five steps on either side
    exponent: float
    clip: float  # of the propensity; 0: none
    clipped: float  # share of the events whose propensity it raises
    ess_share: float  # effective sample size (Σ w)² / Σ w², as a share of the events
    largest_share: float  # of all weight, on one event


@dataclass(frozen=True)
class Costs:
    """Every setting; popularity of the training part stands in for exposure."""

    window: int
    events: int  # of the training part, within the window
    alone: float  # share that is the only one with its item at its step: there θ̂ is a single count
    settings: tuple[Cost, ...]

    def of(self, estimator: str, exponent: float = 1.0, nth_clip: int = 0) -> Cost:
        found = [each for each in self.settings if each.estimator == estimator and each.exponent == exponent]
        return found[nth_clip]


def costs(train: Sequences, window: int = WINDOW) -> Costs:
    """Weigh every training event by popularity: static, at its step, and at its step and those around it."""
    recent = train.recent(window)
    models: dict[str, PropensityModel] = {
        "ips": StaticPopularity(window),
        "itps": TemporalPopularity(window),
        "itps-smoothed": TemporalPopularity(window, half_width=HALF_WIDTH),
    }
    cell_N = recent.step_N.astype(np.int64) * recent.n_items + recent.item_N
    alone = float((np.unique(cell_N, return_counts=True)[1] == 1).sum() / len(cell_N))
    settings = []
    for name, model in models.items():
        theta_M = model.fit(train)(events(recent))
        ordered = np.sort(theta_M.numpy())
        # Clips raise about these shares of the propensities; they have two digits, to be copied.
        clips = [float(f"{ordered[int(share * len(ordered))]:.1e}") if share else 0.0 for share in CLIPPED]
        for exponent, clip in product(EXPONENTS, clips):
            found = diagnose(inverse(theta_M, clip, exponent))
            clipped = float((theta_M < clip).double().mean())
            settings.append(Cost(name, exponent, clip, clipped, found.ess_share, found.largest_share))
    return Costs(window, len(recent), alone, tuple(settings))
