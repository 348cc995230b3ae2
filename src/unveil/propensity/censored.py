"""Exposure from ratings: what was liked better than what was taken, and was not taken, was not seen."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from unveil.data.interactions import Interactions
from unveil.data.sequences import Sequences
from unveil.propensity.base import Kind, Source, register
from unveil.propensity.choices.blocks import Blocks
from unveil.propensity.choices.descent import Descent
from unveil.propensity.choices.liking import Rated
from unveil.propensity.choices.tables import START, Tables
from unveil.propensity.choices.takes import Takes, ratings_of
from unveil.propensity.factored import Factored
from unveil.propensity.factors import Factors


@dataclass
class Censored(Factored):
    """ψ_sib = centre + a_s + d_i + Σ_k P_sk Q_ik W_bk by the likelihood of what was taken and what was not.

    First liking, from ratings alone (`choices.liking`); then exposure, a logistic model in which an item taken is a
    yes and every other item a no as far as it is liked better (`choices.descent.surprise`): survival data, in which
    an item worse than the one taken is censored.

    Assumes a user who takes the best of what is seen, and ratings that are to be had for what was taken as they would
    be for all else. The second does not hold where only favourites are taken: those who took an item like it more than
    others would, so that liking is overstated for others, and their exposure understated.
    """

    log: Interactions
    window: int | None = None
    blocks: int = 10
    width: int = 8
    penalty: float = 8.0
    batches: int = 1000
    seed: int = 0

    source: ClassVar[Source] = "ratings"
    assumes: ClassVar[str] = (
        "that users take the best of what they see, and that ratings of what was taken say how well the rest is liked"
    )
    name: ClassVar[str]

    def _estimated(self, train: Sequences, blocks: Blocks) -> Factors:
        rating_E = ratings_of(self.log, train, self.name)
        takes, liking = Takes.of(train, blocks, rating_E), Rated.of(Takes.of(train, Blocks.of(train, 1), rating_E))
        generator = torch.Generator().manual_seed(self.seed)
        exposure = Tables(takes.shape, self.width, START, penalty=self.penalty, generator=generator)
        Descent(batches=self.batches, seed=self.seed).run(takes, exposure, liking)
        return exposure.factors()


@register
@dataclass
class CensoredStatic(Censored):
    """The same at all steps."""

    name: ClassVar[str] = "censored-static"
    kind: ClassVar[Kind] = "static"


@register
@dataclass
class CensoredTemporal(Censored):
    """Exposure that differs between blocks of steps."""

    name: ClassVar[str] = "censored-temporal"
    kind: ClassVar[Kind] = "temporal"
