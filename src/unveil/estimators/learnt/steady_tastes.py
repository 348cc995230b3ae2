"""What each user likes at all steps alike: a vector for each user in the place of a network.

Shapes: U users, V items, K width, N training events, B of them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from torch import Tensor
from torch.nn import Parameter

from unveil.cores import threads
from unveil.data.sequences import Sequences
from unveil.data.slots import Slots
from unveil.estimators.base import Signal, cloze_risk
from unveil.estimators.learning import events
from unveil.propensity.factored import dealt, descend

#: Events of a batch, and the spread of the first factors; the rate of the descent at its highest.
_BATCH, _SPREAD, _LR = 512, 0.1, 0.03
#: What an item adds for all users rests on many events, and is held back less.
_EASE = 0.1
#: Over fewer items than this a step takes a few milliseconds, and to share it out costs more than it gains.
_MANY = 4096


@dataclass(frozen=True, eq=False)
class SteadyTastes:
    """F_si = b_i + p_s · q_i of least risk, that of a signal with F for f, + `penalty` · (|p|² + |q|² + |b|² / 10) / N.

    A network has to guess a user's taste from what came before a slot; p_s is learnt from all that s took in the
    training part, before and after.
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
            for nth_B in dealt(len(every), _BATCH, batches, np.random.default_rng(seed)):
                slots = every.at(torch.from_numpy(nth_B))
                size = p_UK.square().sum() + q_VK.square().sum() + _EASE * b_V.square().sum()
                yield cloze_risk(p_UK[slots.user_M], q_VK, b_V, signal(slots)) + penalty * size / len(every)

        with threads(1 if train.n_items < _MANY else None):
            descend([p_UK, q_VK, b_V], losses(), batches=batches, lr=_LR)
        return cls(p_UK.detach(), q_VK.detach(), b_V.detach())

    def __call__(self, user_M: Tensor) -> Tensor:
        """F_MV of these users."""
        p_UK, q_VK, b_V = (each.to(user_M.device) for each in (self.p_UK, self.q_VK, self.b_V))
        return p_UK[user_M] @ q_VK.T + b_V
