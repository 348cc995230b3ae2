"""Popularity, damped as far as ratings bear it out. Shapes: C blocks, V items."""

from dataclasses import dataclass, field
from typing import ClassVar

import torch

from unveil.data.interactions import Interactions
from unveil.data.sequences import Sequences
from unveil.propensity.base import Kind, Source, register
from unveil.propensity.choices.blocks import Blocks
from unveil.propensity.choices.descent import Descent
from unveil.propensity.choices.learnt_liking import LearntLiking
from unveil.propensity.choices.tables import START, Line, log_popularity
from unveil.propensity.choices.takes import Takes, ratings_of
from unveil.propensity.factored import Factored
from unveil.propensity.factors import Factors


@dataclass
class RatedPopularity(Factored):
    """θ̂_it = σ(centre + exponent · log popularity_it): two numbers, learnt together with liking, as in `joint-rated`.

    So the damping is chosen by evidence that needs no truth: a popular item that is liked better than what was taken
    was not seen there, and speaks against popularity. Where ratings speak against it altogether the exponent is 0:
    nothing is corrected.

    Assumes a user who takes the best of what is seen, and log exposure in a line with log popularity.
    """

    log: Interactions
    window: int | None = None
    blocks: int = 10
    width: int = 8
    penalty: float = 16.0
    sharpness: float = 0.1
    batches: int = 600
    seed: int = 0

    source: ClassVar[Source] = "ratings"
    assumes: ClassVar[str] = (
        "that users take the best of what they see, and that exposure is popularity to a power that ratings tell"
    )
    name: ClassVar[str]
    exponent: float = field(init=False, repr=False)

    def _estimated(self, train: Sequences, blocks: Blocks) -> Factors:
        takes = Takes.of(train, blocks, ratings_of(self.log, train, self.name))
        generator = torch.Generator().manual_seed(self.seed)
        line = Line(log_popularity(takes), START)
        liking = LearntLiking(takes, self.width, self.sharpness, penalty=self.penalty, generator=generator)
        Descent(batches=self.batches, seed=self.seed).run(takes, line, liking)
        self.exponent = line.exponent
        return line.factors(train.n_users)


@register
@dataclass
class RatedStatic(RatedPopularity):
    """The same at all steps."""

    name: ClassVar[str] = "rated-static"
    kind: ClassVar[Kind] = "static"


@register
@dataclass
class RatedTemporal(RatedPopularity):
    """Popularity in each block of steps."""

    name: ClassVar[str] = "rated-temporal"
    kind: ClassVar[Kind] = "temporal"
