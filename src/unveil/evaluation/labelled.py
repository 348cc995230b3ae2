"""Labelled tests: what users like among items that were fully observed, or shown at random, instead of held out.

A log can only hold out what its users were shown and chose. A labelled test comes from elsewhere: every candidate was
seen by the user, or was shown at random, so that no exposure bias is in it.

Shapes: R rows of the test, T users with a row, B users of a batch, C candidates, P positives of a batch.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Self
from warnings import warn

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray
from torch import Tensor

from unveil.data.indexing import UNKNOWN, Index, Vocabulary
from unveil.data.interactions import Interactions, Sequences
from unveil.data.slots import histories
from unveil.errors import UnveilError, UnveilWarning
from unveil.evaluation.calibration import Reliability, fine_bins, of_all
from unveil.evaluation.protocols import seen_cells
from unveil.evaluation.ranking import Scorer, checked_scores, evaluating
from unveil.evaluation.result import Evaluation
from unveil.models.base import Model
from unveil.wording import quantity

PROTOCOL = "labelled"
#: Scores that are held at once.
_CELLS = 2**24
_BATCH = 256

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LabelledTest:
    """Rows of user, item and label, by user; each user's candidates are all of `candidate_C`, or the labelled items.

    Without labels every row is a positive, and candidates that are in no row are negatives.
    """

    user_R: Index
    item_R: Index
    label_R: NDArray[np.bool_]
    candidate_C: Index | None  # None: the labelled items of each user
    skipped: dict[str, int] = field(default_factory=dict)  # rows that are no part of the test, by reason

    @classmethod
    def of(
        cls,
        log: Interactions,
        users: Vocabulary,
        items: Vocabulary,
        sequences: Sequences,
        *,
        candidates: Sequence[str] | None = None,
        keep_seen: bool | None = None,
        where: object = None,
    ) -> Self:
        """From rows of raw ids; `clicked` (also called `label`) is the label. Where no row has a 0, or there are no
        labels, every row is a positive.

        Unknown users and items are skipped and counted. A positive that is in the user's own history is a leak: an
        error, unless `keep_seen` says to keep such rows (True) or to skip them (False).
        """
        user_R, item_R = users.index(log.users.ids)[log.user], items.index(log.items.ids)[log.item]
        label_R = np.ones(len(log), bool) if log.clicked is None else log.clicked
        if len(log) and not label_R.any():
            found = f"{quantity(len(log), 'row')}, all 0"
            raise UnveilError("all labels are alike", where=where, found=found, expected="some 1")
        if log.clicked is not None and len(log) and label_R.all():
            read = "read as positives alone; all other candidates are negatives"
            warn(f"{where}: all labels are 1: {read}", UnveilWarning, stacklevel=2)
        candidate_C, allowed_V = None, np.ones(len(items) + 1, bool)  # the last place is that of unknown items
        if candidates is not None or label_R.all():
            index = np.arange(len(items)) if candidates is None else items.index([*map(str, candidates)])
            candidate_C = np.unique(index[index != UNKNOWN]).astype(np.int32)
            if not len(candidate_C):
                raise UnveilError("no candidate is an item of the log", where=where, hint="Check their ids.")
            allowed_V[:-1] = np.isin(np.arange(len(items)), candidate_C)
        unknown_R = (user_R == UNKNOWN) | (item_R == UNKNOWN)
        seen_R = np.zeros(len(log), bool)
        seen_R[~unknown_R] = _in_history(sequences, user_R[~unknown_R], item_R[~unknown_R])
        leaks = np.flatnonzero(seen_R & label_R)
        if keep_seen is None and len(leaks):
            user, item = log.where(leaks[:1]).to_frame().row(0)[:2]
            raise UnveilError(
                "positives of the test are in the users' own histories",
                where=where,
                found=f"{quantity(len(leaks), 'row')}; the first: user {user}, item {item}",
                hint="Train on a log without them (held-out interactions are in histories, too), or --seen skip "
                "(of a validation: --set evaluation.seen=skip).",
            )
        reasons = {
            "unknown user": user_R == UNKNOWN,
            "unknown item": item_R == UNKNOWN,
            "not a candidate": ~allowed_V[item_R],
            "in the user's history": seen_R & (not keep_seen),
        }
        skipped, left_R = {}, np.ones(len(log), bool)
        for reason, out_R in reasons.items():
            if count := int((out_R & left_R).sum()):
                skipped[reason] = count
            left_R &= ~out_R
        if not label_R[left_R].any():
            found = ", ".join(f"{count} {reason}" for reason, count in skipped.items()) or "no row with is_rand 1"
            raise UnveilError("no positive is left in the test", where=where, found=found, hint="Check its ids.")
        # what was shown more often is there once: liked, if it was liked once
        order = np.lexsort((~label_R[left_R], item_R[left_R], user_R[left_R]))
        user_R, item_R, label_R = user_R[left_R][order], item_R[left_R][order], label_R[left_R][order]
        first_R = np.concatenate([[True], (np.diff(user_R) != 0) | (np.diff(item_R) != 0)])
        return cls(user_R[first_R], item_R[first_R], label_R[first_R], candidate_C, skipped)

    def __str__(self) -> str:
        found = f"{quantity(len(self.user_R), 'row')} of {quantity(len(np.unique(self.user_R)), 'user')}"
        skipped = ", ".join(f"{count:,} {reason}" for reason, count in self.skipped.items())
        return f"{found}; rows skipped: {skipped}" if skipped else found

    @property
    def fingerprint(self) -> str:
        """Of rows and candidates: what must agree before two evaluations are compared."""
        digest = sha256()
        for part in (self.user_R, self.item_R, self.label_R, self.candidate_C):
            digest.update(b"-" if part is None else np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()

    def some(self, user_T: Index) -> "LabelledTest":
        """The rows of these users alone."""
        keep_R = np.isin(self.user_R, user_T)
        rows = (self.user_R[keep_R], self.item_R[keep_R], self.label_R[keep_R])
        return LabelledTest(*rows, self.candidate_C, self.skipped)


@dataclass(frozen=True, eq=False)
class Block:
    """Users of a test with the scores of their candidates: what all metrics, and a calibration, are made of."""

    user_B: Index
    column_C: Index  # the item of each column
    scores_BC: Tensor
    positive_BC: Tensor
    negative_BC: Tensor


def blocks(
    scorer: Scorer, sequences: Sequences, test: LabelledTest, length: int, device: str | torch.device = "cpu"
) -> Iterator[Block]:
    """Scores of the candidates after each user's whole history.

    With candidates, those that are in no positive row and not in the history are negatives; else the rows of label 0.
    """
    column_C = np.unique(test.item_R) if test.candidate_C is None else test.candidate_C
    place_V = np.full(sequences.n_items, -1)
    place_V[column_C] = np.arange(len(column_C))
    user_T, start_T = np.unique(test.user_R, return_index=True)
    end_T = np.append(start_T[1:], len(test.user_R))
    size = max(1, min(_BATCH, _CELLS // sequences.n_items))
    for first in range(0, len(user_T), size):
        user_B = user_T[first : first + size]
        rows = slice(start_T[first], end_T[min(first + size, len(user_T)) - 1])
        row_R = np.searchsorted(user_B, test.user_R[rows])
        cell = (row_R, place_V[test.item_R[rows]])
        seen_B = sequences.length_U[user_B]
        with evaluating(scorer):
            tokens = histories(sequences, user_B, seen_B, length)
            scores_BV = checked_scores(scorer, tokens.to(device), sequences.n_items).float().cpu()
        positive_BC = np.zeros((len(user_B), len(column_C)), bool)
        positive_BC[cell] = test.label_R[rows]
        if test.candidate_C is None:
            negative_BC = np.zeros_like(positive_BC)
            negative_BC[cell] = ~test.label_R[rows]
        else:
            negative_BC = ~positive_BC
            row_N, item_N = seen_cells(sequences, user_B, seen_B)
            inside_N = place_V[item_N] >= 0
            negative_BC[row_N[inside_N], place_V[item_N[inside_N]]] = False
        scores_BC = scores_BV[:, torch.from_numpy(column_C.astype(np.int64))]
        yield Block(user_B, column_C, scores_BC, torch.from_numpy(positive_BC), torch.from_numpy(negative_BC))


def check_metric(name: str) -> None:
    """An error where there is no metric of that name."""
    if not re.fullmatch(r"(NDCG|Recall|MAP)@[1-9]\d{0,5}|AUC", name):
        raise UnveilError("no such metric", found=name, expected="NDCG@k, Recall@k, MAP@k or AUC")


def metrics(block: Block, ks: Sequence[int]) -> tuple[NDArray[np.bool_], dict[str, Floats]]:
    """Which users have both a positive and a negative, and each metric of those. With the positives of a user in order,
    the j-th of n at rank r_j among all candidates, and m negatives, ties counting against the positives:

    NDCG@k   = Σ_{r_j ≤ k} 1 / log2(1 + r_j)  /  Σ_{j ≤ min(n, k)} 1 / log2(1 + j)
    Recall@k = Σ_j 1[r_j ≤ k] / n
    MAP@k    = Σ_{r_j ≤ k} (j / r_j) / min(n, k)
    AUC      = Σ_j (1 − (#{negatives above} + ½ #{negatives tied}) / m) / n
    """
    positives_B, negatives_B = block.positive_BC.sum(1).numpy(), block.negative_BC.sum(1).numpy()
    valid_B = (positives_B > 0) & (negatives_B > 0)
    row_P, column_P = (part.numpy() for part in torch.nonzero(block.positive_BC, as_tuple=True))
    score_P = block.scores_BC[row_P, column_P]
    order = np.lexsort((-score_P.numpy(), row_P))
    row_P, score_P = row_P[order], score_P[order]
    first_B = np.searchsorted(row_P, np.arange(len(valid_B)))
    place_P = np.arange(len(row_P)) - first_B[row_P] + 1  # among the user's positives, from 1
    above_P, tied_P = _compared(block, row_P, place_P, score_P)
    rank_P = place_P + above_P + tied_P
    n_P = positives_B[row_P]

    def total(value_P: NDArray[Any]) -> Floats:
        value_B: Floats = np.bincount(row_P, value_P, len(valid_B)).astype(float)
        return value_B[valid_B]

    found = {"AUC": total((1 - (above_P + tied_P / 2) / np.maximum(negatives_B, 1)[row_P]) / n_P)}
    for k in ks:
        hit_P, few_P = rank_P <= k, np.minimum(n_P, k)
        ideal_N = np.cumsum(1 / np.log2(2 + np.arange(k)))
        found[f"NDCG@{k}"] = total(hit_P / np.log2(1 + rank_P) / ideal_N[few_P - 1])
        found[f"Recall@{k}"] = total(hit_P / n_P)
        found[f"MAP@{k}"] = total(hit_P * place_P / rank_P / few_P)
    return valid_B, found


def evaluate(
    scorer: Scorer,
    sequences: Sequences,
    test: LabelledTest,
    length: int,
    *,
    ks: Sequence[int] = (10, 50),
    seed: int = 0,
) -> Evaluation:
    """All metrics of one scorer, a row a user, with bootstrap intervals over users."""
    for k in ks:
        check_metric(f"NDCG@{k}")
    frames = []
    for block in blocks(scorer, sequences, test, length):
        valid_B, found = metrics(block, ks)
        columns = {f"{PROTOCOL}:{name}": value for name, value in found.items()}
        frames.append(pl.DataFrame({"user": block.user_B[valid_B], **columns}))
    frame = pl.concat(frames)
    if not len(frame):
        hint = "Name more candidates, or rows with label 0."
        raise UnveilError("no user of the test has both a positive and a negative", hint=hint)
    return Evaluation.of(frame, {}, test.fingerprint, seed=seed)


@dataclass(frozen=True, eq=False)
class LabelledValidation:
    """A labelled test that decides when to stop, or which settings are best: then its users are no test any more.

    The mean over users of `monitor`, after the histories of `sequences`, which hold no held-out interaction.
    """

    test: LabelledTest
    sequences: Sequences
    monitor: str

    def __post_init__(self) -> None:
        check_metric(self.monitor)

    def __str__(self) -> str:
        return f"validation {self.test}; do not report on these users"

    def __call__(self, scorer: Model) -> float:
        device, k = scorer.device, int(self.monitor.partition("@")[2] or 1)
        scored = blocks(scorer, self.sequences, self.test, scorer.config.length, device)
        return float(np.concatenate([metrics(block, [k])[1][self.monitor] for block in scored]).mean())


def reliability(scored: Iterable[Block]) -> Reliability:
    """What the scores promise of the labels, and what came: n_u users' positives, y_ui whether i is one of them.

    p_u(i), the softmax of the scores over the candidates of u, promises that i is a positive of u drawn at random,
    which it is with probability y_ui / n_u. Users without positives or negatives are left out.
    """
    found, users = list[Floats](), 0
    for block in scored:
        n_B = block.positive_BC.sum(1)
        valid_B = (n_B > 0) & block.negative_BC.any(1)
        compete_BC = (block.positive_BC | block.negative_BC)[valid_B]
        log_p_BC = block.scores_BC[valid_B].masked_fill(~compete_BC, -torch.inf).log_softmax(dim=1)
        found.append(fine_bins(log_p_BC, block.positive_BC[valid_B] / n_B[valid_B, None]))
        users += int(valid_B.sum())
    return of_all(np.sum(found, axis=0), users)


def _compared(block: Block, row_P: NDArray[Any], place_P: NDArray[Any], score_P: Tensor) -> tuple[Any, Any]:
    """How many of the user's negatives are above each positive, and how many are tied with it."""
    rivals_BC = block.scores_BC.masked_fill(~block.negative_BC, torch.inf).sort(dim=1).values
    cell = (torch.from_numpy(row_P), torch.from_numpy(place_P - 1))
    mine_BJ = torch.zeros(len(rivals_BC), int(place_P.max(initial=1)))
    mine_BJ[cell] = score_P
    below_P = torch.searchsorted(rivals_BC, mine_BJ)[cell].numpy()
    not_above_P = torch.searchsorted(rivals_BC, mine_BJ, right=True)[cell].numpy()
    return block.negative_BC.sum(1).numpy()[row_P] - not_above_P, not_above_P - below_P


def _in_history(sequences: Sequences, user_R: Index, item_R: Index) -> NDArray[np.bool_]:
    """Whether each user's history holds the item."""
    user_T = np.unique(user_R)
    row_N, item_N = seen_cells(sequences, user_T, sequences.length_U[user_T])
    wide = np.int64(sequences.n_items)
    held = np.unique(row_N.astype(np.int64) * wide + item_N)
    return np.isin(np.searchsorted(user_T, user_R) * wide + item_R, held)
