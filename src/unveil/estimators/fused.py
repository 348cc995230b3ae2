"""Projection, softmax and weighted cross-entropy in one pass over chunks of rows.

The M × V logits never exist at once, and the gradient is formed while the softmax is at hand: one projection, not two.
Shapes: M slots, D width, V items, R rows of a chunk.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor
from torch.autograd.function import Function, once_differentiable

#: Rows of a chunk, and the number of logits beyond which a chunk has fewer rows.
ROWS, LOGITS = 256, 2**24


def chunk_rows(n_items: int) -> int:
    """Rows a chunk: 256, fewer above 65,536 items, at least 16."""
    return max(16, min(ROWS, LOGITS // max(n_items, 1)))


def weighted_cross_entropy(
    h_MD: Tensor, table_VD: Tensor, bias_V: Tensor, target_M: Tensor, weight_M: Tensor, offset_MV: Tensor | None
) -> Tensor:
    """−Σ_m w_m log softmax(h_m · tableᵀ + bias + offset_m)[target_m].

    Differentiable once, in h, table and bias; weights and offsets are constants.
    """
    weight_M = weight_M.detach().to(h_MD.dtype)
    learns = torch.is_grad_enabled() and any(x.requires_grad for x in (h_MD, table_VD, bias_V))
    apply: Callable[..., Tensor] = _WeightedCrossEntropy.apply if learns else _sweep
    return apply(h_MD, table_VD, bias_V, target_M, weight_M, offset_MV)


@dataclass(frozen=True, eq=False)
class _Gradients:
    """Of the sum over slots."""

    h_MD: Tensor
    table_VD: Tensor
    bias_V: Tensor

    @classmethod
    def zero(cls, h_MD: Tensor, table_VD: Tensor, bias_V: Tensor) -> Self:
        return cls(torch.empty_like(h_MD), torch.zeros_like(table_VD), torch.zeros_like(bias_V))

    def add(self, rows: slice, slope_RV: Tensor, h_RD: Tensor, table_VD: Tensor) -> None:
        """Carry ∂/∂logits of some rows on to h, table and bias."""
        torch.mm(slope_RV, table_VD, out=self.h_MD[rows])
        self.table_VD.addmm_(slope_RV.T, h_RD)
        self.bias_V.add_(slope_RV.sum(0))


def _sweep(
    h_MD: Tensor,
    table_VD: Tensor,
    bias_V: Tensor,
    target_M: Tensor,
    weight_M: Tensor,
    offset_MV: Tensor | None,
    into: _Gradients | None = None,
) -> Tensor:
    """The sum, chunk by chunk; with `into`, its gradient as well: w · (softmax − one-hot of the target)."""
    total, size = h_MD.new_zeros(()), chunk_rows(len(table_VD))
    buffer_RV = h_MD.new_empty(min(size, len(h_MD)), len(table_VD))
    for start in range(0, len(h_MD), size):
        rows = slice(start, start + size)
        h_RD, target_R1, weight_R1 = h_MD[rows], target_M[rows, None], weight_M[rows, None]
        z_RV = torch.addmm(bias_V, h_RD, table_VD.T, out=buffer_RV[: len(h_RD)])
        if offset_MV is not None:
            z_RV += offset_MV[rows]
        above_R1 = z_RV.gather(1, target_R1) - z_RV.amax(1, keepdim=True)
        p_RV = torch.softmax(z_RV, 1, out=z_RV)
        # log p[target] by way of the largest p = 1 / Σ exp(z − max z) ≥ 1/V: p[target] itself may underflow.
        total -= (weight_R1 * (above_R1 + p_RV.amax(1, keepdim=True).log())).sum()
        if into is not None:
            into.add(rows, p_RV.mul_(weight_R1).scatter_add_(1, target_R1, -weight_R1), h_RD, table_VD)
    return total


class _WeightedCrossEntropy(Function):
    @staticmethod
    def forward(
        ctx: Any,
        h_MD: Tensor,
        table_VD: Tensor,
        bias_V: Tensor,
        target_M: Tensor,
        weight_M: Tensor,
        offset_MV: Tensor | None,
    ) -> Tensor:
        gradients = _Gradients.zero(h_MD, table_VD, bias_V)
        total = _sweep(h_MD, table_VD, bias_V, target_M, weight_M, offset_MV, gradients)
        ctx.save_for_backward(gradients.h_MD, gradients.table_VD, gradients.bias_V)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        h_MD, table_VD, bias_V = ctx.saved_tensors
        return slope * h_MD, slope * table_VD, slope * bias_V, None, None, None
