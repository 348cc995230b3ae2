"""How a signal becomes a loss: each form with its gradient, some slots and items at a time (M × V numbers are many).

Shapes: M slots, R of them, V items; Q places at which the integral of a race of exponential clocks is read.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import torch
from torch import Tensor
from torch.autograd.function import Function, once_differentiable
from torch.nn import functional as F

from unveil.data.slots import Slots


@dataclass(frozen=True, eq=False)
class ByRows:
    """x_MV, of which `[rows]` computes some rows and keeps none; `[:]` gives all, as a tensor."""

    slots: Slots
    make: Callable[[Slots], Tensor]  # x_RV of some of the slots, each by itself
    device: torch.device | str | None = None  # None: where they are made

    def __len__(self) -> int:
        return len(self.slots)

    def __getitem__(self, rows: Tensor | slice) -> Tensor:
        made_RV = self.make(self.slots.at(rows))
        return made_RV if self.device is None else made_RV.to(self.device)

    def to(self, device: torch.device | str) -> Self:
        """The same numbers on a device: they are made where the slots are, and moved."""
        return replace(self, device=device)


Wide = Tensor | ByRows  # a number for every slot and item, stored or computed when needed


@dataclass(frozen=True, eq=False)
class Both:
    """Two numbers for every slot and item; `[rows]` gives x_2RV."""

    first_MV: Wide
    second_MV: Wide

    def __getitem__(self, rows: Tensor | slice) -> Tensor:
        return torch.stack((self.first_MV[rows], self.second_MV[rows]))


#: (z_RV, target_R1, weight_R1, extra_RV, slope) → (loss, slope_RV): the weighted sum over the rows and, if `slope`, its
#: derivative in z, which may be written over z. The extra is a number for every item (`explained`: two).
LossAndSlope = tuple[Tensor, Tensor]
Form = Callable[[Tensor, Tensor, Tensor, Any, bool], LossAndSlope]


def cross_entropy(
    z_RV: Tensor, target_R1: Tensor, weight_R1: Tensor, offset_RV: Tensor | None, slope: bool
) -> LossAndSlope:
    """−log softmax(z + offset)[target], of slope softmax − one-hot of the target."""
    if offset_RV is not None:
        z_RV += offset_RV
    above_R1 = z_RV.gather(1, target_R1) - z_RV.amax(1, keepdim=True)
    p_RV = torch.softmax(z_RV, 1, out=z_RV)
    # log p[target] by way of the largest p = 1 / Σ exp(z − max z) ≥ 1/V: p[target] itself may underflow.
    total = -(weight_R1 * (above_R1 + p_RV.amax(1, keepdim=True).log())).sum()
    return total, p_RV.mul_(weight_R1).scatter_add_(1, target_R1, -weight_R1) if slope else p_RV


def pairwise(z_RV: Tensor, target_R1: Tensor, weight_R1: Tensor, rival_RV: Tensor, slope: bool) -> LossAndSlope:
    """Σ_j a_j · softplus(z_j − z_target) over the rivals j, of slope a_j · σ(z_j − z_target), and less their sum."""
    a_RV = (weight_R1 * rival_RV).scatter_(1, target_R1, 0.0)
    ahead_RV = z_RV - z_RV.gather(1, target_R1)
    total = (a_RV * F.softplus(ahead_RV)).sum()
    if not slope:
        return total, z_RV
    slope_RV = a_RV.mul_(ahead_RV.sigmoid_())
    return total, slope_RV.scatter_add_(1, target_R1, -slope_RV.sum(1, keepdim=True))


def soft_cross_entropy(
    z_RV: Tensor, target_R1: Tensor, weight_R1: Tensor, imputed_RV: Tensor, slope: bool
) -> LossAndSlope:
    """−Σ_i a_i log softmax(z)[i] with a_i what is imputed to i and, at the target, its weight; of slope (Σ a) p − a."""
    a_RV = imputed_RV.scatter_add(1, target_R1, weight_R1)
    log_p_RV = torch.log_softmax(z_RV, 1)
    total = -(a_RV * log_p_RV).sum()
    return total, log_p_RV.exp_().mul_(a_RV.sum(1, keepdim=True)).sub_(a_RV) if slope else log_p_RV


def explained(z_RV: Tensor, target_R1: Tensor, weight_R1: Tensor, both_2RV: Tensor, slope: bool) -> LossAndSlope:
    """−Σ_i a_i log softmax(z)[i] − w log softmax(z + offset)[target]: the offset explains the target, and not a."""
    imputed_RV, offset_RV = both_2RV
    imputed, steep_RV = soft_cross_entropy(z_RV, target_R1, torch.zeros_like(weight_R1), imputed_RV, slope)
    target, slope_RV = cross_entropy(z_RV, target_R1, weight_R1, offset_RV, slope)
    return imputed + target, slope_RV.add_(steep_RV) if slope else slope_RV


ROWS, LOGITS = 256, 2**24  # of a chunk, at most


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

    @property
    def beta(self) -> int:
        """The factor of a sum before these rows are added to it: the first rows begin it."""
        return int(self.rows.start > 0)


@dataclass(frozen=True, eq=False)
class Gradients:
    """Of the sum over slots."""

    h_MD: Tensor
    table_VD: Tensor
    bias_V: Tensor

    @classmethod
    def of(cls, h_MD: Tensor, table_VD: Tensor, bias_V: Tensor) -> Self:
        """Zero; of h and the table, uninitialised where there are rows to begin with."""
        make = torch.empty_like if len(h_MD) else torch.zeros_like
        return cls(make(h_MD), make(table_VD), torch.zeros_like(bias_V))

    def add(self, chunk: Chunk, slope_RV: Tensor) -> None:
        torch.mm(slope_RV, chunk.table_VD, out=self.h_MD[chunk.rows])
        self.table_VD.addmm_(slope_RV.T, chunk.h_RD, beta=chunk.beta)
        self.bias_V.add_(slope_RV.sum(0))


ChunkLoss = Callable[[Chunk, Gradients | None], Tensor]  # its loss; gradients are added to those given, if any are


def fused_loss(
    loss: ChunkLoss,
    h_MD: Tensor,
    table_VD: Tensor,
    bias_V: Tensor,
    target_M: Tensor,
    weight_M: Tensor,
    extra_MV: Wide | Both | None = None,
) -> Tensor:
    """Σ_m w_m · loss(h_m · tableᵀ + bias, target_m, extra_m), chunk by chunk.

    Differentiable once, in h, table and bias; weights and extras are constants.
    """
    weight_M, V = weight_M.detach().to(h_MD.dtype), len(table_VD)

    def sweep(into: Gradients | None) -> Tensor:
        total, size = h_MD.new_zeros(()), chunk_rows(V)
        room = h_MD.new_empty(min(size, len(h_MD)) * V)
        for start in range(0, len(h_MD), size):
            rows = slice(start, start + size)
            h_RD, extra_RV = h_MD[rows], None if extra_MV is None else extra_MV[rows]
            parts = (target_M[rows], weight_M[rows], extra_RV, room[: len(h_RD) * V])
            total += loss(Chunk(rows, h_RD, table_VD, bias_V, *parts), into)
        return total

    learns = torch.is_grad_enabled() and any(x.requires_grad for x in (h_MD, table_VD, bias_V))
    apply: Callable[..., Tensor] = _FusedLoss.apply
    return apply(sweep, h_MD, table_VD, bias_V) if learns else sweep(None)


class _FusedLoss(Function):
    @staticmethod
    def forward(ctx: Any, sweep: Callable[[Gradients], Tensor], *network: Tensor) -> Tensor:
        gradients = Gradients.of(*network)
        total = sweep(gradients)
        ctx.save_for_backward(gradients.h_MD, gradients.table_VD, gradients.bias_V)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        return None, *(slope * gradient for gradient in ctx.saved_tensors)


def by_slope(form: Form) -> ChunkLoss:
    """The loss of a chunk by a form: all its logits, their slope, and from there on to h, table and bias."""

    def loss(chunk: Chunk, into: Gradients | None) -> Tensor:
        room_RV = chunk.room.view(len(chunk.h_RD), -1)
        z_RV = torch.addmm(chunk.bias_V, chunk.h_RD, chunk.table_VD.T, out=room_RV)
        extra_RV = None if chunk.extra_RV is None else chunk.extra_RV.to(z_RV.dtype)
        total, slope_RV = form(z_RV, chunk.target_R[:, None], chunk.weight_R[:, None], extra_RV, into is not None)
        if into is not None:
            into.add(chunk, slope_RV)
        return total

    return loss


TILE = 4096  # items of a tile: a matrix product at full speed, within the cache of a core
LEAST, MOST = 1e-20, 1e20  # sums of exponentials beyond these need shifted logits

_shifted = by_slope(cross_entropy)


def softmax_loss(chunk: Chunk, into: Gradients | None) -> Tensor:
    """Σ w (−log softmax(z + offset)[target]) of a chunk."""
    tiles = list(_tiles(chunk))
    e_h_RD, sum_R = torch.zeros_like(chunk.h_RD), torch.zeros_like(chunk.weight_R)
    for items, e_RW in tiles:
        torch.addmm(chunk.bias_V[items], chunk.h_RD, chunk.table_VD[items].T, out=e_RW)
        if chunk.extra_RV is not None:
            e_RW += chunk.extra_RV[:, items]
        e_RW.exp_()
        sum_R += e_RW.sum(1)
        if into is not None:
            e_h_RD.addmm_(e_RW, chunk.table_VD[items])
    if not ((sum_R > LEAST) & (sum_R < MOST)).all():
        return _shifted(chunk, into)
    if into is not None:
        _slopes(chunk, into, tiles, e_h_RD, chunk.weight_R / sum_R)
    z_R = (chunk.h_RD * chunk.table_VD[chunk.target_R]).sum(1) + chunk.bias_V[chunk.target_R]
    if chunk.extra_RV is not None:
        z_R = z_R + chunk.extra_RV.gather(1, chunk.target_R[:, None])[:, 0]
    return (chunk.weight_R * (sum_R.log() - z_R)).sum()


_PAIRS = 1 << 14  # of slot and item, whose logits are computed at once

#: What is learnt from impressions without a click, given the logits z of the clicks and of these.
SKIP_LOSSES: Mapping[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "pairwise": lambda z_M, z_P, slot_P: F.softplus(z_P - z_M.index_select(0, slot_P)).sum(),
    "pointwise": lambda z_M, z_P, slot_P: F.softplus(-z_M).sum() + F.softplus(z_P).sum(),
}


@dataclass(frozen=True, eq=False)
class Skips:
    """P impressions without a click, each at the slot of a click, whose history they share; logits of these alone."""

    slot_P: Tensor
    item_P: Tensor
    form: str
    weight: float

    def to(self, device: torch.device | str) -> Self:
        return replace(self, slot_P=self.slot_P.to(device), item_P=self.item_P.to(device))

    def loss(self, h_MD: Tensor, table_VD: Tensor, bias_V: Tensor, target_M: Tensor, weight_M: Tensor) -> Tensor:
        """Σ_m w_m (−log softmax(z)[target]) + weight · the loss of `form` on the clicked items and these."""
        network = h_MD, table_VD, bias_V
        logits: Callable[..., Tensor] = _PairLogits.apply
        z_M = logits(*network, torch.arange(len(target_M), device=target_M.device), target_M)
        total = self.weight * SKIP_LOSSES[self.form](z_M, logits(*network, self.slot_P, self.item_P), self.slot_P)
        if weight_M.any():
            total = total + fused_loss(softmax_loss, *network, target_M, weight_M)
        return total


class _PairLogits(Function):
    """z_P = h[slot_P] · table[item_P] + bias[item_P]; D numbers of a pair are held for some of the pairs at a time."""

    @staticmethod
    def forward(ctx: Any, h_MD: Tensor, table_VD: Tensor, bias_V: Tensor, slot_P: Tensor, item_P: Tensor) -> Tensor:
        ctx.save_for_backward(h_MD, table_VD, slot_P, item_P)
        pairs = zip(torch.split(slot_P, _PAIRS), torch.split(item_P, _PAIRS), strict=True)
        return torch.cat([(h_MD[slot_R] * table_VD[item_R]).sum(1) for slot_R, item_R in pairs]) + bias_V[item_P]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope_P: Tensor) -> tuple[Tensor | None, ...]:
        h_MD, table_VD, slot_P, item_P = ctx.saved_tensors
        at_2P, size = torch.stack([slot_P, item_P]), (len(h_MD), len(table_VD))
        slope_MV = torch.sparse_coo_tensor(at_2P, slope_P, size, check_invariants=False)
        slope_V = slope_P.new_zeros(len(table_VD)).index_add_(0, item_P, slope_P)
        return slope_MV @ table_VD, slope_MV.T @ h_MD, slope_V, None, None


def _tiles(chunk: Chunk) -> Iterator[tuple[slice, Tensor]]:
    """Slices of items with contiguous room for their exponentials; on other devices than CPUs, all items at once."""
    R, V = len(chunk.h_RD), len(chunk.table_VD)
    size = TILE if chunk.h_RD.device.type == "cpu" else V
    for start in range(0, V, size):
        stop = min(start + size, V)
        yield slice(start, stop), chunk.room[R * start : R * stop].view(R, stop - start)


def _slopes(chunk: Chunk, into: Gradients, tiles: list[tuple[slice, Tensor]], e_h_RD: Tensor, scale_R: Tensor) -> None:
    weight_R1 = chunk.weight_R[:, None]
    torch.mul(e_h_RD, scale_R[:, None], out=into.h_MD[chunk.rows])
    into.h_MD[chunk.rows] -= weight_R1 * chunk.table_VD[chunk.target_R]
    scaled_RD = chunk.h_RD * scale_R[:, None]
    for items, e_RW in tiles:
        into.table_VD[items].addmm_(e_RW.T, scaled_RD, beta=chunk.beta)
        into.bias_V[items].addmv_(e_RW.T, scale_R)
    into.table_VD.index_add_(0, chunk.target_R, weight_R1 * chunk.h_RD, alpha=-1)
    into.bias_V.index_add_(0, chunk.target_R, chunk.weight_R, alpha=-1)


#: Places of the quadrature, and the widest step: at 1.25 the sum is right to 0.2%. Targets far behind have more places,
#: up to the most; only then the step is wider.
PLACES, WIDEST, MOST_PLACES = 16, 1.25, 64
_BEFORE, _AFTER = 5.0, 2.5  # log time before the first clock is likely to ring, and after the target's has
_PART = 1 << 18  # cells of a part, which fit the cache of a core
_RUNG = 60.0  # x at which e^(−x) is 0
_FAR = 70.0  # span of places within which x grows by a factor without underflow
_GROUP = 4  # items whose probabilities are multiplied before the logarithm: in single precision each is above 6e-8


def race(z_RV: Tensor, target_R1: Tensor, weight_R1: Tensor, theta_RV: Tensor, slope: bool) -> tuple[Tensor, Tensor]:
    """−log P(target) with P(i) = θ_i ∫ x_i e^(−x_i) Π_{j≠i} (1 − θ_j + θ_j e^(−x_j)) dv, where x_j = e^(z_j + v).

    Item j is exposed with probability θ_j; each exposed item has an exponential clock of rate e^z_j, and the first to
    ring, at the time e^v, is chosen: P ∝ e^z among the exposed, averaged over all sets that can be exposed.
    """
    total, size = z_RV.new_zeros(()), max(1, _PART // z_RV.shape[1])
    for start in range(0, len(z_RV), size):
        rows = slice(start, start + size)
        loss, slope_RV = _race(z_RV[rows], target_R1[rows], weight_R1[rows], theta_RV[rows], slope)
        total += loss
        if slope:
            z_RV[rows] = slope_RV
    return total, z_RV


def _race(z_RV: Tensor, target_R1: Tensor, weight_R1: Tensor, theta_RV: Tensor, slope: bool) -> tuple[Tensor, Tensor]:
    z_R1, theta_R1 = z_RV.gather(1, target_R1), theta_RV.gather(1, target_R1)
    v_RQ, log_step_RQ = _places(z_RV, z_R1, theta_RV)
    x_RQ = (z_R1 + v_RQ).clamp_max(_RUNG).exp()
    alone_RQ = (z_R1 + v_RQ - x_RQ) - torch.log1p(-theta_R1 * -torch.expm1(-x_RQ))
    hidden_RV = 1 - theta_RV
    others_RQ = torch.stack(
        [_log_product(torch.addcmul(hidden_RV, theta_RV, still_RV)) for _, still_RV in _clocks(z_RV, v_RQ)], 1
    )
    part_RQ = alone_RQ + others_RQ + log_step_RQ
    total = -(weight_R1 * (theta_R1.log() + part_RQ.logsumexp(1, keepdim=True))).sum()
    if not slope:
        return total, z_RV
    when_RQ = part_RQ.softmax(1)
    slope_RV, left_RV = torch.zeros_like(z_RV), torch.empty_like(z_RV)
    for q, (x_RV, still_RV) in enumerate(_clocks(z_RV, v_RQ)):
        torch.addcmul(hidden_RV, theta_RV, still_RV, out=left_RV)
        slope_RV.addcmul_(still_RV.mul_(x_RV).div_(left_RV), when_RQ[:, q, None])
    own_R1 = (when_RQ * x_RQ).sum(1, keepdim=True) - 1
    return total, slope_RV.mul_(theta_RV).scatter_(1, target_R1, own_R1).mul_(weight_R1)


def _places(z_RV: Tensor, z_R1: Tensor, theta_RV: Tensor) -> tuple[Tensor, Tensor]:
    """v_RQ, and the logarithm of each place's weight; the first is for all before it too, as the integrand is ∝ e^v."""
    pace_R1 = (z_RV + theta_RV.log()).logsumexp(1, keepdim=True)
    first_R1 = -torch.maximum(pace_R1, z_R1) - _BEFORE
    span_R1 = _AFTER - z_R1 - first_R1
    step_R1 = (span_R1 / (PLACES - 1)).clamp_max(WIDEST).maximum(span_R1 / (MOST_PLACES - 1))
    places = int((span_R1 / step_R1).ceil().nan_to_num(0.0).clamp(PLACES - 1, MOST_PLACES - 1).amax().item()) + 1
    v_RQ = first_R1 + step_R1 * torch.arange(places, dtype=z_RV.dtype, device=z_RV.device)
    log_step_RQ = step_R1.log().repeat(1, places)
    log_step_RQ[:, :1] -= torch.log(-torch.expm1(-step_R1))
    return v_RQ, log_step_RQ


def _clocks(z_RV: Tensor, v_RQ: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """x_RV and e^(−x_RV), place by place; multiplying x by the step's factor is quicker than another exp."""
    x_RV, still_RV = torch.empty_like(z_RV), torch.empty_like(z_RV)
    factor_R1 = (v_RQ[:, 1:2] - v_RQ[:, :1]).exp()
    near = bool((v_RQ[:, -1] - v_RQ[:, 0]).amax() < _FAR)
    for q in range(v_RQ.shape[1]):
        if near and q:
            x_RV.mul_(factor_R1)
        else:
            torch.add(z_RV, v_RQ[:, q, None], out=x_RV).exp_()
        x_RV.clamp_max_(_RUNG)
        yield x_RV, torch.neg(x_RV, out=still_RV).exp_()


def _log_product(left_RV: Tensor) -> Tensor:
    """Σ log over the items, by the logarithm of the product of four at a time."""
    R, V = left_RV.shape
    whole = V - V % _GROUP
    grouped_R = left_RV[:, :whole].view(R, _GROUP, whole // _GROUP).prod(1).log_().sum(1)
    return grouped_R + left_RV[:, whole:].log().sum(1)
