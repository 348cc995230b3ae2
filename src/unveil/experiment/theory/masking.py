"""Which events of a log the Cloze task hides, on average. Shapes: M events."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from unveil.data.slots import Slots


@dataclass(frozen=True)
class Masking:
    """The settings of `ClozeTask` that decide what is hidden."""

    mask_probability: float = 0.2
    last_share: float = 0.0
    always_mask: bool = True

    def chance(self, slots: Slots) -> Tensor:
        """P(hidden) of every event of a whole log, given the log; within a user the slots stand in time order.

        ρ, plus the chance (1 − ρ)^n that nothing of the n events was drawn, shared out among them; and the rows in
        which the last event alone is hidden.
        """
        user_M = slots.user_M.numpy()
        length_M = np.bincount(user_M, minlength=1)[user_M]
        last_M = np.append(user_M[1:] != user_M[:-1], [True] * bool(len(user_M)))
        rho = self.mask_probability
        drawn_M = rho + ((1 - rho) ** length_M / length_M if self.always_mask else 0.0)
        return torch.from_numpy(self.last_share * last_M + (1 - self.last_share) * drawn_M)
