"""Exposure-corrected softmaxes: logits shifted by a propensity in training; full, sampled, and with distillation.

Shapes: U users, V items, K width, N training events, B of them, M slots.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import ClassVar, Self

import numpy as np
import torch
from torch import Tensor
from torch.nn import Parameter

from unveil.data.sequences import Sequences
from unveil.data.slots import Slots
from unveil.errors import check_ranges
from unveil.estimators.base import Need, Signal, check_kind, cloze_risk, events, register
from unveil.estimators.losses import ByRows
from unveil.estimators.sampling import OverSample, Sample, theta_of_some
from unveil.processes import threads
from unveil.propensity.base import PropensityModel
from unveil.propensity.factored import minimise, shuffled_batches


@dataclass(frozen=True, eq=False)
class PropensityOffset:
    """Training sees f_i + strength · log max(θ_i, clip) of every item, serving f_i alone.

    Where P(i chosen) ∝ θ_i · exp f_i, cross-entropy on the shifted logits finds f up to a constant. Nothing is
    weighted, so no variance explodes: a small θ explains why an item was not chosen, and adds no weight where it was.
    """

    propensity: PropensityModel
    strength: float = 1.0
    clip: float = 1e-9  # below it, exposure is as good as none; the logarithm must stay finite

    name: ClassVar[str]
    needs: ClassVar[Need]
    self_normalised: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_ranges(self, self.name, clip="above 0, at most 1", strength="0 or more")
        check_kind(self)

    def __call__(self, slots: Slots) -> Signal:
        """The item of the log, and the shift of every item's logit at the slot's own user and step."""
        ones_M = torch.ones(len(slots), device=slots.item_M.device)
        return Signal(slots.item_M, ones_M, ByRows(slots, self.offset))

    def offset(self, slots: Slots) -> Tensor:
        """What training adds to the logit of every item at these slots."""
        return self.shift(self.propensity.of_all(slots))

    def shift(self, theta: Tensor) -> Tensor:
        """What training adds to the logit of an item of that propensity."""
        return theta.clamp_min(self.clip).log_().mul_(self.strength)


@register
@dataclass(frozen=True, eq=False)
class ExposureCorrected(PropensityOffset):
    """P(i | s, t) ∝ θ_sit · exp f_i: a multinomial logit in which each item is considered with probability θ.

    Consistent where users choose so. For a user who chooses the best of what happens to be exposed it finds, slot by
    slot, what ITPS finds (`unveil theory`): the favourite first, and too much left for those behind it. But it finds it
    without weights, so that far fewer events are enough. Where one f serves slots of different θ, ITPS keeps the
    favourite first and this need not. Needs θ of every item at the slot, not of the chosen one alone.
    """

    name: ClassVar[str] = "corrected"
    needs: ClassVar[Need] = "temporal"


@register
@dataclass(frozen=True, eq=False)
class LogitAdjustment(PropensityOffset):
    """P(i | s, t) ∝ θ_si^strength · exp f_i with a static θ, such as popularity (A. K. Menon et al., ICLR 2021).

    Balanced over items rather than unbiased: popularity is exposure times relevance, and both are explained away.
    """

    name: ClassVar[str] = "logit-adjustment"
    needs: ClassVar[Need] = "static"


@register
@dataclass(frozen=True, eq=False)
class CorrectedSampled(OverSample, PropensityOffset):
    """P(i | s, t) ∝ θ_sit · exp f_i as in corrected, the sum over all items replaced by that over a sample.

    A drawn item's logit becomes f_j + log θ_sjt − log π_j: what was not shown is no evidence, and what was not drawn
    is stood for by what was. Tends to corrected as more are drawn. In large catalogues θ is
    computed for the target and the drawn items alone.
    """

    name: ClassVar[str] = "corrected-sampled"
    needs: ClassVar[Need] = "temporal"

    def __post_init__(self) -> None:
        OverSample.__post_init__(self)
        PropensityOffset.__post_init__(self)

    def __call__(self, slots: Slots) -> Signal:
        """The item of the log, against the items drawn for its batch, each shifted by its own exposure at the slot."""
        item_K, log_chance_K = self.drawn(slots)
        theta_MK = theta_of_some(self.propensity, slots, item_K, len(self.sampler.chance_V))
        sample = Sample(item_K, self.shift(theta_MK) - log_chance_K, self.shift(self.propensity(slots)))
        return Signal(slots.item_M, torch.ones(len(slots), device=slots.item_M.device), sample=sample)


#: Events of a batch, and the spread of the first factors; the rate of the descent at its highest.
_BATCH, _SPREAD, _LR = 512, 0.1, 0.03
#: What an item adds for all users rests on many events, and is held back less.
_EASE = 0.1
#: Over fewer items than this a step takes a few milliseconds, and a second thread costs more than it gains.
_MANY = 4096


@dataclass(frozen=True, eq=False)
class UserFactors:
    """F_si = b_i + p_s · q_i of least risk, that of a signal with F for f, + `penalty` · (|p|² + |q|² + |b|² / 10) / N.

    A network infers a user's taste from what came before a slot; p_s is learnt from all training events of s, before
    and after.
    """

    p_UK: Tensor
    q_VK: Tensor
    b_V: Tensor

    @classmethod
    def of(
        cls,
        train: Sequences,
        signal: Callable[[Slots], Signal],
        *,
        width: int,
        penalty: float,
        batches: int,
        seed: int,
    ) -> Self:
        """By descent over so many batches of events: the work does not grow with the log."""
        generator = torch.Generator().manual_seed(seed)
        p_UK, q_VK = (
            Parameter(_SPREAD * torch.randn(rows, width, generator=generator))
            for rows in (train.n_users, train.n_items)
        )
        b_V, every = Parameter(torch.zeros(train.n_items)), events(train)

        def losses() -> Iterator[Tensor]:
            for nth_B in shuffled_batches(len(every), _BATCH, batches, np.random.default_rng(seed)):
                slots = every.at(torch.from_numpy(nth_B))
                size = p_UK.square().sum() + q_VK.square().sum() + _EASE * b_V.square().sum()
                yield cloze_risk(p_UK[slots.user_M], q_VK, b_V, signal(slots)) + penalty * size / len(every)

        with threads(1 if train.n_items < _MANY else None):
            minimise([p_UK, q_VK, b_V], losses(), batches=batches, lr=_LR)
        return cls(p_UK.detach(), q_VK.detach(), b_V.detach())

    def __call__(self, user_M: Tensor) -> Tensor:
        """F_MV of these users."""
        p_UK, q_VK, b_V = (each.to(user_M.device) for each in (self.p_UK, self.q_VK, self.b_V))
        return p_UK[user_M] @ q_VK.T + b_V


@register
@dataclass(frozen=True, eq=False)
class CorrectedTaught(PropensityOffset):
    """−(1 − trust) log softmax(f + log θ)[i], as in corrected, − trust Σ_j P(j | s) log softmax(f)[j].

    P(j | s) = softmax(F_s)[j] is what s likes by F_sj = b_j + p_s · q_j, which is fitted first, to all training events
    of all users, by the loss of corrected itself (`UserFactors`). One choice says little about a user who sees
    few items at a time; all choices of a user say more, and are distilled into the network at every slot.

    Consistent where corrected is and tastes keep still: P ∝ θ_sit · exp F_si. Both parts are least at f = F then.
    """

    trust: float = 0.5  # 0: corrected
    width: int = 16
    penalty: float = 1.0
    batches: int = 5000
    seed: int = 0

    name: ClassVar[str] = "corrected-taught"
    needs: ClassVar[Need] = "temporal"
    factors: UserFactors = field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        ranges = {"trust": "between 0 and 1", "penalty": "0 or more", "width": "at least 1", "batches": "at least 1"}
        check_ranges(self, self.name, **ranges)

    def fit(self, train: Sequences) -> Self:
        """Learn what each user likes."""
        factors = UserFactors.of(
            train, super().__call__, width=self.width, penalty=self.penalty, batches=self.batches, seed=self.seed
        )
        object.__setattr__(self, "factors", factors)
        return self

    def __call__(self, slots: Slots) -> Signal:
        """The item of the log with its offset and, as far as they are trusted, the tastes of the slot's user."""
        rest_M = torch.full((len(slots),), 1 - self.trust, device=slots.item_M.device)
        return Signal(slots.item_M, rest_M, ByRows(slots, self.offset), imputed_MV=ByRows(slots, self.imputed))

    def imputed(self, slots: Slots) -> Tensor:
        """trust · P(j | s)_MV."""
        return torch.softmax(self.factors(slots.user_M), 1).mul_(self.trust)
