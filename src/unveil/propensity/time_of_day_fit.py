"""Learning exposure from impressions: earlier days to train, later ones to stop and calibrate, the last to evaluate.

Impressions against sampled negatives, the odds corrected for how they were drawn.
Shapes: U users, V items, H hours, D days, K factors, M pairs, B pairs of a batch.
"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Annotated

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression
from scipy.special import expit, logit
from torch import Tensor, nn
from torch.optim import Adam

from unveil.data.interactions import Interactions
from unveil.errors import AtLeastOne, NotNegative, Positive, UnveilError, check_ranges
from unveil.processes import threads
from unveil.propensity import impression_pairs
from unveil.propensity.impression_pairs import HOURS, Floats, Impressions, Pairs, Quality
from unveil.propensity.time_of_day import ExposureModel

_MOST_BINS, _EACH_BIN = 20, 100  # Most bins of the calibration curve, and the impressions that each needs
IDENTITY = np.zeros((1, 2), np.float32)  # The curve of a model without calibration: beyond its ends a curve has slope 1
Tables = tuple[Floats, Floats]
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Learning:
    """Sizes and rates. (penalty / 2) · (‖P‖² + ‖Q‖² + ‖W − 1‖²) is added to the loss of all pairs of an epoch."""

    width: AtLeastOne = 16
    epochs: AtLeastOne = 30
    patience: AtLeastOne = 3  # epochs without a gain on the validation days
    negatives: AtLeastOne = 8  # drawn anew for each impression in each epoch
    batch: AtLeastOne = 2048  # impressions
    lr: Positive = 3e-3
    penalty: NotNegative = 10.0

    def __post_init__(self) -> None:
        check_ranges(self, "")


@dataclass(frozen=True)
class ExposureFit:
    """How exposure is learnt and evaluated."""

    valid_days: AtLeastOne = 2
    test_days: AtLeastOne = 2
    look_back: AtLeastOne = 2  # first days from which nothing is learnt: too little came before them
    half_life: Positive = 1.0  # days after which an impression counts half in the recent shares …
    longer: Positive = 14.0  # … and in those over a longer time
    judged_negatives: AtLeastOne = 50  # of each held-out impression
    learning: Learning = field(default_factory=Learning)
    seed: Annotated[int, "0 or more"] = 0

    def __post_init__(self) -> None:
        check_ranges(self, "")


@dataclass(frozen=True, eq=False)
class FittedExposure:
    """A model, how good it is on the last days beside popularity, and what the days are."""

    model: ExposureModel
    quality: dict[str, Quality]  # model → figures on the held-out days
    days: dict[str, int]  # part → days
    impressions: dict[str, int]  # part → impressions
    epochs: list[dict[str, float]]  # the loss on the validation days after each; at 0 it is that of recent shares
    unknown: dict[str, float]  # share of the test impressions whose user, or item, the training days do not have


class ExposureNet(nn.Module):
    """ψ of pairs; it begins as the recent shares, and learns what differs from them."""

    def __init__(self, users: int, items: int, shares: Tables, width: int, seed: int) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.P = nn.Parameter(torch.zeros(users, width))
        self.Q = nn.Parameter(0.1 * torch.randn(items, width, generator=generator))
        self.W = nn.Parameter(torch.ones(HOURS, width))
        self.line = nn.Parameter(torch.tensor([0.0, 1.0, 0.0]))
        self.recent_DV, self.steady_DV = (torch.tensor(table, dtype=torch.float32) for table in shares)

    def forward(self, pairs: Pairs) -> Tensor:
        user_B, item_B, day_B, hour_B = map(torch.from_numpy, pairs.sides)
        recent_B, steady_B = self.recent_DV[day_B, item_B], self.steady_DV[day_B, item_B]
        shared_B = self.line[0] + self.line[1] * recent_B + self.line[2] * steady_B
        return shared_B + (self.P[user_B] * self.Q[item_B] * self.W[hour_B]).sum(1)

    def norm(self) -> Tensor:
        return self.P.square().sum() + self.Q.square().sum() + (self.W - 1).square().sum()

    def model(self, log: Interactions, first_day: int) -> ExposureModel:
        P, Q, W, line = (each.detach().numpy().copy() for each in (self.P, self.Q, self.W, self.line))
        tables = (self.recent_DV.numpy(), self.steady_DV.numpy())
        centre, slope, other = (float(value) for value in line)
        return ExposureModel(log.users, log.items, P, Q, W, *tables, (centre, slope, other), IDENTITY, first_day)


def fit(log: Interactions, how: ExposureFit, progress: Progress = lambda done, total: None) -> FittedExposure:
    """Train on the first days, stop and calibrate on the next, evaluate on the last."""
    shown = Impressions.of(log)
    days = _days(shown, how)
    learn, valid, test = (shown.between(*ends) for ends in days.values())
    rng = np.random.default_rng(how.seed)
    count_DV = shown.counts()
    shares = (
        np.log(impression_pairs.recent_share(count_DV, how.half_life)),
        np.log(impression_pairs.recent_share(count_DV, how.longer)),
    )
    uniform_V = np.full(shown.n_items, 1 / shown.n_items)
    held_out = impression_pairs.with_negatives(valid, how.judged_negatives, uniform_V, rng)
    net = ExposureNet(shown.n_users, shown.n_items, shares, how.learning.width, int(rng.integers(2**31)))
    epochs = train(net, learn, held_out, how.learning, rng, progress)
    model = calibrate(net.model(log, shown.first_day), held_out)
    pairs = impression_pairs.with_negatives(test, how.judged_negatives, uniform_V, rng)
    theta = _popularities(shown, days["learn"][1], how, pairs)
    theta["learnt"] = model.theta(*pairs.sides)
    quality = {name: impression_pairs.quality_of(each, pairs) for name, each in theta.items()}
    lengths = {name: stop - start for name, (start, stop) in days.items()}
    sizes = {"learn": len(learn), "valid": len(valid), "test": len(test)}
    sides = {"users": (test.user_N, learn.user_N), "items": (test.item_N, learn.item_N)}
    unknown = {name: float((~np.isin(there_N, known_N)).mean()) for name, (there_N, known_N) in sides.items()}
    return FittedExposure(model, quality, lengths, sizes, epochs, unknown)


def train(
    net: ExposureNet, learn: Impressions, held_out: Pairs, how: Learning, rng: np.random.Generator, progress: Progress
) -> list[dict[str, float]]:
    """Leaves the net with the weights of the epoch that is best on the validation days; gives the loss after each."""
    adam = Adam(net.parameters(), lr=how.lr)
    shown_V = impression_pairs.share(np.bincount(learn.item_N, minlength=learn.n_items))
    q_V = 0.5 / learn.n_items + 0.5 * shown_V  # half easy, half hard
    best, kept, waited = _loss(net, held_out), deepcopy(net.state_dict()), 0
    epochs = [{"epoch": 0, "valid_log_loss": best}]
    for epoch in range(1, how.epochs + 1):
        with threads(1):  # most of a step is not torch's: a second thread gains nothing
            _epoch(net, adam, q_V, learn, how, rng)
        loss = _loss(net, held_out)
        epochs.append({"epoch": epoch, "valid_log_loss": loss})
        progress(epoch, how.epochs)
        waited = 0 if loss < best else waited + 1
        if loss < best:
            best, kept = loss, deepcopy(net.state_dict())
        if waited >= how.patience:
            break
    net.load_state_dict(kept)
    return epochs


def _epoch(
    net: ExposureNet, adam: Adam, q_V: Floats, learn: Impressions, how: Learning, rng: np.random.Generator
) -> None:
    order = rng.permutation(len(learn))
    for start in range(0, len(order), how.batch):
        pairs = impression_pairs.with_negatives(learn.where(order[start : start + how.batch]), how.negatives, q_V, rng)
        # All pairs that were shown are there, the others at their rate: an item's odds are higher by 1 / r_i than the
        # true ones, among its shown and its drawn pairs alike.
        corrected_B = net(pairs) - torch.from_numpy(np.log(pairs.rate_M).astype(np.float32))
        shown_B = torch.from_numpy(pairs.shown_M).float()
        loss = nn.functional.binary_cross_entropy_with_logits(corrected_B, shown_B, reduction="sum")
        adam.zero_grad()
        torch.autograd.backward(loss / how.batch + how.penalty / 2 * net.norm() / len(learn))
        adam.step()


@torch.no_grad()
def _loss(net: ExposureNet, pairs: Pairs) -> float:
    """Nats for each impression, over all its items."""
    shown_M = torch.from_numpy(pairs.shown_M).float()
    each_M = nn.functional.binary_cross_entropy_with_logits(net(pairs), shown_M, reduction="none")
    return float((each_M.double() * torch.from_numpy(pairs.weight_M)).sum() / pairs.shown_M.sum())


def _days(shown: Impressions, how: ExposureFit) -> dict[str, tuple[int, int]]:
    """Which days are for what; the first ones only serve to look back on."""
    last = shown.n_days
    ends = (how.look_back, last - how.valid_days - how.test_days, last - how.test_days, last)
    if ends[1] <= ends[0]:
        expected = f"at least {how.look_back + how.valid_days + how.test_days + 1}"
        raise UnveilError("too few days to train, validate and test", found=last, expected=expected)
    parts = dict(zip(("learn", "valid", "test"), pairwise(ends), strict=True))
    for name, (start, stop) in parts.items():
        if not len(shown.between(start, stop)):
            raise UnveilError(f"nothing was shown on the days that are to {name}", hint="Choose other numbers of days.")
    return parts


def _popularities(shown: Impressions, until: int, how: ExposureFit, pairs: Pairs) -> dict[str, NDArray[np.floating]]:
    found: dict[str, NDArray[np.floating]] = {"uniform": np.full(len(pairs), 1 / shown.n_items)}
    for name, clicked in (("taken", True), ("shown", False)):
        count_DV = shown.counts(clicked=clicked)
        found[f"{name}, static"] = impression_pairs.share(count_DV[:until].sum(0))[pairs.item_M]
        found[f"{name}, of late"] = impression_pairs.recent_share(count_DV, how.half_life)[pairs.day_M, pairs.item_M]
    return found


def calibrate(model: ExposureModel, pairs: Pairs) -> ExposureModel:
    """The model with the curve through (logit of the mean θ, logit of the observed rate) of bins of equal mass.

    By isotonic regression the curve never falls.
    """
    psi_M = model.psi(*pairs.sides).astype(np.float64)
    bins = max(1, min(_MOST_BINS, int(pairs.shown_M.sum()) // _EACH_BIN))
    predicted_B, seen_B, size_B = impression_pairs.binned(expit(psi_M), pairs.shown_M, pairs.weight_M, bins)
    there = size_B > 0
    rate_B = isotonic_regression((seen_B[there] + 0.5) / (size_B[there] + 1), weights=size_B[there]).x
    points = logit(predicted_B[there] / size_B[there]), logit(rate_B)
    return replace(model, curve_B2=np.stack(points, axis=1).astype(np.float32))
