"""Bayesian tensor factorisation by Gibbs sampling: draws from the posterior of all factors.

ψ_sit = μ + Σ_k P_sk Q_ik W_tk + b_s + c_i + a_t. Given the others, each row of each side is Gaussian, and so are all
steps together: a sweep draws every one of them. Shapes: U users, V items, T steps, K factors, D = K + 1 columns (the
last is the bias), N tuples.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from unveil.models.factorization.conditionals import Grouped
from unveil.models.factorization.likelihood import Likelihood
from unveil.models.factorization.priors import NormalWishart, Prior, SlowSteps
from unveil.models.factorization.tuples import Tuples
from unveil.propensity.factors import Factors

Values = NDArray[np.float64]
Tables = tuple[Values, Values, Values]

_BLOCK = 1 << 17


@dataclass(frozen=True, eq=False)
class Draw:
    """One draw of all factors."""

    centre: float
    tables: Tables

    def logits(self, tuples: Tuples) -> Values:
        """ψ of these tuples, block by block."""
        starts = range(0, len(tuples), _BLOCK)
        return np.concatenate([np.zeros(0), *(self._block(tuples, at) for at in starts)])

    def _block(self, tuples: Tuples, at: int) -> Values:
        rows = [table[index[at : at + _BLOCK]] for table, index in zip(self.tables, tuples.sides, strict=True)]
        product_B = np.einsum("bk,bk,bk->b", *(row[:, :-1] for row in rows))
        return np.asarray(self.centre + product_B + sum(row[:, -1] for row in rows))

    def factors(self) -> Factors:
        """The same logits as plain factors: the centre and each bias are columns whose other sides are one."""
        P_UD, Q_VD, W_TD = self.tables
        centre = Factors.constant(len(P_UD), len(Q_VD), len(W_TD), self.centre)
        product = Factors.of(P_UD[:, :-1], Q_VD[:, :-1], W_TD[:, :-1])
        return centre.plus(product).biased(P_UD[:, -1], Q_VD[:, -1], W_TD[:, -1])


@dataclass(frozen=True)
class Gibbs:
    """How the sampler runs. With `width` 0 it fits biases alone."""

    width: int = 15
    sweeps: int = 100
    burn_in: int = 40  # first sweeps, whose draws still remember the start
    rows: NormalWishart = field(default_factory=NormalWishart)
    steps: SlowSteps = field(default_factory=SlowSteps)

    def draws(self, train: Tuples, likelihood: Likelihood, rng: np.random.Generator) -> Iterator[Draw]:
        """The draw after each sweep; those of the burn-in too."""
        grouped = [Grouped.of(train, side) for side in range(3)]
        priors: list[Prior] = [self.rows, self.rows, self.steps]
        draw = self._start(train, likelihood, rng)
        for _ in range(self.sweeps):
            value_N, precision_N = likelihood.gaussian(train.value_N, draw.logits(train), rng)
            tables = list(draw.tables)
            for side, (group, prior) in enumerate(zip(grouped, priors, strict=True)):
                one, two = (tables[other] for other in range(3) if other != side)
                evidence = group.evidence((one, two), value_N - draw.centre, precision_N)
                tables[side] = prior.draw(tables[side], evidence, rng)
            draw = Draw(draw.centre, (tables[0], tables[1], tables[2]))
            yield draw

    def _start(self, train: Tuples, likelihood: Likelihood, rng: np.random.Generator) -> Draw:
        """Small factors for users and items, steps that do nothing yet, no biases."""
        users, items, steps = (np.zeros((size, self.width + 1)) for size in train.shape)
        users[:, :-1] = 0.3 * rng.standard_normal((len(users), self.width))
        items[:, :-1] = 0.3 * rng.standard_normal((len(items), self.width))
        steps[:, :-1] = 1
        return Draw(likelihood.centre(train.value_N), (users, items, steps))


@dataclass(frozen=True, eq=False)
class Sampled:
    """The last draw, and the posterior mean of what was asked for."""

    draw: Draw
    mean: tuple[Values, ...]


def sample(
    gibbs: Gibbs,
    train: Tuples,
    likelihood: Likelihood,
    asked: Sequence[Tuples],
    rng: np.random.Generator,
    advance: Callable[[int], None] = lambda tuples: None,
) -> Sampled:
    """Run the sampler; average the predictions of the `asked` tuples over the draws after the burn-in."""
    total: list[Values] = [np.zeros(len(part)) for part in asked]
    for sweep, draw in enumerate(gibbs.draws(train, likelihood, rng)):
        if sweep >= gibbs.burn_in:
            total = [sum_N + likelihood.predicted(draw.logits(part)) for sum_N, part in zip(total, asked, strict=True)]
        advance(len(train))
    return Sampled(draw, tuple(sum_N / (gibbs.sweeps - gibbs.burn_in) for sum_N in total))
