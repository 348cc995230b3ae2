"""Exposure-corrected softmaxes: logits shifted by a propensity in training; full, sampled, distilled, tempered.

Shapes: U users, V items, K width, N training events, B of them, M slots, P pairs of events of one user.
"""

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit
from torch import Tensor
from torch.nn import Parameter

from unveil.data.interactions import Sequences
from unveil.data.slots import Slots
from unveil.errors import AtLeastOne, NotNegative, Share, UpToOne
from unveil.estimators import base
from unveil.estimators.losses import ByRows
from unveil.processes import threads
from unveil.propensity.base import PropensityModel
from unveil.propensity.factors import minimise, shuffled_batches


@dataclass(frozen=True, eq=False)
class PropensityOffset(base.Checked):
    """Training sees f_i + strength · log max(θ_i, clip) of every item, serving f_i alone.

    Where P(i chosen) ∝ θ_i · exp f_i, cross-entropy on the shifted logits finds f up to a constant, without weights.
    """

    propensity: PropensityModel
    strength: NotNegative = 1.0
    clip: UpToOne = 1e-9  # keeps the logarithm finite

    def __call__(self, slots: Slots) -> base.Signal:
        return base.Signal(slots.item_M, base.constant(slots), ByRows(slots, self.offset))

    def offset(self, slots: Slots) -> Tensor:
        return self.shift(self.propensity.of_all(slots))

    def shift(self, theta: Tensor) -> Tensor:
        """What training adds to the logit of an item of that propensity."""
        return theta.clamp_min(self.clip).log_().mul_(self.strength)


@base.register
@dataclass(frozen=True, eq=False)
class ExposureCorrected(PropensityOffset):
    """P(i | s, t) ∝ θ_sit · exp f_i: a multinomial logit in which each item is considered with probability θ.

    Consistent where users choose so; for one who chooses the best exposed item, see `unveil theory`. Needs θ of every
    item at the slot, not of the chosen one alone.
    """

    name: ClassVar[str] = "corrected"
    needs: ClassVar[base.Need] = "temporal"


@base.register
@dataclass(frozen=True, eq=False)
class LogitAdjustment(PropensityOffset):
    """P(i | s, t) ∝ θ_si^strength · exp f_i with a static θ, such as popularity (A. K. Menon et al., ICLR 2021).

    Balanced over items rather than unbiased: popularity is exposure times relevance, and both are removed.
    """

    name: ClassVar[str] = "logit-adjustment"
    needs: ClassVar[base.Need] = "static"


@base.register
@dataclass(frozen=True, eq=False)
class CorrectedSampled(base.OverSample, PropensityOffset):
    """P(i | s, t) ∝ θ_sit · exp f_i as in corrected, with a sum over sampled items: logits f_j + log θ_sjt − log π_j.

    Tends to corrected as more are drawn. In large catalogues θ is computed for the target and the drawn items alone.
    """

    name: ClassVar[str] = "corrected-sampled"
    needs: ClassVar[base.Need] = "temporal"

    def __call__(self, slots: Slots) -> base.Signal:
        item_K, log_chance_K = self.drawn(slots)
        theta_MK = base.theta_of_some(self.propensity, slots, item_K, len(self.sampler.chance_V))
        sample = base.Sample(item_K, self.shift(theta_MK) - log_chance_K, self.shift(self.propensity(slots)))
        return base.Signal(slots.item_M, base.constant(slots), sample=sample)


#: Events of a batch, and the spread of the first factors; the highest learning rate; the share of the penalty for
#: item biases, which rest on many events; fewer items than this are quicker with one thread.
_BATCH, _SPREAD, _LR, _EASE, _MANY = 512, 0.1, 0.03, 0.1, 4096


@dataclass(frozen=True, eq=False)
class UserFactors:
    """F_si = b_i + p_s · q_i of least risk, that of a signal with F for f, + `penalty` · (|p|² + |q|² + |b|² / 10) / N.

    p_s is learnt from all training events of s, a network's h only from those before the slot.
    """

    p_UK: Tensor
    q_VK: Tensor
    b_V: Tensor

    @classmethod
    def of(
        cls,
        train: Sequences,
        signal: Callable[[Slots], base.Signal],
        *,
        width: int,
        penalty: float,
        batches: int,
        seed: int,
    ) -> Self:
        generator = torch.Generator().manual_seed(seed)
        p_UK, q_VK = (
            Parameter(_SPREAD * torch.randn(rows, width, generator=generator))
            for rows in (train.n_users, train.n_items)
        )
        b_V, every = Parameter(torch.zeros(train.n_items)), base.events(train)

        def losses() -> Iterator[Tensor]:
            for nth_B in shuffled_batches(len(every), _BATCH, batches, np.random.default_rng(seed)):
                slots = every.at(torch.from_numpy(nth_B))
                size = p_UK.square().sum() + q_VK.square().sum() + _EASE * b_V.square().sum()
                yield base.cloze_risk(p_UK[slots.user_M], q_VK, b_V, signal(slots)) + penalty * size / len(every)

        with threads(1 if train.n_items < _MANY else None):
            minimise([p_UK, q_VK, b_V], losses(), batches=batches, lr=_LR)
        return cls(p_UK.detach(), q_VK.detach(), b_V.detach())

    def __call__(self, user_M: Tensor) -> Tensor:
        p_UK, q_VK, b_V = (each.to(user_M.device) for each in (self.p_UK, self.q_VK, self.b_V))
        return p_UK[user_M] @ q_VK.T + b_V


@base.register
@dataclass(frozen=True, eq=False)
class CorrectedDistilled(PropensityOffset):
    """−(1 − trust) log softmax(f + log θ)[i], as in corrected, − trust Σ_j P(j | s) log softmax(f)[j].

    P(j | s) = softmax(F_s)[j], F_sj = b_j + p_s · q_j fitted first, to all training events, by the loss of corrected
    (`UserFactors`). Consistent where corrected is and preferences are constant: P ∝ θ_sit · exp F_si.
    """

    trust: Share = 0.5  # 0: corrected
    width: AtLeastOne = 16
    penalty: NotNegative = 1.0
    batches: AtLeastOne = 5000
    seed: int = 0

    name: ClassVar[str] = "corrected-distilled"
    needs: ClassVar[base.Need] = "temporal"
    factors: UserFactors = field(init=False, repr=False)

    def fit(self, train: Sequences) -> Self:
        how = {"width": self.width, "batches": self.batches, "seed": self.seed}
        object.__setattr__(self, "factors", UserFactors.of(train, super().__call__, penalty=self.penalty, **how))
        return self

    def __call__(self, slots: Slots) -> base.Signal:
        target, weight_M, offset_MV = slots.item_M, base.constant(slots, 1 - self.trust), ByRows(slots, self.offset)
        return base.Signal(target, weight_M, offset_MV, imputed_MV=ByRows(slots, self.imputed))

    def imputed(self, slots: Slots) -> Tensor:
        return torch.softmax(self.factors(slots.user_M), 1).mul_(self.trust)


def supported_share(propensity: PropensityModel, train: Sequences, lowest: float = 0.0) -> float:
    """τ in [0, 1] of P(i | s, t) ∝ θ_sit^τ · e^f_si, by a conditional likelihood that is free of f.

    Let a user choose i at t and k at u. Against the swapped order this one has the odds e^(τ d) with
    d = log θ_sit + log θ_sku − log θ_skt − log θ_siu: f, and all that does not change with the step, cancels.
    τ maximises Σ log σ(τ d) − τ²/2 over pairs of events. Cross-fitted: θ of each half of the users is fitted on the
    other half, and clipped at `lowest`.
    """
    contrast_P = np.concatenate(
        [contrasts(copy(propensity).fit(_half(train, 1 - side)), _half(train, side), lowest) for side in (0, 1)]
    )
    return round(most_likely(contrast_P), 3)  # as near as the root is sought; the same on every machine


def contrasts(propensity: PropensityModel, train: Sequences, lowest: float = 0.0) -> NDArray[np.float64]:
    """d of every pair: an event of the earlier half of a history with one of the later half."""
    half_U = train.length_U // 2
    place_N = np.arange(len(train)) - np.repeat(train.offset_U1[:-1], train.length_U)
    early_P = np.flatnonzero(place_N < np.repeat(half_U, train.length_U))
    late_P = early_P + np.repeat(half_U, train.length_U)[early_P]
    one, other = (base.events(train).at(torch.from_numpy(place_P)) for place_P in (early_P, late_P))
    every = (one, other, replace(one, item_M=other.item_M), replace(other, item_M=one.item_M))
    log = [propensity(slots).double().clamp_min(lowest).log().numpy() for slots in every]
    return np.asarray(log[0] + log[1] - log[2] - log[3])


def most_likely(contrast_P: NDArray[np.float64]) -> float:
    """The τ in [0, 1] at which Σ log σ(τ d) − τ²/2, which is concave, is largest."""

    def slope(tau: float) -> float:
        return float((contrast_P * expit(-tau * contrast_P)).sum()) - tau

    if slope(0.0) <= 0:
        return 0.0
    return 1.0 if slope(1.0) >= 0 else float(brentq(slope, 0.0, 1.0, xtol=1e-4))


def _half(train: Sequences, side: int) -> Sequences:
    """The events of every other user."""
    stop_U = np.where(np.arange(train.n_users) % 2 == side, train.length_U, 0)
    return train.cut(np.zeros_like(stop_U), stop_U)


#: Training events over which an item's mean is computed, evenly spread; fewer where a row of all items is long.
_EVENTS, _CELLS = 1024, 1 << 24


@base.register
@dataclass(frozen=True, eq=False)
class CorrectedTempered(PropensityOffset):
    """P(i | s, t) ∝ θ_sit^τ / θ_i^(1 − static) · exp f_i, θ_i the mean of θ_sit^τ over the training events.

    τ is the share of the correction that the log supports (`supported_share`), times `strength`. A log of events
    cannot tell an item's mean exposure from its appeal: that mean, over all users, stays in f by 1 − `static`.
    Consistent for P ∝ θ_sit^τ e^f_si with f constant while θ changes: f is found up to each item's mean.
    """

    static: Share = 0.0  # how much of an item's mean is treated as exposure; 1: all, as in corrected

    name: ClassVar[str] = "corrected-tempered"
    needs: ClassVar[base.Need] = "temporal"
    tau: float = field(init=False, default=1.0)
    mean_V: Tensor = field(init=False, repr=False)

    def fit(self, train: Sequences) -> Self:
        every = base.events(train)
        some = min(len(every), _EVENTS, max(1, _CELLS // train.n_items))
        spread_M = torch.from_numpy(np.linspace(0, len(every) - 1, some).astype(np.int64))
        object.__setattr__(self, "tau", supported_share(self.propensity, train, self.clip))
        shift_MV = self.shift(self.propensity.of_all(every.at(spread_M)))
        object.__setattr__(self, "mean_V", shift_MV.logsumexp(0) - np.log(some))
        return self

    def offset(self, slots: Slots) -> Tensor:
        """The shift of every item's logit from that of its mean."""
        return super().offset(slots) - (1 - self.static) * self.mean_V.to(slots.item_M.device)

    def shift(self, theta: Tensor) -> Tensor:
        return self.tau * super().shift(theta)
