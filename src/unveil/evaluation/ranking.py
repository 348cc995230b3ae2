"""Scorers, and from their scores to ranks and lists. One rule for ties, everywhere.

**Ties go against the target**: its rank is 1 plus the number of candidates that score at least as high, so that equal
scores for all items put every target last. In a recommended list equal scores stand in the order of item indices.

Shapes: B cases, N candidates, V items, K places. `barred` names cells of scores_BV as (row, item) pairs.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from unveil.errors import UnveilError
from unveil.evaluation.metrics import NOBODY


class Scorer(Protocol):
    """Histories in, a score for every item out; the higher the score, the nearer to the top. `token_BL` is
    right-aligned, its last column is MASK: the step to predict."""

    def scores(self, token_BL: Tensor) -> Tensor:
        """scores_BV of all items at the next step."""


@contextmanager
def evaluating(scorer: Scorer) -> Iterator[None]:
    """No gradients and, in a network, no dropout while scores are computed; the mode is restored afterwards."""
    training = isinstance(scorer, nn.Module) and scorer.training
    if isinstance(scorer, nn.Module):
        scorer.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        if isinstance(scorer, nn.Module):
            scorer.train(training)


def checked_scores(scorer: Scorer, token_BL: Tensor, n_items: int) -> Tensor:
    """The scores of a batch, refused where they cannot be ranked."""
    scores_BV = scorer.scores(token_BL)
    name = type(scorer).__name__
    if scores_BV.shape != (len(token_BL), n_items):
        expected = f"{(len(token_BL), n_items)}: a score for each history and item"
        raise UnveilError("scores of the wrong shape", where=name, found=tuple(scores_BV.shape), expected=expected)
    if bool(torch.isnan(scores_BV.amax())):
        hint = "The model has most likely diverged: lower the learning rate, or clip the weights of the estimator."
        raise UnveilError("some scores are not numbers and cannot be ranked", where=name, found="NaN", hint=hint)
    return scores_BV


Cells = tuple[Tensor, Tensor]


def rank_among(scores_BV: Tensor, item_B: Tensor, negative_BN: Tensor) -> Tensor:
    """rank_B of the items `item_B` among their negatives: 1 + Σ_n 1[score of negative n ≥ score of the item]."""
    target_B1 = scores_BV.gather(1, item_B[:, None])
    return 1 + (scores_BV.gather(1, negative_BN) >= target_B1).sum(dim=1)


def rank_among_all(scores_BV: Tensor, item_B: Tensor, barred: Cells) -> Tensor:
    """rank_B of the items `item_B` among all others that are not barred; an item competes even if it is barred."""
    target_B1 = scores_BV.gather(1, item_B[:, None])
    rivals_BV = scores_BV.clone()
    rivals_BV[barred] = torch.nan  # nothing compares with NaN, not even −∞
    rivals_BV.scatter_(1, item_B[:, None], torch.nan)
    return 1 + (rivals_BV >= target_B1).sum(dim=1, dtype=torch.int32).long()


def top_items(scores_BV: Tensor, k: int, barred: Cells) -> Tensor:
    """top_BK: the k items of highest score, best first, equal scores by item index. Items that are barred or score −∞
    are never listed; where too few are left, `NOBODY` fills the places."""
    open_BV = scores_BV.clone()
    open_BV[barred] = -torch.inf
    return _in_order(open_BV, _best(open_BV, k), k)


def _best(scores_BV: Tensor, k: int) -> Tensor:
    """Which k items make the list, in any order. `topk` alone would pick any of those that share the last place."""
    n_items = scores_BV.shape[1]
    if n_items <= k:
        return torch.arange(n_items, device=scores_BV.device).expand(len(scores_BV), -1)
    value_BK1, item_BK1 = scores_BV.topk(k + 1)
    best_BK = item_BK1[:, :k].contiguous()
    shared_B = value_BK1[:, k] == value_BK1[:, k - 1]
    if bool(shared_B.any()):
        best_BK[shared_B] = _first_of_equals(scores_BV[shared_B], value_BK1[shared_B, k], k)
    return best_BK


def _first_of_equals(scores_BV: Tensor, last_B: Tensor, k: int) -> Tensor:
    """All items above the score of the last place, then the lowest item indices of those at it."""
    n_items = scores_BV.shape[1]
    early_V = torch.arange(n_items, 0, -1, dtype=torch.int32, device=scores_BV.device)
    key_BV = torch.where(scores_BV > last_B[:, None], early_V + n_items, early_V)
    return key_BV.masked_fill_(scores_BV < last_B[:, None], 0).topk(k).indices


def _in_order(scores_BV: Tensor, item_BK: Tensor, k: int) -> Tensor:
    by_index_BK = item_BK.sort(dim=1).values
    score_BK, order_BK = scores_BV.gather(1, by_index_BK).sort(dim=1, descending=True, stable=True)
    listed_BK = by_index_BK.gather(1, order_BK).masked_fill(score_BK == -torch.inf, NOBODY)
    return pad(listed_BK, (0, k - listed_BK.shape[1]), value=NOBODY)
