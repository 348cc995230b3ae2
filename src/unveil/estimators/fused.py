"""Projection and loss in one pass over chunks of rows.

The M × V logits never exist at once, and the gradient is formed while they are at hand: one projection, not two.
Shapes: M slots, D width, V items, R rows of a chunk.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor
from torch.autograd.function import Function, once_differentiable
from torch.nn import functional as F

#: Rows of a chunk, and the number of logits beyond which a chunk has fewer rows.
ROWS, LOGITS = 256, 2**24


#: How logits become a loss: (z_RV, target_R1, weight_R1, extra_RV, slope) → (loss, slope_RV). The extra is what a form
#: needs beside the logits, a number for every item. The loss is the weighted sum over the rows; where its slope ∂/∂z is
#: asked for, it comes with it. Both may be written over z.
Form = Callable[[Tensor, Tensor, Tensor, Tensor | None, bool], tuple[Tensor, Tensor]]


def chunk_rows(n_items: int) -> int:
    """Rows a chunk: 256, fewer above 65,536 items, at least 16."""
    return max(16, min(ROWS, LOGITS // max(n_items, 1)))


def fused_loss(
    form: Form,
    h_MD: Tensor,
    table_VD: Tensor,
    bias_V: Tensor,
    target_M: Tensor,
    weight_M: Tensor,
    extra_MV: Tensor | None = None,
) -> Tensor:
    """Σ_m w_m · form(h_m · tableᵀ + bias, target_m, extra_m).

    Differentiable once, in h, table and bias; weights and extras are constants.
    """
    weight_M = weight_M.detach().to(h_MD.dtype)
    learns = torch.is_grad_enabled() and any(x.requires_grad for x in (h_MD, table_VD, bias_V))
    apply: Callable[..., Tensor] = _FusedLoss.apply if learns else _sweep
    return apply(form, h_MD, table_VD, bias_V, target_M, weight_M, extra_MV)


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


@dataclass(frozen=True, eq=False)
class _Gradients:
    """Of the sum over slots."""

    h_MD: Tensor
    table_VD: Tensor
    bias_V: Tensor

    @classmethod
    def of(cls, h_MD: Tensor, table_VD: Tensor, bias_V: Tensor) -> Self:
        """Zero, or nothing yet where there are rows to begin with."""
        make = torch.empty_like if len(h_MD) else torch.zeros_like
        return cls(make(h_MD), make(table_VD), make(bias_V))

    def add(self, rows: slice, slope_RV: Tensor, h_RD: Tensor, table_VD: Tensor) -> None:
        """Carry ∂/∂logits of some rows on to h, table and bias; the first rows begin the sums."""
        torch.mm(slope_RV, table_VD, out=self.h_MD[rows])
        if rows.start == 0:
            torch.mm(slope_RV.T, h_RD, out=self.table_VD)
            torch.sum(slope_RV, 0, out=self.bias_V)
        else:
            self.table_VD.addmm_(slope_RV.T, h_RD)
            self.bias_V.add_(slope_RV.sum(0))


def _sweep(
    form: Form,
    h_MD: Tensor,
    table_VD: Tensor,
    bias_V: Tensor,
    target_M: Tensor,
    weight_M: Tensor,
    extra_MV: Tensor | None,
    into: _Gradients | None = None,
) -> Tensor:
    """The sum, chunk by chunk; with `into`, its gradient as well."""
    total, size = h_MD.new_zeros(()), chunk_rows(len(table_VD))
    buffer_RV = h_MD.new_empty(min(size, len(h_MD)), len(table_VD))
    for start in range(0, len(h_MD), size):
        rows = slice(start, start + size)
        h_RD, target_R1, weight_R1 = h_MD[rows], target_M[rows, None], weight_M[rows, None]
        z_RV = torch.addmm(bias_V, h_RD, table_VD.T, out=buffer_RV[: len(h_RD)])
        extra_RV = None if extra_MV is None else extra_MV[rows].to(z_RV.dtype)
        loss, slope_RV = form(z_RV, target_R1, weight_R1, extra_RV, into is not None)
        total += loss
        if into is not None:
            into.add(rows, slope_RV, h_RD, table_VD)
    return total


class _FusedLoss(Function):
    @staticmethod
    def forward(
        ctx: Any,
        form: Form,
        h_MD: Tensor,
        table_VD: Tensor,
        bias_V: Tensor,
        target_M: Tensor,
        weight_M: Tensor,
        extra_MV: Tensor | None,
    ) -> Tensor:
        gradients = _Gradients.of(h_MD, table_VD, bias_V)
        total = _sweep(form, h_MD, table_VD, bias_V, target_M, weight_M, extra_MV, gradients)
        ctx.save_for_backward(gradients.h_MD, gradients.table_VD, gradients.bias_V)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        h_MD, table_VD, bias_V = ctx.saved_tensors
        return None, slope * h_MD, slope * table_VD, slope * bias_V, None, None, None
