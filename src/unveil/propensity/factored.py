"""What propensities that are estimated as factors share: θ = σ(ψ) at a slot. Shapes: M slots, V items."""

from abc import ABC, abstractmethod
from typing import ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unveil.data.sequences import Sequences
from unveil.data.slots import Slots
from unveil.errors import refuse_unless
from unveil.propensity.base import Kind
from unveil.propensity.choices.blocks import Blocks
from unveil.propensity.factors import Factors, sigmoid


class Factored(ABC):
    """θ_sit = σ(ψ_sib), b the block of steps that t is in: of `blocks`, or of one where the propensity is static.

    Estimated from the last `window` training events of each user (None: all).
    """

    name: ClassVar[str]
    kind: ClassVar[Kind]
    window: int | None
    blocks: int
    _blocks: Blocks
    _psi: Factors

    def __post_init__(self) -> None:
        """An option that is out of range is refused when one is made, before any work."""
        for name in ("window", "blocks", "width", "batches"):
            value = getattr(self, name, None)
            refuse_unless(value is None or value >= 1, f"{self.name}.{name}", value, "at least 1")
        penalty, sharpness = getattr(self, "penalty", 0.0), getattr(self, "sharpness", 1.0)
        refuse_unless(0 <= penalty < float("inf"), f"{self.name}.penalty", penalty, "0 or more")
        refuse_unless(0 < sharpness < float("inf"), f"{self.name}.sharpness", sharpness, "above 0")

    def fit(self, train: Sequences) -> Self:
        """Estimate ψ."""
        recent = train if self.window is None else train.recent(self.window)
        self._blocks = Blocks.of(recent, 1 if self.kind == "static" else self.blocks)
        self._psi = self._estimated(recent, self._blocks)
        return self

    def __call__(self, slots: Slots) -> Tensor:
        """θ̂ of the slots' items."""
        user_M, item_M, step_M = (index.cpu().numpy() for index in (slots.user_M, slots.item_M, slots.step_M))
        return _tensor(self._psi.logits_of(user_M, item_M, self._blocks.at(step_M)), slots)

    def of_all(self, slots: Slots) -> Tensor:
        """θ̂ of all items."""
        user_M, step_M = (index.cpu().numpy() for index in (slots.user_M, slots.step_M))
        return _tensor(self._psi.logits(user_M, self._blocks.at(step_M)), slots)

    @abstractmethod
    def _estimated(self, train: Sequences, blocks: Blocks) -> Factors:
        """ψ from the events of `train`, its steps cut into `blocks`."""


def _tensor(psi: NDArray[np.float32], slots: Slots) -> Tensor:
    return torch.from_numpy(sigmoid(psi)).to(slots.item_M.device).clamp_min(torch.finfo(torch.float32).tiny)
