"""How much of a propensity a log bears out, by what preferences cannot explain.

Shapes: N training events, P pairs of events of one user, M slots.
"""

from copy import copy
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit
from torch import Tensor

from unveil.data.sequences import Sequences
from unveil.data.slots import Slots
from unveil.errors import check_ranges
from unveil.estimators.base import Need, events, register
from unveil.estimators.corrected import PropensityOffset
from unveil.propensity.base import PropensityModel

Contrast = NDArray[np.float64]


def borne_out(propensity: PropensityModel, train: Sequences, lowest: float = 0.0) -> float:
    """τ in [0, 1] of P(i | s, t) ∝ θ_sit^τ · e^f_si, by the conditional likelihood of swaps, f left open.

    Let a user choose i at t and k at u. Of the two ways round, this one has the odds e^(τ d) with
    d = log θ_sit + log θ_sku − log θ_skt − log θ_siu: the user's preferences f, and all else that does not change with
    the step, cancel. τ maximises Σ log σ(τ d) − τ²/2 over pairs of events: without evidence it is 0. A propensity
    counted from events must not be tested on them: each half of the users is tested with θ fitted on the other half. θ
    is raised to `lowest` from below, as it is where it is used.
    """
    contrast_P = np.concatenate(
        [contrasts(copy(propensity).fit(_half(train, 1 - side)), _half(train, side), lowest) for side in (0, 1)]
    )
    return round(most_likely(contrast_P), 3)  # as near as the root is sought; the same on every machine


def contrasts(propensity: PropensityModel, train: Sequences, lowest: float = 0.0) -> Contrast:
    """d of every pair: an event of the earlier half of a history with one of the later half."""
    half_U = train.length_U // 2
    place_N = np.arange(len(train)) - np.repeat(train.offset_U1[:-1], train.length_U)
    early_P = np.flatnonzero(place_N < np.repeat(half_U, train.length_U))
    late_P = early_P + np.repeat(half_U, train.length_U)[early_P]
    one, other = (events(train).at(torch.from_numpy(place_P)) for place_P in (early_P, late_P))
    every = (one, other, replace(one, item_M=other.item_M), replace(other, item_M=one.item_M))
    log = [propensity(slots).double().clamp_min(lowest).log().numpy() for slots in every]
    return np.asarray(log[0] + log[1] - log[2] - log[3])


def most_likely(contrast_P: Contrast) -> float:
    """The τ in [0, 1] at which Σ log σ(τ d) − τ²/2 is largest: where its slope, which falls, is 0."""

    def slope(tau: float) -> float:
        return float((contrast_P * expit(-tau * contrast_P)).sum()) - tau

    if slope(0.0) <= 0:
        return 0.0
    return 1.0 if slope(1.0) >= 0 else float(brentq(slope, 0.0, 1.0, xtol=1e-4))


def _half(train: Sequences, side: int) -> Sequences:
    """The events of every other user."""
    stop_U = np.where(np.arange(train.n_users) % 2 == side, train.length_U, 0)
    return train.cut(np.zeros_like(stop_U), stop_U)


#: Training events over which an item's mean is taken, evenly spread; fewer where a row of all items is long.
_EVENTS, _CELLS = 1024, 1 << 24


@register
@dataclass(frozen=True, eq=False)
class Tempered(PropensityOffset):
    """P(i | s, t) ∝ θ_sit^τ / θ_i^(1 − static) · exp f_i, θ_i the mean of θ_sit^τ over the training events.

    τ is the share of the correction that the log bears out (`borne_out`): 1 where exposure moves choices as θ says, 0
    where it does not at all. No log of events can tell an item's mean exposure from its appeal, so it is left
    in f unless `static` says otherwise: popularity in the place of θ then removes no relevance.

    τ is consistent for P ∝ θ_sit^τ e^f_si with f that keeps still while θ moves, and f is found up to each item's mean.
    The mean is over all users: where θ is personal, what a user's own θ differs from it by is corrected as well, moving
    or not. `strength` multiplies what was found.
    """

    static: float = 0.0  # how much of an item's mean is treated as exposure; 1: all, as in corrected

    name: ClassVar[str] = "tempered"
    needs: ClassVar[Need] = "temporal"
    tau: float = field(init=False, default=1.0)
    mean_V: Tensor = field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_ranges(self, self.name, static="between 0 and 1")

    def fit(self, train: Sequences) -> Self:
        """Find τ and the items' mean θ^τ."""
        every = events(train)
        some = min(len(every), _EVENTS, max(1, _CELLS // train.n_items))
        spread_M = torch.from_numpy(np.linspace(0, len(every) - 1, some).astype(np.int64))
        object.__setattr__(self, "tau", borne_out(self.propensity, train, self.clip))
        shift_MV = self.shift(self.propensity.of_all(every.at(spread_M)))
        object.__setattr__(self, "mean_V", shift_MV.logsumexp(0) - np.log(some))
        return self

    def offset(self, slots: Slots) -> Tensor:
        """The shift of every item's logit from that of its mean."""
        return super().offset(slots) - (1 - self.static) * self.mean_V.to(slots.item_M.device)

    def shift(self, theta: Tensor) -> Tensor:
        """τ · strength · log θ."""
        return self.tau * super().shift(theta)
