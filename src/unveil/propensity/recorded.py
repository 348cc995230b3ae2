"""Exposure from the impressions that the log itself records. Shapes: G pages of a batch, V items, S items looked at."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import log, log1p
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

from unveil.cores import threads
from unveil.data.interactions import Interactions
from unveil.data.sequences import Sequences
from unveil.errors import UnveilError, refuse_unless
from unveil.propensity.base import Kind, Source, register
from unveil.propensity.choices.blocks import Blocks, Index
from unveil.propensity.choices.tables import Tables
from unveil.propensity.descend import dealt, descend
from unveil.propensity.factored import Factored
from unveil.propensity.factors import Factors
from unveil.propensity.impressions.pages import Pages
from unveil.propensity.impressions.training import left_for_training

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
