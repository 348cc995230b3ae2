"""Exposure and liking, estimated together from what was taken and how it was rated."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from unveil.data.interactions import Interactions
from unveil.data.sequences import Sequences
from unveil.propensity.base import Kind, Source, register
from unveil.propensity.choices.blocks import Blocks
from unveil.propensity.choices.descent import Descent
from unveil.propensity.choices.learnt_liking import LearntLiking
from unveil.propensity.choices.tables import START, Tables
from unveil.propensity.choices.takes import Takes, ratings_of
from unveil.propensity.factored import Factored
from unveil.propensity.factors import Factors


@dataclass
class JointRated(Factored):
    """−log θ_i − Σ_j log(1 − θ_j · σ((f_j − f_i) / sharpness)) + (r − f_i)² / 2σ² + log σ, least over θ and f at once.

    Ratings set the scale of f, so that both may be personal: ψ_sib = centre + a_s + d_i + Σ_k P_sk Q_ik W_bk and
    f_si = m + b_s + c_i + ⟨P_s, Q_i⟩. Unlike in `censored`, that an item was not taken lowers its liking too, as far as
    exposure does not explain it: favourites are not all that liking is learnt from.

    Assumes a user who takes the best of what is seen, by a liking that keeps still and has few factors.
    """

    log: Interactions
    window: int | None = None
    blocks: int = 10
    width: int = 16
    penalty: float = 8.0
    sharpness: float = 0.1
    batches: int = 1000
    seed: int = 0

    source: ClassVar[Source] = "ratings"
    assumes: ClassVar[str] = "that users take the best of what they see, by the liking that their ratings tell"
    name: ClassVar[str]

    def _estimated(self, train: Sequences, blocks: Blocks) -> Factors:
        takes = Takes.of(train, blocks, ratings_of(self.log, train, self.name))
        generator = torch.Generator().manual_seed(self.seed)
        exposure = Tables(takes.shape, self.width, START, penalty=self.penalty, generator=generator)
        liking = LearntLiking(takes, self.width, self.sharpness, penalty=2 * self.penalty, generator=generator)
        Descent(batches=self.batches, seed=self.seed).run(takes, exposure, liking)
        return exposure.factors()


@register
@dataclass
class JointRatedStatic(JointRated):
    """The same at all steps."""

    name: ClassVar[str] = "joint-rated-static"
    kind: ClassVar[Kind] = "static"


@register
@dataclass
class JointRatedTemporal(JointRated):
    """Exposure that differs between blocks of steps."""

    name: ClassVar[str] = "joint-rated-temporal"
    kind: ClassVar[Kind] = "temporal"
