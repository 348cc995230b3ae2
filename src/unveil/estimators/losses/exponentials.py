"""The softmax's cross-entropy by sums of exponentials, tile by tile of the items.

With e = exp z and S = Σ_i e_i, of slots of weight w,

    Σ w (log S − z[target]),   ∂h = (w/S) e · table − w table[target],   ∂table = eᵀ (w/S) h, less w h at the target,

so p = e / S is never formed: each tile of logits has its exponentials taken while it is at hand, and that is all.
Shapes: R rows of a chunk, D width, V items, W items of a tile.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from unveil.estimators.losses.forms import cross_entropy
from unveil.estimators.losses.fused import Chunk, Gradients, by_slope

#: Items of a tile: large enough for a matrix product at full speed, small enough for the cache of a core.
TILE = 4096
#: Within these S and what is made of it are exact to rounding in single precision; beyond, logits are to be shifted.
LEAST, MOST = 1e-20, 1e20

_shifted = by_slope(cross_entropy)


def softmax_loss(chunk: Chunk, into: Gradients | None) -> Tensor:
    """Σ w (−log softmax(z + offset)[target]) of a chunk."""
    tiles = list(_tiles(chunk))
    e_h_RD, sum_R = torch.zeros_like(chunk.h_RD), torch.zeros_like(chunk.weight_R)
    for items, e_RW in tiles:
        _exponentials(chunk, items, e_RW)
        sum_R += e_RW.sum(1)
        if into is not None:
            e_h_RD.addmm_(e_RW, chunk.table_VD[items])
    if not ((sum_R > LEAST) & (sum_R < MOST)).all():
        return _shifted(chunk, into)
    if into is not None:
        _slopes(chunk, into, tiles, e_h_RD, chunk.weight_R / sum_R)
    return (chunk.weight_R * (sum_R.log() - _target_logit(chunk))).sum()


def _tiles(chunk: Chunk) -> Iterator[tuple[slice, Tensor]]:
    """Items by the tile, and room for their exponentials that lies together; other devices take all items at once."""
    R, V = len(chunk.h_RD), len(chunk.table_VD)
    size = TILE if chunk.h_RD.device.type == "cpu" else V
    for start in range(0, V, size):
        stop = min(start + size, V)
        yield slice(start, stop), chunk.room[R * start : R * stop].view(R, stop - start)


def _exponentials(chunk: Chunk, items: slice, e_RW: Tensor) -> None:
    torch.addmm(chunk.bias_V[items], chunk.h_RD, chunk.table_VD[items].T, out=e_RW)
    if chunk.extra_RV is not None:
        e_RW += chunk.extra_RV[:, items]
    e_RW.exp_()


def _target_logit(chunk: Chunk) -> Tensor:
    z_R = (chunk.h_RD * chunk.table_VD[chunk.target_R]).sum(1) + chunk.bias_V[chunk.target_R]
    if chunk.extra_RV is None:
        return z_R
    return z_R + chunk.extra_RV.gather(1, chunk.target_R[:, None])[:, 0]


def _slopes(chunk: Chunk, into: Gradients, tiles: list[tuple[slice, Tensor]], e_h_RD: Tensor, scale_R: Tensor) -> None:
    weight_R1, first = chunk.weight_R[:, None], chunk.rows.start == 0
    torch.mul(e_h_RD, scale_R[:, None], out=into.h_MD[chunk.rows])
    into.h_MD[chunk.rows] -= weight_R1 * chunk.table_VD[chunk.target_R]
    scaled_RD = chunk.h_RD * scale_R[:, None]
    for items, e_RW in tiles:
        if first:
            torch.mm(e_RW.T, scaled_RD, out=into.table_VD[items])
            torch.mv(e_RW.T, scale_R, out=into.bias_V[items])
        else:
            into.table_VD[items].addmm_(e_RW.T, scaled_RD)
            into.bias_V[items].addmv_(e_RW.T, scale_R)
    into.table_VD.index_add_(0, chunk.target_R, weight_R1 * chunk.h_RD, alpha=-1)
    into.bias_V.index_add_(0, chunk.target_R, chunk.weight_R, alpha=-1)
