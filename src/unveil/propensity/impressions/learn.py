"""The descent: pairs that were shown against pairs that were drawn, the odds corrected for how they were drawn.

Shapes: U users, V items, H hours, K factors, M pairs, B pairs of a batch.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from unveil.data.interactions import Interactions
from unveil.errors import UnveilError
from unveil.propensity.impressions.model import ExposureModel
from unveil.propensity.impressions.pairs import Draw, Pairs
from unveil.propensity.impressions.shown import HOURS, Shown

Floats = Any


@dataclass(frozen=True)
class Learning:
    """Sizes and pace. `penalty` · (‖P_s‖² + ‖Q_i‖² + b_i² + ‖W_h − 1‖²) is added to the loss of each pair."""

    width: int = 16
    epochs: int = 30
    patience: int = 3  # epochs without a gain on the validation days
    negatives: int = 8  # drawn anew for each impression in each epoch
    batch: int = 2048  # impressions
    lr: float = 5e-3
    penalty: float = 1e-3

    def __post_init__(self) -> None:
        for name in ("width", "epochs", "patience", "negatives", "batch"):
            if getattr(self, name) < 1:
                raise UnveilError("out of range", where=name, found=getattr(self, name), expected="at least 1")


class Net(nn.Module):
    """ψ of pairs; it begins as what is shown of late, and learns what differs from it."""

    def __init__(self, sizes: tuple[int, int], recent_DV: Floats, overall_V: Floats, width: int, seed: int) -> None:
        super().__init__()
        users, items = sizes
        generator = torch.Generator().manual_seed(seed)
        self.P = nn.Parameter(torch.zeros(users, width))
        self.Q = nn.Parameter(0.1 * torch.randn(items, width, generator=generator))
        self.W = nn.Parameter(torch.ones(HOURS, width))
        self.bias = nn.Parameter(torch.zeros(items))
        self.line = nn.Parameter(torch.tensor([0.0, 1.0, 0.0]))
        self.recent_DV, self.overall_V = (torch.tensor(table, dtype=torch.float32) for table in (recent_DV, overall_V))

    def forward(self, user_B: Tensor, item_B: Tensor, day_B: Tensor, hour_B: Tensor) -> tuple[Tensor, Tensor]:
        """ψ_B, and what the penalty is on."""
        P_BK, Q_BK, W_BK, bias_B = self.P[user_B], self.Q[item_B], self.W[hour_B], self.bias[item_B]
        recent_B, overall_B = self.recent_DV[day_B, item_B], self.overall_V[item_B]
        known_B = self.line[0] + self.line[1] * recent_B + self.line[2] * overall_B
        size_B = P_BK.square().sum(1) + Q_BK.square().sum(1) + (W_BK - 1).square().sum(1) + bias_B.square()
        return known_B + bias_B + (P_BK * Q_BK * W_BK).sum(1), size_B


def learnt(
    log: Interactions,
    learn: Shown,
    held_out: Pairs,
    recent_DV: Floats,
    overall_V: Floats,
    shown: Shown,
    how: Learning,
    rng: np.random.Generator,
    progress: Callable[[int, int], None],
) -> tuple[ExposureModel, list[dict[str, float]]]:
    """The weights of the epoch that the validation days like best."""
    net = Net((shown.n_users, shown.n_items), recent_DV, overall_V, how.width, int(rng.integers(2**31)))
    adam = torch.optim.Adam(net.parameters(), lr=how.lr)
    draw = Draw.mixed(how.negatives, learn.counts(shown.n_days).sum(0))
    best, kept, epochs = _loss(net, held_out), _copy(net), []
    waited = 0
    for epoch in range(1, how.epochs + 1):
        _epoch(net, adam, draw, learn, how, rng)
        loss = _loss(net, held_out)
        epochs.append({"epoch": epoch, "valid_log_loss": loss})
        progress(epoch, how.epochs)
        waited = 0 if loss < best else waited + 1
        if loss < best:
            best, kept = loss, _copy(net)
        if waited >= how.patience:
            break
    net.load_state_dict(kept)
    return _model(net, log, shown), epochs


def _epoch(net: Net, adam: torch.optim.Adam, draw: Draw, learn: Shown, how: Learning, rng: np.random.Generator) -> None:
    order = rng.permutation(len(learn))
    for start in range(0, len(order), how.batch):
        pairs = draw.pairs(learn.where(order[start : start + how.batch]), rng)
        logit_B, size_B = net(*_sides(pairs))
        corrected_B = logit_B - torch.from_numpy(np.log(pairs.rate_M).astype(np.float32)) * ~_shown(pairs)
        # The odds of a pair among those drawn are its odds among all, over the rate at which such a pair is drawn.
        loss = nn.functional.binary_cross_entropy_with_logits(corrected_B, _shown(pairs).float(), reduction="sum")
        adam.zero_grad()
        ((loss + how.penalty * size_B.sum()) / how.batch).backward()
        adam.step()


def _loss(net: Net, pairs: Pairs) -> float:
    """Nats for each impression, over all its items."""
    with torch.no_grad():
        logit_M, _ = net(*_sides(pairs))
        each_M = nn.functional.binary_cross_entropy_with_logits(logit_M, _shown(pairs).float(), reduction="none")
        return float((each_M.double() * torch.from_numpy(pairs.weight_M)).sum() / pairs.shown_M.sum())


def _sides(pairs: Pairs) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    user, item, day, hour = (
        torch.from_numpy(side.astype(np.int64)) for side in (pairs.user_M, pairs.item_M, pairs.day_M, pairs.hour_M)
    )
    return user, item, day, hour


def _shown(pairs: Pairs) -> Tensor:
    return torch.from_numpy(pairs.shown_M)


def _copy(net: Net) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in net.state_dict().items()}


def _model(net: Net, log: Interactions, shown: Shown) -> ExposureModel:
    P, Q, W, bias, line = (each.detach().numpy().copy() for each in (net.P, net.Q, net.W, net.bias, net.line))
    tables = (net.recent_DV.numpy(), net.overall_V.numpy())
    centre, slope, other = (float(value) for value in line)
    return ExposureModel(
        log.users, log.items, P, Q, W, bias, *tables, (centre, slope, other), (1.0, 0.0), shown.first_day
    )
