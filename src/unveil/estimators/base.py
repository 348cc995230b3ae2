"""What an estimator is, where estimators are found, and the one loss that applies them.

Shapes: M masked slots, D width, V items.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol, Self

import torch
from torch import Tensor

from unveil.data.slots import Slots
from unveil.estimators.fused import weighted_cross_entropy
from unveil.registry import Registry

#: What an estimator asks for beside the log: a propensity of one kind, or the truth of a world.
Need = Literal["nothing", "static", "temporal", "truth"]


@dataclass(frozen=True, eq=False)
class Signal:
    """What the model is to learn at each slot: the item to predict, how much that counts, and a shift of the logits.

    Training sees f + offset, serving f alone: an offset explains away what is not the user's doing.
    """

    target_M: Tensor
    weight_M: Tensor
    offset_MV: Tensor | None = None

    def to(self, device: torch.device | str) -> Self:
        """The same signal on a device."""
        offset_MV = None if self.offset_MV is None else self.offset_MV.to(device)
        return type(self)(self.target_M.to(device), self.weight_M.to(device), offset_MV)


class Estimator(Protocol):
    """Slots in; targets, weights and offset out. Every loss in the package is `cloze_risk` of such a signal."""

    name: ClassVar[str]
    needs: ClassVar[Need]

    @property
    def self_normalised(self) -> bool:
        """Whether the risk is divided by the sum of the weights rather than by the number of slots."""

    def __call__(self, slots: Slots) -> Signal:
        """The signal at these slots."""


ESTIMATORS: Registry[Estimator] = Registry("estimator", package="unveil.estimators", group="unveil.estimators")
register = ESTIMATORS.register


def estimator(name: str) -> type[Estimator]:
    """The estimator class of that name; an unknown name suggests the nearest."""
    return ESTIMATORS[name]


def cloze_risk(
    h_MD: Tensor, table_VD: Tensor, bias_V: Tensor, signal: Signal, *, normaliser: float | Tensor | None = None
) -> Tensor:
    """−(1/N) Σ_m w_m log softmax(h_m · tableᵀ + bias + offset_m)[target_m].

    With the signal of an estimator this is its loss in the paper (eqs. of L_Cloze, L_ideal, L_IPS, L_ITPS). N is the
    number of slots unless `normaliser` says otherwise: the paper's |S||I|T differs from it by a constant, and a
    self-normalised estimator divides by Σ w. No slots: no loss, and a gradient of zero.
    """
    divisor = len(signal.weight_M) if normaliser is None else normaliser
    smallest = torch.finfo(h_MD.dtype).tiny
    total = weighted_cross_entropy(h_MD, table_VD, bias_V, signal.target_M, signal.weight_M, signal.offset_MV)
    return total / torch.as_tensor(divisor, dtype=h_MD.dtype, device=h_MD.device).clamp_min(smallest)
