"""Exposure and liking, estimated together from what was taken."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from unveil.data.sequences import Sequences
from unveil.propensity.base import Kind, Source, register
from unveil.propensity.choices.blocks import Blocks
from unveil.propensity.choices.descent import Descent
from unveil.propensity.choices.learnt_liking import LearntLiking
from unveil.propensity.choices.tables import START, Tables
from unveil.propensity.choices.takes import Takes
from unveil.propensity.factored import Factored
from unveil.propensity.factors import Factors


@dataclass
class Joint(Factored):
    """−log θ_i − Σ_j log(1 − θ_j · σ(f_j − f_i)) is least over exposure θ_ib and liking f_si at once.

    In the spirit of ExpoMF, for choices: whether another item was seen and disliked, or not seen, is left open, and
    summed over. Without ratings a log cannot tell the two apart but by what they may depend on: liking is each
    user's own, ⟨P_s, Q_i⟩ + c_i, and keeps still; exposure is the same for all users, d_i + ⟨G_i, W_b⟩, and moves with
    the step. What is alike for all users and at all steps (c_i or d_i) is divided between them by the priors alone.

    Assumes just that. Where exposure is personal it is taken for liking.
    """

    window: int | None = None
    blocks: int = 10
    width: int = 8
    penalty: float = 8.0
    batches: int = 1000
    seed: int = 0

    source: ClassVar[Source] = "nothing"
    assumes: ClassVar[str] = "that exposure is the same for all users and tastes keep still"
    name: ClassVar[str]

    def _estimated(self, train: Sequences, blocks: Blocks) -> Factors:
        takes, generator = Takes.of(train, blocks), torch.Generator().manual_seed(self.seed)
        exposure = Tables(takes.shape, self.width, START, personal=False, penalty=1.0, generator=generator)
        liking = LearntLiking(takes, self.width, 1.0, penalty=self.penalty, generator=generator)
        Descent(batches=self.batches, seed=self.seed).run(takes, exposure, liking)
        return exposure.factors()


@register
@dataclass
class JointStatic(Joint):
    """The same at all steps: told from liking by the priors alone."""

    name: ClassVar[str] = "joint-static"
    kind: ClassVar[Kind] = "static"


@register
@dataclass
class JointTemporal(Joint):
    """Exposure that differs between blocks of steps."""

    name: ClassVar[str] = "joint-temporal"
    kind: ClassVar[Kind] = "temporal"
