"""What the log records about exposure, apart from interactions. Shapes: N rows, V items, P positions."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.data.interactions import Interactions
from unveil.propensity.weights import diagnose

#: Positions that are reported one by one.
PLACES = 10
#: A propensity below this has a weight above 100: poor overlap.
RARE = 0.01


@dataclass(frozen=True)
class Impressions:
    """Impressions, clicked or not."""

    rows: int
    taken: float  # share of the rows
    items: int  # that were shown
    never_taken: float  # share of them that nobody took
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
        """Whether nothing but popularity can stand in for exposure."""
        return self.impressions is None and self.logged_ess is None


TELLING = ("clicked", "exposed", "propensity", "position", "randomised", "rating")


def exposure(log: Interactions) -> Exposure:
    """Look at every optional column that tells of exposure."""
    columns = tuple(name for name in TELLING if name in log.optional())
    propensity_N = _propensities(log)
    return Exposure(
        columns,
        None if log.clicked is None or log.clicked.all() else _impressions(log, log.clicked),
        None if log.randomised is None else float(log.randomised.mean()),
        None if propensity_N is None else _ess(propensity_N),
        None if propensity_N is None else float(propensity_N.min()),
        None if propensity_N is None else float((propensity_N < RARE).mean()),
    )


def _impressions(log: Interactions, clicked_N: NDArray[np.bool_]) -> Impressions:
    shown_V = np.bincount(log.item, minlength=len(log.items))
    taken_V = np.bincount(log.item[clicked_N], minlength=len(log.items))
    seen_V, both_V = shown_V > 0, taken_V > 0
    return Impressions(
        rows=len(log),
        taken=float(clicked_N.mean()),
        items=int(seen_V.sum()),
        never_taken=float((taken_V[seen_V] == 0).mean()),
        correlation=rank_correlation(shown_V[seen_V], taken_V[seen_V]),
        explained=_correlation(*(np.log(each[both_V]) for each in (shown_V, taken_V))) ** 2,
        by_position=None if log.position is None else _by_position(log.position, clicked_N),
    )


def rank_correlation(x_V: NDArray[Any], y_V: NDArray[Any]) -> float:
    """Spearman's ρ: the correlation of ranks, equal values sharing their mean rank; 0 where all of one are equal."""
    from scipy.stats import rankdata

    return _correlation(rankdata(x_V), rankdata(y_V))


def _correlation(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    return float(np.corrcoef(x, y)[0, 1]) if len(x) > 1 and np.ptp(x) > 0 and np.ptp(y) > 0 else 0.0


def _by_position(position_N: NDArray[np.int32], clicked_N: NDArray[np.bool_]) -> tuple[float, ...]:
    """Positions are counted from the lowest one there is; places where nothing was shown have 0."""
    place_N = position_N - position_N.min()
    near_N = place_N < PLACES
    shown_P, taken_P = (np.bincount(place_N[which], minlength=1) for which in (near_N, near_N & clicked_N))
    rate_P = np.zeros(len(shown_P))
    rate_P[: len(taken_P)] = taken_P
    return tuple((rate_P / np.maximum(shown_P, 1)).tolist())


def _propensities(log: Interactions) -> NDArray[np.float64] | None:
    """Those of interactions; None where there are none, or where some are not above 0."""
    propensity_N = log.interacted().propensity
    if propensity_N is None or not len(propensity_N) or not (propensity_N > 0).all():
        return None
    return np.asarray(propensity_N, np.float64)


def _ess(propensity_N: NDArray[np.float64]) -> float:
    import torch

    return diagnose(torch.from_numpy(1 / propensity_N)).ess_share
