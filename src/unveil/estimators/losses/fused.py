"""Projection and loss in one pass over chunks of rows.

The M × V logits never exist at once, and the gradient is formed while they are at hand: one projection, not two.
Shapes: M slots, D width, V items, R rows of a chunk.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import torch
from torch import Tensor
from torch.autograd.function import Function, once_differentiable

from unveil.estimators.losses.by_rows import Both, Wide
from unveil.estimators.losses.forms import Form

#: Rows of a chunk, and the number of logits beyond which a chunk has fewer rows.
ROWS, LOGITS = 256, 2**24


def chunk_rows(n_items: int) -> int:
    """Rows a chunk: 256, fewer above 65,536 items, at least 16."""
    return max(16, min(ROWS, LOGITS // max(n_items, 1)))


@dataclass(frozen=True, eq=False)
class Chunk:
    """Some rows of the slots, all items, and room for their logits."""

    rows: slice
    h_RD: Tensor
    table_VD: Tensor
    bias_V: Tensor
    target_R: Tensor
    weight_R: Tensor
    extra_RV: Tensor | None  # two numbers for each item where the form takes two: 2RV
    room: Tensor  # R · V numbers


@dataclass(frozen=True, eq=False)
class Gradients:
    """Of the sum over slots."""

    h_MD: Tensor
    table_VD: Tensor
    bias_V: Tensor

    @classmethod
    def of(cls, h_MD: Tensor, table_VD: Tensor, bias_V: Tensor) -> Self:
        """Zero, or nothing yet where there are rows to begin with."""
        make = torch.empty_like if len(h_MD) else torch.zeros_like
        return cls(make(h_MD), make(table_VD), make(bias_V))

    def add(self, chunk: Chunk, slope_RV: Tensor) -> None:
        """Carry ∂/∂logits of some rows on to h, table and bias; the first rows begin the sums."""
        torch.mm(slope_RV, chunk.table_VD, out=self.h_MD[chunk.rows])
        if chunk.rows.start == 0:
            torch.mm(slope_RV.T, chunk.h_RD, out=self.table_VD)
            torch.sum(slope_RV, 0, out=self.bias_V)
        else:
            self.table_VD.addmm_(slope_RV.T, chunk.h_RD)
            self.bias_V.add_(slope_RV.sum(0))


#: The loss of a chunk; where gradients are asked for, they are added to those given.
ChunkLoss = Callable[[Chunk, Gradients | None], Tensor]


def fused_loss(
    loss: ChunkLoss,
    h_MD: Tensor,
    table_VD: Tensor,
    bias_V: Tensor,
    target_M: Tensor,
    weight_M: Tensor,
    extra_MV: Wide | Both | None = None,
) -> Tensor:
    """Σ_m w_m · loss(h_m · tableᵀ + bias, target_m, extra_m).

    Differentiable once, in h, table and bias; weights and extras are constants.
    """
    weight_M = weight_M.detach().to(h_MD.dtype)
    learns = torch.is_grad_enabled() and any(x.requires_grad for x in (h_MD, table_VD, bias_V))
    apply: Callable[..., Tensor] = _FusedLoss.apply if learns else _sweep
    return apply(loss, h_MD, table_VD, bias_V, target_M, weight_M, extra_MV)


def by_slope(form: Form) -> ChunkLoss:
    """The loss of a chunk by a form: all its logits, their slope, and from there on to h, table and bias."""
    return partial(_by_slope, form)


def _by_slope(form: Form, chunk: Chunk, into: Gradients | None) -> Tensor:
    room_RV = chunk.room.view(len(chunk.h_RD), -1)
    z_RV = torch.addmm(chunk.bias_V, chunk.h_RD, chunk.table_VD.T, out=room_RV)
    extra_RV = None if chunk.extra_RV is None else chunk.extra_RV.to(z_RV.dtype)
    loss, slope_RV = form(z_RV, chunk.target_R[:, None], chunk.weight_R[:, None], extra_RV, into is not None)
    if into is not None:
        into.add(chunk, slope_RV)
    return loss


def _sweep(
    loss: ChunkLoss,
    h_MD: Tensor,
    table_VD: Tensor,
    bias_V: Tensor,
    target_M: Tensor,
    weight_M: Tensor,
    extra_MV: Wide | Both | None,
    into: Gradients | None = None,
) -> Tensor:
    """The sum, chunk by chunk; with `into`, its gradient as well."""
    total, size, V = h_MD.new_zeros(()), chunk_rows(len(table_VD)), len(table_VD)
    room = h_MD.new_empty(min(size, len(h_MD)) * V)
    for start in range(0, len(h_MD), size):
        rows = slice(start, start + size)
        h_RD, extra_RV = h_MD[rows], None if extra_MV is None else extra_MV[rows]
        chunk = Chunk(rows, h_RD, table_VD, bias_V, target_M[rows], weight_M[rows], extra_RV, room[: len(h_RD) * V])
        total += loss(chunk, into)
    return total


class _FusedLoss(Function):
    @staticmethod
    def forward(
        ctx: Any,
        loss: ChunkLoss,
        h_MD: Tensor,
        table_VD: Tensor,
        bias_V: Tensor,
        target_M: Tensor,
        weight_M: Tensor,
        extra_MV: Wide | Both | None,
    ) -> Tensor:
        gradients = Gradients.of(h_MD, table_VD, bias_V)
        total = _sweep(loss, h_MD, table_VD, bias_V, target_M, weight_M, extra_MV, gradients)
        ctx.save_for_backward(gradients.h_MD, gradients.table_VD, gradients.bias_V)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        h_MD, table_VD, bias_V = ctx.saved_tensors
        return None, slope * h_MD, slope * table_VD, slope * bias_V, None, None, None
