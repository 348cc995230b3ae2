"""Can exposure and appeal be told apart? Only where the same items were observed under several levels of exposure.

The clicks of item i that was shown n_iℓ times under level ℓ (a position, a policy) are, on average,

    E[c_iℓ] = n_iℓ · a_i · e_ℓ        a: appeal, e: how much is noticed at that level

which fixes a and e up to one factor if and only if the graph of items and levels, with an edge where i was observed
under ℓ, is connected: an item of another component can be compared with none of this one. Where only clicks are known,
n_iℓ is part of the unknown, and c_i = a_i · n_i has one equation for two unknowns. That an item's share of the clicks
changes along the calendar then shows a change of a_i · n_i, and of exposure only if appeal stayed as it was; even so
the level of exposure, and with it that of appeal, stays unknown.

Shapes: N rows, V items, L levels, P pairs of an item and a level.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from unveil.audit.evidence import days
from unveil.audit.motion import counts
from unveil.audit.timing import ALPHA, false_discovery
from unveil.data.interactions import Interactions

#: Fewer rows of an item under a level are no observation of it; levels beyond the last count as that.
LEAST, LAST = 5, 64
WINDOWS = 10
#: Share of the interactions that must be with items that can be compared.
ENOUGH = 0.5


@dataclass(frozen=True)
class Variation:
    """One source of levels: how much of the log was observed under several, and in one piece."""

    source: str  # policy, propensity, position, calendar
    items: float  # share of the items whose exposure varied
    events: float  # share of the interactions that are with them
    connected: float  # share of the interactions that are with items of the largest component


@dataclass(frozen=True)
class Identification:
    """Every source that a log has, and what follows: whether exposure and appeal can be told apart."""

    sources: tuple[Variation, ...]
    verdict: str  # by design, by position, impressions alone, calendar: if appeal is constant, or not

    @property
    def connected(self) -> float:
        """The share of the interactions with comparable items, under the source that has most."""
        return max((each.connected for each in self.sources), default=0.0)


def identification(log: Interactions) -> Identification:
    """Look for variation of exposure: by policy, by logged propensity, by position, along the calendar."""
    level_N: dict[str, NDArray[Any]] = {}
    if log.randomised is not None and log.randomised.any():
        level_N["policy"] = log.randomised
    if log.propensity is not None and len(log) and (log.propensity > 0).all():
        level_N["propensity"] = np.floor(np.log2(log.propensity))
    if log.position is not None:
        level_N["position"] = log.position
    found = [_variation(log, name, levels) for name, levels in level_N.items()]
    if log.time is not None and days(log) >= 1:
        window_N = np.argsort(np.argsort(log.time, kind="stable")) * WINDOWS // len(log)
        found.append(_variation(log, "calendar", window_N, _changed(log, window_N)))
    shown = log.clicked is not None and not bool(log.clicked.all())
    enough = {each.source for each in found if each.connected >= ENOUGH}
    if enough & {"policy", "propensity"}:
        return Identification(tuple(found), "by design")
    if shown:
        return Identification(tuple(found), "by position" if "position" in enough else "impressions alone")
    return Identification(tuple(found), "calendar" if "calendar" in enough else "not")


def _variation(log: Interactions, source: str, level_N: NDArray[Any], changed_V: Any = True) -> Variation:
    """Items with `LEAST` rows under two levels or more, of `changed_V` where that is given; their components."""
    place_N = np.minimum(np.unique(level_N, return_inverse=True)[1], LAST - 1)
    edge_VL = counts(log.item, place_N, len(log.items), int(place_N.max(initial=0)) + 1) >= LEAST
    varied_V = (edge_VL.sum(1) >= 2) & changed_V
    share_V = np.bincount(log.interacted().item, minlength=len(log.items)) / max(1, len(log.interacted()))
    edges = sparse.csr_array(edge_VL[varied_V])
    part_V = connected_components(sparse.block_array([[None, edges], [edges.T, None]]), directed=False)[1]
    part_V, share_V = part_V[: varied_V.sum()], share_V[varied_V]
    largest = np.bincount(part_V, share_V).max(initial=0.0)
    return Variation(source, float(varied_V.mean()), float(share_V.sum()), float(min(largest, 1)))


def _changed(log: Interactions, window_N: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether an item's share of the rows differs between windows: Σ_w (n_iw − n_i / W)² / (n_i / W) ~ χ² with W − 1
    degrees of freedom, as windows are of equal size; at most one in twenty of them by chance (Benjamini–Hochberg)."""
    from scipy.special import chdtrc

    count_VW = counts(log.item, window_N, len(log.items), WINDOWS)
    mean_V = count_VW.mean(1)
    enough_V, changed_V = mean_V >= LEAST, np.zeros(len(mean_V), bool)
    chi2_V = ((count_VW - mean_V[:, None]) ** 2).sum(1) / np.maximum(mean_V, 1e-9)
    changed_V[enough_V] = false_discovery(chdtrc(WINDOWS - 1, chi2_V[enough_V])) < ALPHA
    return changed_V
