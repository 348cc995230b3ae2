"""One draw from the posterior: a world as plausible as any other, given the ratings."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unveil.errors import UnveilError
from unveil.models.factorization.gibbs import Gibbs, sample
from unveil.models.factorization.negatives import Where
from unveil.models.factorization.priors import SlowSteps
from unveil.models.factorization.recipes.base import Advance, Learnt, register, within
from unveil.models.factorization.task import Task


@register
@dataclass(frozen=True)
class Posterior:
    """The factors are a draw, the prediction is the mean over draws.

    A mean is the best guess of each rating, and shrinks what is not known of a user's taste to nothing; a draw keeps
    tastes as far apart as the ratings say that they are.
    """

    name: ClassVar[str] = "posterior"
    where: ClassVar[Where] = "slots"

    width: int = 15
    sweeps: int = 100
    burn_in: int = 40
    persistence: float = 0.95  # correlation of a factor's weight from one step to the next
    sway: float = 0.3  # how far a factor's weight is thought to come and go along the steps

    def __post_init__(self) -> None:
        for option, least in (("width", 1), ("sweeps", 1), ("sway", 1e-6)):
            within(self, option, least)
        within(self, "burn_in", 0, self.sweeps - 1)
        within(self, "persistence", 0, 0.999)

    def learn(self, task: Task, rng: np.random.Generator, advance: Advance) -> Learnt:
        """Sample; the negatives of exposure are drawn once, for a posterior is that of one set of data."""
        gibbs = Gibbs(self.width, self.sweeps, self.burn_in, steps=SlowSteps(self.persistence, self.sway))
        try:
            sampled = sample(gibbs, task.epoch(rng), task.likelihood, task.parts[1:], rng, advance)
        except (np.linalg.LinAlgError, ArithmeticError):
            hint = "Options nearer to the usual may help, or ratings of a usual size."
            raise UnveilError(f"the factors of {task.name} grew without bound", hint=hint) from None
        return Learnt(sampled.draw.factors(), *sampled.mean)

    def work(self, task: Task) -> int:
        """A pass over all tuples each sweep."""
        return self.sweeps * task.size
