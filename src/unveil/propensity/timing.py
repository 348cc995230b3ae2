"""Only what moves: how much more of an item is taken at a step than over all steps. Shapes: C blocks, V items."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from unveil.data.sequences import Sequences
from unveil.propensity.base import Kind, Source, register
from unveil.propensity.choices.blocks import Blocks
from unveil.propensity.factored import Factored
from unveil.propensity.factors import Factors

Counts = NDArray[np.float64]
#: Of the prior: from movements of any size to none that could be seen.
_PRECISIONS = np.geomspace(0.1, 1e6, 71)
#: The largest θ̂: its logit must be finite.
_BELOW_ONE = 1 - 1e-6


@register
@dataclass
class Timing(Factored):
    """θ̂_it ∝ ρ_ib = (n_ib + κ) / (m_ib + κ): takes of item i in block b over what its share of all takes would give.

    m_ib = n_b · n_i / n. An item's mean stays out of it, so that no static relevance is ever divided out, and no static
    exposure either. ρ is the posterior mean of n ~ Poisson(m ρ), ρ ~ Gamma(κ, κ), with the κ that makes the counts most
    likely: where they scatter no more than chance lets them, κ is as good as infinite and θ̂ the same for all.

    Assumes that what moves with the step, for all users together, is exposure and not taste: P(i | s, t) ∝ θ_it e^f_si.
    """

    window: int | None = None
    blocks: int = 10

    name: ClassVar[str] = "timing"
    kind: ClassVar[Kind] = "temporal"
    source: ClassVar[Source] = "nothing"
    assumes: ClassVar[str] = (
        "that tastes keep still: what moves with the step is exposure, and nothing else is looked at"
    )
    precision: float = field(init=False, repr=False)  # κ

    def _estimated(self, train: Sequences, blocks: Blocks) -> Factors:
        count_CV = np.zeros((blocks.count, train.n_items))
        np.add.at(count_CV, (blocks.at(train.step_N), train.item_N), 1)
        expected_CV = count_CV.sum(1, keepdims=True) * count_CV.sum(0) / count_CV.sum()
        self.precision = most_likely(count_CV, expected_CV)
        moved_CV = (count_CV + self.precision) / (expected_CV + self.precision)
        theta_CV = moved_CV / moved_CV.max() * _BELOW_ONE
        psi_VC = np.log(theta_CV / (1 - theta_CV)).T
        return Factors.of(np.ones((train.n_users, blocks.count)), psi_VC, np.eye(blocks.count))


def most_likely(count_CV: Counts, expected_CV: Counts) -> float:
    """The κ at which the counts, negative binomial around what is expected, are most likely."""
    there = expected_CV > 0
    n, m = count_CV[there], expected_CV[there]

    def log_likelihood(k: float) -> float:
        return float((gammaln(n + k) - gammaln(k) + k * np.log(k / (k + m)) + n * np.log(m / (k + m))).sum())

    return float(max(_PRECISIONS, key=log_likelihood))
