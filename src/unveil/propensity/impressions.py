"""The impressions that belong to the training part of a log. Shapes: N rows of the log, U users."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import log, log1p
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor
from torch.nn.functional import softplus

from unveil.data.interactions import Interactions
from unveil.data.sequences import Sequences
from unveil.errors import UnveilError, refuse_unless
from unveil.processes import threads
from unveil.propensity.base import Kind, Source, register
from unveil.propensity.factored import Blocks, Factored, Index, Tables, dealt, descend
from unveil.propensity.factors import Factors

Mask = NDArray[np.bool_]
Rank = NDArray[np.int64]


def training_impressions(log: Interactions, train: Sequences) -> Mask:
    """The events of `train`, and what users were shown and left beside them, before anything that is held out.

    Where one moment parts what is held out from what is not, that moment counts; else each user's own first event
    that is held out. Seen from the end of a history that event is the first, second, … click: the impressions before
    it hold clicks and skips in their right proportion. To stop at the last training click would favour clicks.

    `train` may begin later than the histories do (`Sequences.recent`): events before a user's first in it are not held
    out but old, and what was left before the last of these is as old. Moments stay whole: what a user was shown
    together with an event that is held out, or old, is out with it, training events included.
    """
    train_N = np.zeros(len(log), bool)
    train_N[train.event_N] = True
    clicked_N = np.ones(len(log), bool) if log.clicked is None else log.clicked
    rank_N, begin_N = _order(log)
    old_N = clicked_N & ~train_N & (rank_N < _first(log, train_N, rank_N, of_none=-1)[log.user])
    held_N = clicked_N & ~train_N & ~old_N
    early_N = _before_moment(log, train_N, held_N)
    if early_N is None:
        early_N = begin_N < _first(log, held_N, begin_N, of_none=len(log))[log.user]
    last_old_U = np.full(len(log.users), -1)
    np.maximum.at(last_old_U, log.user[old_N], begin_N[old_N])
    shown_N = (train_N | ~clicked_N) & early_N & (begin_N > last_old_U[log.user])
    return shown_N if log.exposed is None else shown_N & log.exposed


def left_for_training(log: Interactions, train: Sequences) -> int:
    """How many of these nobody took."""
    return 0 if log.clicked is None else int((training_impressions(log, train) & ~log.clicked).sum())


def _order(log: Interactions) -> tuple[Rank, Rank]:
    """The place of each row in the order of histories, and that of the first row of its moment.

    A moment is a user's own time or, in a log without times, step; with neither, a row is a moment by itself.
    """
    order_N, place_N = log.order(), np.arange(len(log))
    rank_N, begin_N = np.empty(len(log), np.int64), np.empty(len(log), np.int64)
    rank_N[order_N] = place_N
    clock_N = next((clock for clock in (log.time, log.step) if clock is not None), rank_N)
    new_N = np.ones(len(log), bool)
    new_N[1:] = (np.diff(log.user[order_N]) != 0) | (np.diff(clock_N[order_N]) != 0)
    begin_N[order_N] = np.maximum.accumulate(np.where(new_N, place_N, 0))
    return rank_N, begin_N


def _before_moment(log: Interactions, train_N: Mask, held_N: Mask) -> Mask | None:
    """Rows before all that is held out; None where some of that came before a training event."""
    if log.time is None or not held_N.any() or not train_N.any():
        return None
    moment = log.time[held_N].min()
    return np.asarray(log.time < moment) if log.time[train_N].max() < moment else None


def _first(log: Interactions, of_N: Mask, rank_N: Rank, *, of_none: int) -> Rank:
    """rank_U of each user's first such row, in the order of histories; `of_none` where a user has none."""
    first_U = np.full(len(log.users), len(log))
    np.minimum.at(first_U, log.user[of_N], rank_N[of_N])
    return np.where(first_U == len(log), of_none, first_U)


Values = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Pages:
    """In block b user s had `moments_G` moments; at `shown_GV` of them, which is sparse, item i was shown.

    Of what was shown and left, a log may keep a sample, each with probability `rate`; what was taken is always there.
    To count as what was left does, a take counts by the rate: the expected count is rate · θ · moments for all.
    """

    user_G: Index
    block_G: Index
    moments_G: Values
    shown_GV: Any
    shape: tuple[int, int, int]  # users, items, blocks

    @classmethod
    def of(cls, log: Interactions, train: Sequences, blocks: Blocks, rate: float = 1.0) -> "Pages":
        """A moment is a user's own time, and in one page; an item that stands in it twice was shown once."""
        row_N = np.flatnonzero(training_impressions(log, train))
        user_N, item_N, step_N = log.user[row_N].astype(np.int64), log.item[row_N].astype(np.int64), steps(log, train)
        _, clock_N = np.unique((step_N if log.time is None else log.time)[row_N], return_inverse=True)
        _, first_M, moment_N = np.unique(user_N * len(row_N) + clock_N, return_index=True, return_inverse=True)
        # A take may stand in the midst of what was shown with it: the moment is at the last step of its rows.
        step_M = np.zeros(len(first_M), np.int64)
        np.maximum.at(step_M, moment_N, step_N[row_N])
        page_G, page_M = np.unique(user_N[first_M] * blocks.count + blocks.at(step_M), return_inverse=True)
        pair_P, pair_N = np.unique(moment_N * train.n_items + item_N, return_inverse=True)
        taken_P = np.zeros(len(pair_P), bool)
        taken_P[pair_N[np.ones(len(row_N), bool) if log.clicked is None else log.clicked[row_N]]] = True
        moment_P, item_P = np.divmod(pair_P, train.n_items)
        shown_GV = sparse.csr_matrix(
            (np.where(taken_P, rate, 1.0), (page_M[moment_P], item_P)), shape=(len(page_G), train.n_items)
        )
        size = (train.n_users, train.n_items, blocks.count)
        moments_G = np.bincount(page_M, minlength=len(page_G)).astype(np.float64)
        return cls(page_G // blocks.count, page_G % blocks.count, moments_G, shown_GV, size)

    def __len__(self) -> int:
        return len(self.user_G)


def steps(log: Interactions, train: Sequences) -> Index:
    """The step of every row: the log's own or, where it has none, that of the user's training event before it.

    What comes before the first has the step of the first.
    """
    if log.step is not None:
        return log.step.astype(np.int64)
    rank_N = np.empty(len(log), np.int64)
    rank_N[log.order()] = np.arange(len(log))
    order_E = np.argsort(rank_N[train.event_N])
    event_E, step_E = train.event_N[order_E], train.step_N[order_E].astype(np.int64)
    at_N = np.maximum(np.searchsorted(rank_N[event_E], rank_N, side="right") - 1, 0)
    others_N = log.user[event_E[at_N]] != log.user
    return np.asarray(step_E[np.minimum(at_N + others_N, len(event_E) - 1)])


#: Pages of a batch, and the most items that stand for all; the rate of the descent at its highest.
_BATCH, _SAMPLE, _LR = 128, 4096, 0.03


@dataclass
class Recorded(Factored):
    """θ_sib = σ(centre + a_s + d_i + Σ_k P_sk Q_ik W_bk), by the likelihood of what was shown, moment by moment.

    At each of the m moments of a user and a block of steps, item i is shown with probability θ and the log keeps that
    with probability `rate`: of m moments it is found at n, which is binomial,

        −n log(rate · θ) − (m − n) log(1 − rate · θ).

    Whether what was shown was liked plays no part: impressions tell exposure from relevance by themselves. A moment of
    which the log kept nothing is not counted: where few items are shown at a time, or few are kept, θ̂ is too large, by
    one factor for all items of a user and block as long as it stays well below 1, and by less for what is near 1.
    Fitted on the impressions of the training part alone. Assumes that the log keeps what was left and what was taken
    by chance, at the rate that it is told (of what was taken, which is always there, that share is counted).
    """

    log: Interactions
    rate: float = 1.0
    window: int | None = None
    blocks: int = 10
    width: int = 16
    penalty: float = 1.0
    batches: int = 1500
    seed: int = 0

    source: ClassVar[Source] = "impressions"
    name: ClassVar[str]

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse_unless(0 < self.rate <= 1, f"{self.name}.rate", self.rate, "above 0, at most 1")

    def _estimated(self, train: Sequences, blocks: Blocks) -> Factors:
        if not left_for_training(self.log, train):
            problem = f"the propensity {self.name!r} finds nothing that was shown and left before what is held out"
            raise UnveilError(problem, hint="Use a longer log, or a propensity that needs no impressions.")
        pages = Pages.of(self.log, train, blocks, self.rate)
        generator = torch.Generator().manual_seed(self.seed)
        tables = Tables(pages.shape, self.width, _centre(pages, self.rate), penalty=self.penalty, generator=generator)
        learnt = [each for each in tables.parameters() if each.requires_grad]
        with threads(1):  # steps of a few milliseconds: to share them out costs more
            descend(learnt, self._losses(pages, tables), batches=self.batches, lr=_LR)
        return tables.factors()

    def _losses(self, pages: Pages, tables: Tables) -> Iterator[Tensor]:
        """Of batches of all pages in random order, over and over; each as if it were all of them, for each count."""
        rng, total = np.random.default_rng(self.seed), float(pages.shown_GV.sum())
        for page_G in dealt(len(pages), _BATCH, self.batches, rng):
            item_S = rng.permutation(pages.shape[1])[:_SAMPLE]
            batch = surprise(pages, tables, page_G, item_S, self.rate)
            yield (batch * (len(pages) / len(page_G)) + tables.size()) / total


def surprise(pages: Pages, tables: Tables, page_G: Index, item_S: Index, rate: float) -> Tensor:
    """Σ −n log(rate θ) − (m − n) log(1 − rate θ) of these pages, up to a constant.

    What was shown counts as it is; of the sum over all items that were not, `item_S` stand for all.
    """
    user_G, block_G = torch.from_numpy(pages.user_G[page_G]), torch.from_numpy(pages.block_G[page_G])
    moments_G = torch.from_numpy(pages.moments_G[page_G].astype(np.float32))
    shown = pages.shown_GV[page_G].tocoo()
    row_P, item_P = torch.from_numpy(shown.row.astype(np.int64)), torch.from_numpy(shown.col.astype(np.int64))
    psi_P = tables.own(user_G[row_P], item_P, block_G[row_P])
    count_P = torch.from_numpy(shown.data.astype(np.float32))
    seen = count_P * (softplus(-psi_P) + unrecorded(psi_P, rate))
    psi_GS = tables.among(user_G, block_G, torch.from_numpy(item_S))
    unseen_G = moments_G * unrecorded(psi_GS, rate).sum(1) * (pages.shape[1] / len(item_S))
    return seen.sum() - unseen_G.sum()


def unrecorded(psi: Tensor, rate: float) -> Tensor:
    """log(1 − rate · σ(ψ)) = log(1 + (1 − rate) e^ψ) − log(1 + e^ψ)."""
    return -softplus(psi) if rate == 1 else softplus(psi + log1p(-rate)) - softplus(psi)


def _centre(pages: Pages, rate: float) -> float:
    """The logit of the mean θ."""
    mean = float(pages.shown_GV.sum()) / (rate * float(pages.moments_G.sum()) * pages.shape[1])
    return log(mean) - log1p(-min(mean, 0.99))


@register
@dataclass
class RecordedStatic(Recorded):
    """The same at all steps."""

    name: ClassVar[str] = "recorded-static"
    kind: ClassVar[Kind] = "static"


@register
@dataclass
class RecordedTemporal(Recorded):
    """Exposure that differs between blocks of steps."""

    name: ClassVar[str] = "recorded-temporal"
    kind: ClassVar[Kind] = "temporal"
