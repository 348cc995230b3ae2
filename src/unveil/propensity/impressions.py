"""Exposure from the impressions that a log records: which of them belong to training, counts, and the propensity.

Shapes: N rows of the log (in `ImpressionCounts`: those shown), U users, V items, M moments, P pairs of a moment and an
item, G groups (user, block of steps), E training events, S items of a sample.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import log as ln
from math import log1p
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor
from torch.nn.functional import softplus

from unveil.data.interactions import Interactions, Sequences
from unveil.errors import AtLeastOne, NotNegative, UnveilError, UpToOne
from unveil.propensity import factors
from unveil.propensity.base import Source, both_kinds

Mask = NDArray[np.bool_]

#: Groups of a batch, most items of a sample, and the largest learning rate.
_BATCH, _SAMPLE, _LR = 128, 4096, 0.03


def training_impressions(log: Interactions, train: Sequences) -> Mask:
    """The events of `train`, and the impressions without a click before anything that is held out.

    Before: by time if one point in time parts what is held out, else before each user's own first such event. (To stop
    at the last training click would favour clicks over skips.) `train` may begin later than the histories do
    (`Sequences.recent`): events before it are not held out but old, and so are impressions before the last of these.
    Moments stay whole: what was shown together with an event that is held out, or old, is out with it.
    """
    train_N = np.zeros(len(log), bool)
    train_N[train.event_N] = True
    clicked_N = np.ones(len(log), bool) if log.clicked is None else log.clicked
    rank_N, begin_N = _order(log)
    old_N = clicked_N & ~train_N & (rank_N < _first(log, train_N, rank_N, default=-1)[log.user])
    held_N = clicked_N & ~train_N & ~old_N
    early_N = begin_N < _first(log, held_N, begin_N, default=len(log))[log.user]
    if (time := log.time) is not None and held_N.any() and train_N.any() and time[train_N].max() < time[held_N].min():
        early_N = time < time[held_N].min()
    last_old_U = np.full(len(log.users), -1)
    np.maximum.at(last_old_U, log.user[old_N], begin_N[old_N])
    shown_N = (train_N | ~clicked_N) & early_N & (begin_N > last_old_U[log.user])
    return shown_N if log.exposed is None else shown_N & log.exposed


def training_skips(log: Interactions, train: Sequences) -> int:
    """How many of these have no click."""
    return 0 if log.clicked is None else int((training_impressions(log, train) & ~log.clicked).sum())


def skips_before_clicks(log: Interactions, train: Sequences) -> tuple[factors.Index, factors.Index]:
    """Rows of the training impressions without a click, in order, and of the training click that each precedes.

    That is the first click of the user at its moment or later; impressions after the last one precede none.
    """
    rank_N, begin_N = _order(log)
    skip_P = np.flatnonzero(training_impressions(log, train) & ~np.asarray(log.clicked))
    skip_P = skip_P[np.argsort(rank_N[skip_P])]
    event_E = train.event_N[np.argsort(rank_N[train.event_N])]
    at_P = np.searchsorted(rank_N[event_E], begin_N[skip_P])
    click_P = event_E[np.minimum(at_P, len(event_E) - 1)]
    kept_P = (at_P < len(event_E)) & (log.user[click_P] == log.user[skip_P])
    return skip_P[kept_P], click_P[kept_P].astype(np.int64)


def _order(log: Interactions) -> tuple[factors.Index, factors.Index]:
    """The place of each row in the order of histories, and that of the first row of its moment: time, step or row."""
    order_N, place_N = log.order(), np.arange(len(log))
    rank_N, begin_N = np.empty(len(log), np.int64), np.empty(len(log), np.int64)
    rank_N[order_N] = place_N
    clock_N = next((clock for clock in (log.time, log.step) if clock is not None), rank_N)
    new_N = np.ones(len(log), bool)
    new_N[1:] = (np.diff(log.user[order_N]) != 0) | (np.diff(clock_N[order_N]) != 0)
    begin_N[order_N] = np.maximum.accumulate(np.where(new_N, place_N, 0))
    return rank_N, begin_N


def _first(log: Interactions, rows_N: Mask, rank_N: factors.Index, *, default: int) -> factors.Index:
    """rank_U of each user's first such row, in the order of histories."""
    first_U = np.full(len(log.users), len(log))
    np.minimum.at(first_U, log.user[rows_N], rank_N[rows_N])
    return np.where(first_U == len(log), default, first_U)


@dataclass(frozen=True)
class ImpressionGroups:
    """Whether impressions come one at a time (a feed) or several together, of which a user may choose (lists).

    Together: of one user, at the same time or, where there are no times, the same step.
    """

    skips: int  # impressions without a click
    together: float  # the share of these that were shown with others
    with_click: float  # the share of these that were shown with one that was clicked

    @classmethod
    def of(cls, log: Interactions) -> "ImpressionGroups | None":
        """None where there are no impressions without a click, or neither times nor steps to tell."""
        if log.clicked is None or log.clicked.all() or (log.time is None and log.step is None):
            return None
        _, begin_N = _order(log)
        shown_N, clicked_N = (np.bincount(begin_N, weights)[begin_N[~log.clicked]] for weights in (None, log.clicked))
        return cls(len(shown_N), float((shown_N > 1).mean()), float((clicked_N > 0).mean()))

    @property
    def is_feed(self) -> bool:
        """Most were alone, and hardly one beside a click: nobody chose among them, as `corrected` and others assume.

        Of lists of which a log keeps few impressions most are alone too, but many of these are beside a click.
        """
        return self.together < 0.5 and self.with_click < 0.05


@dataclass(frozen=True, eq=False)
class ImpressionCounts:
    """In block b user s had `moments_G` moments; at `shown_GV` of them, which is sparse, item i was shown.

    Impressions without a click are in the log with probability `rate`, clicks always: to count alike, a click counts by
    the rate, and the expected count is rate · θ · moments for all items.
    """

    user_G: factors.Index
    block_G: factors.Index
    moments_G: factors.Values
    shown_GV: Any
    shape: tuple[int, int, int]  # users, items, blocks

    @classmethod
    def of(cls, log: Interactions, train: Sequences, blocks: factors.Blocks, rate: float = 1.0) -> "ImpressionCounts":
        """Of the training part. An item that occurs twice in a moment was shown once."""
        row_N = np.flatnonzero(training_impressions(log, train))
        user_N, item_N, step_N = log.user[row_N].astype(np.int64), log.item[row_N].astype(np.int64), steps(log, train)
        _, clock_N = np.unique((step_N if log.time is None else log.time)[row_N], return_inverse=True)
        _, first_M, moment_N = np.unique(user_N * len(row_N) + clock_N, return_index=True, return_inverse=True)
        # A click may stand in the middle of what was shown with it: the moment is at the last step of its rows.
        step_M = np.zeros(len(first_M), np.int64)
        np.maximum.at(step_M, moment_N, step_N[row_N])
        group_G, group_M = np.unique(user_N[first_M] * blocks.count + blocks.at(step_M), return_inverse=True)
        pair_P, pair_N = np.unique(moment_N * train.n_items + item_N, return_inverse=True)
        clicked_P = np.zeros(len(pair_P), bool)
        clicked_P[pair_N[np.ones(len(row_N), bool) if log.clicked is None else log.clicked[row_N]]] = True
        moment_P, item_P = np.divmod(pair_P, train.n_items)
        at = (group_M[moment_P], item_P)
        shown_GV = sparse.csr_matrix((np.where(clicked_P, rate, 1.0), at), shape=(len(group_G), train.n_items))
        moments_G = np.bincount(group_M, minlength=len(group_G)).astype(np.float64)
        size = (train.n_users, train.n_items, blocks.count)
        return cls(group_G // blocks.count, group_G % blocks.count, moments_G, shown_GV, size)

    def __len__(self) -> int:
        return len(self.user_G)


def steps(log: Interactions, train: Sequences) -> factors.Index:
    """The step of every row: the log's own, else that of the user's last training event before it, or of the first."""
    if log.step is not None:
        return log.step.astype(np.int64)
    rank_N, _ = _order(log)
    order_E = np.argsort(rank_N[train.event_N])
    event_E, step_E = train.event_N[order_E], train.step_N[order_E].astype(np.int64)
    at_N = np.maximum(np.searchsorted(rank_N[event_E], rank_N, side="right") - 1, 0)
    others_N = log.user[event_E[at_N]] != log.user
    return np.asarray(step_E[np.minimum(at_N + others_N, len(event_E) - 1)])


@dataclass(kw_only=True)
class Recorded(factors.FittedFactors):
    """θ_sib = σ(centre + a_s + d_i + Σ_k P_sk Q_ik W_bk), by the likelihood of what was shown at each moment.

    Item i is shown at each of the m moments of a user and block with probability θ and kept by the log with probability
    `rate`; it is found at n, which is binomial: −n log(rate · θ) − (m − n) log(1 − rate · θ). Clicks play no part.
    Assumes that the log keeps impressions at random, at the given rate. A moment of which it kept nothing is not
    counted: if few items are shown at a time, or few are kept, θ̂ is too large, by one factor for all items of a user
    and block as long as it stays well below 1, and by less for what is near 1.
    """

    log: Interactions = field(kw_only=False)
    rate: UpToOne = 1.0
    width: AtLeastOne = 16
    penalty: NotNegative = 1.0
    batches: AtLeastOne = 1500

    source: ClassVar[Source] = "impressions"

    def _estimate(self, train: Sequences, blocks: factors.Blocks) -> factors.Factors:
        if not training_skips(self.log, train):
            problem = f"the propensity {self.name!r} finds no impression without a click before what is held out"
            raise UnveilError(problem, hint="Use a longer log, or a propensity that needs no impressions.")
        counts = ImpressionCounts.of(self.log, train, blocks, self.rate)
        mean = float(counts.shown_GV.sum()) / (self.rate * float(counts.moments_G.sum()) * counts.shape[1])
        centre, generator = ln(mean) - log1p(-min(mean, 0.99)), torch.Generator().manual_seed(self.seed)
        tables = factors.FactorTables(counts.shape, self.width, centre, penalty=self.penalty, generator=generator)
        factors.minimise(tables.parameters(), self._losses(counts, tables), batches=self.batches, lr=_LR)
        return tables.factors()

    def _losses(self, counts: ImpressionCounts, tables: factors.FactorTables) -> Iterator[Tensor]:
        """Of batches of groups, each scaled to all of them; divided by the impressions."""
        rng, total = np.random.default_rng(self.seed), float(counts.shown_GV.sum())
        for group_B in factors.shuffled_batches(len(counts), _BATCH, self.batches, rng):
            item_S = rng.permutation(counts.shape[1])[:_SAMPLE]
            batch = impression_loss(counts, tables, group_B, item_S, self.rate)
            yield (batch * (len(counts) / len(group_B)) + tables.prior_loss()) / total


RecordedStatic, RecordedTemporal = both_kinds("recorded", Recorded)


def impression_loss(
    counts: ImpressionCounts, tables: factors.FactorTables, group_B: factors.Index, item_S: factors.Index, rate: float
) -> Tensor:
    """Σ −n log(rate θ) − (m − n) log(1 − rate θ) of these groups, up to a constant; `item_S` stand for all items."""
    user_B, block_B = torch.from_numpy(counts.user_G[group_B]), torch.from_numpy(counts.block_G[group_B])
    moments_B = torch.from_numpy(counts.moments_G[group_B].astype(np.float32))
    shown = counts.shown_GV[group_B].tocoo()
    row_P, item_P = torch.from_numpy(shown.row.astype(np.int64)), torch.from_numpy(shown.col.astype(np.int64))
    psi_P = tables.of_item(user_B[row_P], item_P, block_B[row_P])
    count_P = torch.from_numpy(shown.data.astype(np.float32))
    seen = count_P * (softplus(-psi_P) + log_unrecorded(psi_P, rate))
    psi_BS = tables.of_items(user_B, block_B, torch.from_numpy(item_S))
    unseen_B = moments_B * log_unrecorded(psi_BS, rate).sum(1) * (counts.shape[1] / len(item_S))
    return seen.sum() - unseen_B.sum()


def log_unrecorded(psi: Tensor, rate: float) -> Tensor:
    """log(1 − rate · σ(ψ)) = log(1 + (1 − rate) e^ψ) − log(1 + e^ψ)."""
    return -softplus(psi) if rate == 1 else softplus(psi + log1p(-rate)) - softplus(psi)
