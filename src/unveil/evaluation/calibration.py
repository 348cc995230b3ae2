"""Calibration: scores read as log-probabilities promise something. Is it kept? Shapes: B cases of a batch, C cases, V
items, F fine bins, G bins."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unveil.data.interactions import Sequences
from unveil.data.slots import histories
from unveil.data.splits import EvalCases
from unveil.evaluation.evaluator import CELLS
from unveil.evaluation.protocols import seen_cells
from unveil.evaluation.ranking import Scorer, checked_scores, evaluating

Floats = NDArray[np.float64]

BINS = 10
MOST = 20_000  # cases that are looked at
_FINE, _WIDTH = 400, 0.1  # log p is counted in bins of a tenth, down to e^−40; only afterwards are the bins drawn


@dataclass(frozen=True)
class Reliability:
    """Bin by bin, from the least likely: what was promised on average, and how often it came."""

    predicted: tuple[float, ...]
    observed: tuple[float, ...]
    size: tuple[float, ...]  # cases, or hits that were promised
    error: float


@dataclass(frozen=True)
class Calibration:
    """How far a model's probabilities can be believed, on cases that it was not trained on."""

    first: Reliability  # of the item in the first place
    items: Reliability  # of every item at every case
    log_loss: float  # mean of −log p(target), in nats
    cases: int


def calibration(
    scorer: Scorer,
    cases: EvalCases,
    sequences: Sequences,
    length: int,
    *,
    exclude_seen: bool = True,
    most: int = MOST,
    seed: int = 0,
) -> Calibration:
    """p_c(i) = softmax of the scores over the items that compete at case c: as in the full ranking, where seen items
    may be left out and the target always competes. Of more than `most` cases so many are drawn.
    """
    if len(cases) > most:
        cases = cases.some(np.sort(np.random.default_rng(seed).choice(len(cases), most, replace=False)))
    sure_C, hit_C, loss_C = (np.zeros(len(cases)) for _ in range(3))
    fine_3F = np.zeros((3, _FINE))
    size = max(1, min(256, CELLS // sequences.n_items))
    with evaluating(scorer):
        for start in range(0, len(cases), size):
            part = slice(start, start + size)
            log_p_BV = _log_shares(scorer, cases, sequences, length, part, exclude_seen=exclude_seen)
            item_B = torch.from_numpy(cases.item_C[part].astype(np.int64))
            best = log_p_BV.max(dim=1)
            sure_C[part] = best.values.exp().numpy()
            hit_C[part] = (best.indices == item_B).numpy()
            loss_C[part] = -log_p_BV.gather(1, item_B[:, None])[:, 0].numpy()
            fine_3F += fine_bins(log_p_BV, torch.zeros_like(log_p_BV).scatter(1, item_B[:, None], 1.0))
    items = of_all(fine_3F, len(cases))
    return Calibration(of_first(sure_C, hit_C), items, float(loss_C.mean()), len(cases))


def fine_bins(log_p_BV: Tensor, share_BV: Tensor) -> Floats:
    """By log p of a case and an item, the least likely first: how many, how much they promise, how much came."""
    bin_N = (_FINE - 1 - (-log_p_BV / _WIDTH).clamp(0, _FINE - 1).long()).flatten()
    values = (log_p_BV > -torch.inf, log_p_BV.exp(), share_BV)
    return np.stack([torch.bincount(bin_N, value.double().flatten(), _FINE).numpy() for value in values])


def of_first(sure_C: Floats, hit_C: Floats) -> Reliability:
    """Three to ten bins of equally many cases, few where hits are few: chance would make up the error of others.

    ECE = Σ_g (C_g / C) · |observed_g − predicted_g|
    """
    bins = int(np.clip(hit_C.sum() // 5, 3, BINS))  # five hits a bin, on average
    order_C = np.argsort(sure_C, kind="stable")
    groups = [group for group in np.array_split(order_C, min(bins, len(order_C))) if len(group)]
    predicted, observed = ([float(value_C[group].mean()) for group in groups] for value_C in (sure_C, hit_C))
    size = [float(len(group)) for group in groups]
    off = sum(n * abs(o - p) for n, o, p in zip(size, observed, predicted, strict=True))
    return Reliability(tuple(predicted), tuple(observed), tuple(size), off / len(sure_C))


def of_all(fine_3F: Floats, cases: int) -> Reliability:
    """Bins of about equally many promised hits; the error is Σ_g |hits_g − promised_g| / C."""
    pairs_F, mass_F, hits_F = fine_3F
    middle_F = (np.cumsum(mass_F) - mass_F / 2) / mass_F.sum()
    group_F = np.minimum((middle_F * BINS).astype(int), BINS - 1)
    pairs_G, mass_G, hits_G = (np.bincount(group_F, value_F, BINS) for value_F in (pairs_F, mass_F, hits_F))
    there_G = pairs_G > 0
    predicted, observed = mass_G[there_G] / pairs_G[there_G], hits_G[there_G] / pairs_G[there_G]
    error = float(np.abs(hits_G - mass_G).sum() / cases)
    return Reliability(tuple(predicted.tolist()), tuple(observed.tolist()), tuple(mass_G[there_G].tolist()), error)


def _log_shares(
    scorer: Scorer, cases: EvalCases, sequences: Sequences, length: int, part: slice, *, exclude_seen: bool
) -> Tensor:
    """log p_BV; −∞ for items that do not compete."""
    user_B, seen_B = cases.user_C[part], cases.seen_C[part]
    scores_BV = checked_scores(scorer, histories(sequences, user_B, seen_B, length), sequences.n_items).cpu()
    if not exclude_seen:
        return scores_BV.log_softmax(dim=1)
    item_B1 = torch.from_numpy(cases.item_C[part].astype(np.int64))[:, None]
    row_N, seen_N = (torch.from_numpy(cell_N) for cell_N in seen_cells(sequences, user_B, seen_B))
    open_BV = scores_BV.clone()
    open_BV[row_N, seen_N] = -torch.inf
    return open_BV.scatter(1, item_B1, scores_BV.gather(1, item_B1)).log_softmax(dim=1)
