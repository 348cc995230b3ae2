"""How the logits of some slots become a loss, each with its slope.

Shapes: R rows of a chunk, V items.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

#: How logits become a loss: (z_RV, target_R1, weight_R1, extra_RV, slope) → (loss, slope_RV). The extra is what a form
#: needs beside the logits, a number for every item (`explained`: two). The loss is the weighted sum over the rows;
#: where its slope ∂/∂z is asked for, it comes with it. Both may be written over z.
Form = Callable[[Tensor, Tensor, Tensor, Tensor | None, bool], tuple[Tensor, Tensor]]


def cross_entropy(
    z_RV: Tensor, target_R1: Tensor, weight_R1: Tensor, offset_RV: Tensor | None, slope: bool
) -> tuple[Tensor, Tensor]:
    """−log softmax(z + offset)[target], of slope softmax − one-hot of the target."""
    if offset_RV is not None:
        z_RV += offset_RV
    above_R1 = z_RV.gather(1, target_R1) - z_RV.amax(1, keepdim=True)
    p_RV = torch.softmax(z_RV, 1, out=z_RV)
    # log p[target] by way of the largest p = 1 / Σ exp(z − max z) ≥ 1/V: p[target] itself may underflow.
    total = -(weight_R1 * (above_R1 + p_RV.amax(1, keepdim=True).log())).sum()
    return total, p_RV.mul_(weight_R1).scatter_add_(1, target_R1, -weight_R1) if slope else p_RV


def pairwise(
    z_RV: Tensor, target_R1: Tensor, weight_R1: Tensor, rival_RV: Tensor | None, slope: bool
) -> tuple[Tensor, Tensor]:
    """Σ_j a_j · softplus(z_j − z_target) over the rivals j, of slope a_j · σ(z_j − z_target), and less their sum."""
    assert rival_RV is not None
    a_RV = (weight_R1 * rival_RV).scatter_(1, target_R1, 0.0)
    ahead_RV = z_RV - z_RV.gather(1, target_R1)
    total = (a_RV * F.softplus(ahead_RV)).sum()
    if not slope:
        return total, z_RV
    slope_RV = a_RV.mul_(ahead_RV.sigmoid_())
    return total, slope_RV.scatter_add_(1, target_R1, -slope_RV.sum(1, keepdim=True))


def soft_cross_entropy(
    z_RV: Tensor, target_R1: Tensor, weight_R1: Tensor, imputed_RV: Tensor | None, slope: bool
) -> tuple[Tensor, Tensor]:
    """−Σ_i a_i log softmax(z)[i] with a_i what is imputed to i and, at the target, its weight; of slope (Σ a) p − a."""
    assert imputed_RV is not None
    a_RV = imputed_RV.scatter_add(1, target_R1, weight_R1)
    log_p_RV = torch.log_softmax(z_RV, 1)
    total = -(a_RV * log_p_RV).sum()
    return total, log_p_RV.exp_().mul_(a_RV.sum(1, keepdim=True)).sub_(a_RV) if slope else log_p_RV


def explained(
    z_RV: Tensor, target_R1: Tensor, weight_R1: Tensor, both_2RV: Tensor | None, slope: bool
) -> tuple[Tensor, Tensor]:
    """−Σ_i a_i log softmax(z)[i] − w log softmax(z + offset)[target]: the offset explains the target, and not a."""
    assert both_2RV is not None
    imputed_RV, offset_RV = both_2RV
    imputed, steep_RV = soft_cross_entropy(z_RV, target_R1, torch.zeros_like(weight_R1), imputed_RV, slope)
    taken, slope_RV = cross_entropy(z_RV, target_R1, weight_R1, offset_RV, slope)
    return imputed + taken, slope_RV.add_(steep_RV) if slope else slope_RV
