"""The likelihood of a choice among randomly exposed items, as a race of exponential clocks.

Shapes: R rows of a chunk, V items, Q places at which the integral is read.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

#: Places, and the most that may lie between two of them: at 1.25 a sum over a Gumbel bump is right to 0.2%. Where a
#: target is so far behind that these do not reach, there are more places, up to the most; only then they lie wider.
PLACES, WIDEST, MOST_PLACES = 16, 1.25, 64
#: How far, in logarithms of time, before the first finish the places begin, and how far after the target's they end.
_BEFORE, _AFTER = 5.0, 2.5
#: Cells of a part: what is computed of them stays in the cache of a core.
_CELLS = 1 << 18
#: A clock this far gone has rung for sure.
_RUNG = 60.0
#: Between places nearer than this: what is too small for a number at the first is next to nothing at the last.
_FAR = 70.0
#: Items whose chances are multiplied before the logarithm: in single precision each is above 6e-8.
_GROUP = 4


def race(z_RV: Tensor, target_R1: Tensor, weight_R1: Tensor, theta_RV: Tensor, slope: bool) -> tuple[Tensor, Tensor]:
    """−log P(target) with P(i) = θ_i ∫ x_i e^(−x_i) Π_{j≠i} (1 − θ_j + θ_j e^(−x_j)) dv, where x_j = e^(z_j + v).

    Item j is exposed with probability θ_j; the exposed start a clock of rate e^z_j each, and the first to ring, at the
    time e^v, is chosen: that is P ∝ e^z among the exposed, averaged over all that can be exposed. The integrand is
    smooth and falls off at both ends, so that a sum at even places is all but exact.
    """
    total, size = z_RV.new_zeros(()), max(1, _CELLS // z_RV.shape[1])
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
    """v_RQ from before any clock is likely to ring to after the target's has; and the logarithm of what each counts.

    The first place stands for all before it as well: there the integrand grows as e^v, a geometric sum.
    """
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
    """x_RV and e^(−x_RV), that a clock has not rung, at one place after the other; the places of a row lie evenly.

    From one place to the next x grows by a factor, which is far quicker than another exponential.
    """
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
    """Σ log over the items, by the logarithm of the product of four at a time: no four of them can be too small."""
    R, V = left_RV.shape
    whole = V - V % _GROUP
    grouped_R = left_RV[:, :whole].view(R, _GROUP, whole // _GROUP).prod(1).log_().sum(1)
    return grouped_R + left_RV[:, whole:].log().sum(1)
