"""The descent: pairs that were shown against pairs that were drawn, the odds corrected for how they were drawn.

Shapes: U users, V items, H hours, K factors, M pairs, B pairs of a batch.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from unveil.cores import threads
from unveil.data.interactions import Interactions
from unveil.errors import refuse_unless
from unveil.propensity.impressions.model import ExposureModel
from unveil.propensity.impressions.pairs import Draw, Pairs
from unveil.propensity.impressions.shown import HOURS, Shown

Tables = tuple[NDArray[np.float64], NDArray[np.float64]]


@dataclass(frozen=True)
class Learning:
    """Sizes and pace. P, Q and W − 1 are drawn to 0 as by a normal prior of precision `penalty`:

    (penalty / 2) · (‖P‖² + ‖Q‖² + ‖W − 1‖²) is added to the loss of all pairs of an epoch.
    """

    width: int = 16
    epochs: int = 30
    patience: int = 3  # epochs without a gain on the validation days
    negatives: int = 8  # drawn anew for each impression in each epoch
    batch: int = 2048  # impressions
    lr: float = 3e-3
    penalty: float = 10.0

    def __post_init__(self) -> None:
        for name in ("width", "epochs", "patience", "negatives", "batch"):
            refuse_unless(getattr(self, name) >= 1, name, getattr(self, name), "at least 1")
        refuse_unless(0 < self.lr < float("inf"), "lr", self.lr, "above 0")
        refuse_unless(0 <= self.penalty < float("inf"), "penalty", self.penalty, "0 or more")


class Net(nn.Module):
    """ψ of pairs; it begins as what is shown of late, and learns what differs from it."""

    def __init__(self, sizes: tuple[int, int], shares: Tables, width: int, seed: int) -> None:
        super().__init__()
        users, items = sizes
        generator = torch.Generator().manual_seed(seed)
        self.P = nn.Parameter(torch.zeros(users, width))
        self.Q = nn.Parameter(0.1 * torch.randn(items, width, generator=generator))
        self.W = nn.Parameter(torch.ones(HOURS, width))
        self.line = nn.Parameter(torch.tensor([0.0, 1.0, 0.0]))
        self.recent_DV, self.steady_DV = (torch.tensor(table, dtype=torch.float32) for table in shares)

    def forward(self, user_B: Tensor, item_B: Tensor, day_B: Tensor, hour_B: Tensor) -> Tensor:
        """ψ_B."""
        recent_B, steady_B = self.recent_DV[day_B, item_B], self.steady_DV[day_B, item_B]
        shared_B = self.line[0] + self.line[1] * recent_B + self.line[2] * steady_B
        return shared_B + (self.P[user_B] * self.Q[item_B] * self.W[hour_B]).sum(1)

    def size(self) -> Tensor:
        """What the penalty is on."""
        return self.P.square().sum() + self.Q.square().sum() + (self.W - 1).square().sum()


def learnt(
    log: Interactions,
    shown: Shown,
    learn: Shown,
    held_out: Pairs,
    shares: Tables,
    how: Learning,
    rng: np.random.Generator,
    progress: Callable[[int, int], None],
) -> tuple[ExposureModel, list[dict[str, float]]]:
    """The weights of the epoch that the validation days like best."""
    net = Net((shown.n_users, shown.n_items), shares, how.width, int(rng.integers(2**31)))
    adam = torch.optim.Adam(net.parameters(), lr=how.lr)
    draw = Draw.mixed(how.negatives, learn.counts(shown.n_days).sum(0))
    best, kept, waited = _loss(net, held_out), _copy(net), 0
    epochs = [{"epoch": 0, "valid_log_loss": best}]
    for epoch in range(1, how.epochs + 1):
        with threads(1):  # most of a step is not torch's: a second thread gains nothing
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
        # All pairs that were shown are there, the others at their rate: an item's odds are higher by 1 / r_i than in
        # truth, among its shown and its drawn pairs alike.
        corrected_B = net(*_sides(pairs)) - torch.from_numpy(np.log(pairs.rate_M).astype(np.float32))
        loss = nn.functional.binary_cross_entropy_with_logits(corrected_B, _shown(pairs).float(), reduction="sum")
        adam.zero_grad()
        torch.autograd.backward(loss / how.batch + how.penalty / 2 * net.size() / len(learn))
        adam.step()


def _loss(net: Net, pairs: Pairs) -> float:
    """Nats for each impression, over all its items."""
    with torch.no_grad():
        each_M = nn.functional.binary_cross_entropy_with_logits(
            net(*_sides(pairs)), _shown(pairs).float(), reduction="none"
        )
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
    P, Q, W, line = (each.detach().numpy().copy() for each in (net.P, net.Q, net.W, net.line))
    tables = (net.recent_DV.numpy(), net.steady_DV.numpy())
    centre, slope, other = (float(value) for value in line)
    return ExposureModel(
        log.users, log.items, P, Q, W, *tables, (centre, slope, other), np.zeros((1, 2), np.float32), shown.first_day
    )
