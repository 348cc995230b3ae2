"""The descent: pairs that were shown against pairs that were drawn, the odds corrected for how they were drawn.

Shapes: U users, V items, H hours, K factors, M pairs, B pairs of a batch.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from unveil.data.interactions import Interactions
from unveil.errors import UnveilError, refuse_unless
from unveil.processes import threads
from unveil.propensity.calibration import Quality, calibrated, judged
from unveil.propensity.impression_pairs import HOURS, Draw, Pairs, Shown, recent, share
from unveil.propensity.time_of_day import ExposureModel

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


Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class ExposureFit:
    """How exposure is learnt and judged."""

    valid_days: int = 2
    test_days: int = 2
    look_back: int = 2  # first days from which nothing is learnt: too little came before them
    half_life: float = 1.0  # days after which an impression counts half in what is shown of late …
    longer: float = 14.0  # … and over a longer time
    judged_negatives: int = 50  # of each held-out impression
    learning: Learning = field(default_factory=Learning)
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (
            ("look_back", 1),
            ("valid_days", 1),
            ("test_days", 1),
            ("judged_negatives", 1),
            ("seed", 0),
        ):
            refuse_unless(getattr(self, name) >= least, name, getattr(self, name), f"at least {least}")
        for name in ("half_life", "longer"):
            refuse_unless(0 < getattr(self, name) < float("inf"), name, getattr(self, name), "above 0")


@dataclass(frozen=True, eq=False)
class Fitted:
    """A model, how good it is on the last days beside popularity, and what the days are."""

    model: ExposureModel
    quality: dict[str, Quality]  # model → figures on the held-out days
    days: dict[str, int]  # part → days
    impressions: dict[str, int]  # part → impressions
    epochs: list[
        dict[str, float]
    ]  # the loss on the validation days after each; at 0 it is that of what is shown of late
    strangers: dict[str, float]  # share of the test impressions whose user, or item, the fitted days do not have


def fit(log: Interactions, how: ExposureFit, progress: Progress = lambda done, total: None) -> Fitted:
    """Fit on the first days, stop and calibrate on the next, judge on the last."""
    shown = Shown.of(log)
    days = _days(shown, how)
    learn, valid, test = (shown.between(*ends) for ends in days.values())
    rng = np.random.default_rng(how.seed)
    count_DV = shown.counts(shown.n_days)
    shares = np.log(recent(count_DV, how.half_life)), np.log(recent(count_DV, how.longer))
    uniform = Draw(how.judged_negatives, np.full(shown.n_items, 1 / shown.n_items))
    held_out = uniform.pairs(valid, rng)
    model, epochs = learnt(log, shown, learn, held_out, shares, how.learning, rng, progress)
    model = calibrated(model, held_out)
    pairs = uniform.pairs(test, rng)
    theta = {**_popularities(shown, days["learn"][1], how, pairs), "learnt": _of(model, pairs)}
    return Fitted(
        model,
        {name: judged(each, pairs) for name, each in theta.items()},
        {name: stop - start for name, (start, stop) in days.items()},
        {"learn": len(learn), "valid": len(valid), "test": len(test)},
        epochs,
        {
            "users": float((~np.isin(test.user_N, learn.user_N)).mean()),
            "items": float((~np.isin(test.item_N, learn.item_N)).mean()),
        },
    )


def _days(shown: Shown, how: ExposureFit) -> dict[str, tuple[int, int]]:
    """Which days are for what; the first ones only serve to look back on."""
    last = shown.n_days
    ends = (how.look_back, last - how.valid_days - how.test_days, last - how.test_days, last)
    if ends[1] <= ends[0]:
        expected = f"at least {how.look_back + how.valid_days + how.test_days + 1}"
        raise UnveilError("too few days to learn from, to stop by and to judge on", found=last, expected=expected)
    parts = dict(zip(("learn", "valid", "test"), pairwise(ends), strict=True))
    for name, (start, stop) in parts.items():
        if not len(shown.between(start, stop)):
            raise UnveilError(f"nothing was shown on the days that are to {name}", hint="Choose other numbers of days.")
    return parts


def _of(model: ExposureModel, pairs: Pairs) -> Any:
    return model.theta(pairs.user_M, pairs.item_M, pairs.day_M, pairs.hour_M)


def _popularities(shown: Shown, until: int, how: ExposureFit, pairs: Pairs) -> dict[str, Any]:
    """What is counted: in what users took and in what they were shown, on the fitted days and of late."""
    found = {"uniform": np.full(len(pairs), 1 / shown.n_items)}
    for name, taken in (("taken", True), ("shown", False)):
        count_DV = shown.counts(shown.n_days, taken=taken)
        found[f"{name}, static"] = share(count_DV[:until].sum(0))[pairs.item_M]
        found[f"{name}, of late"] = recent(count_DV, how.half_life)[pairs.day_M, pairs.item_M]
    return found
