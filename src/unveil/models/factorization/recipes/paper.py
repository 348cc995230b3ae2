"""The paper's recipe: no biases, no penalty, the factors of the last epoch."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unveil.models.factorization.gradient import Descent, Side, Sides
from unveil.models.factorization.negatives import Where
from unveil.models.factorization.recipes.base import Advance, Learnt, register, within
from unveil.models.factorization.recipes.descend import descend
from unveil.models.factorization.task import Task


@register
@dataclass(frozen=True)
class Paper:
    """Adam on minibatches, with the sizes of the paper's code and all three factors learnt.

    The paper does not say where the factors start. From numbers about zero, the usual choice, a product of three is
    never found (validation MSE 25 on ml-100k); ours start about the cube root at which their product is the mean.
    """

    name: ClassVar[str] = "paper"
    where: ClassVar[Where] = "anywhere"

    width: int = 50
    batch: int = 256
    epochs: int = 100
    lr: float = 1e-3
    spread: float = 0.3  # of the factors at the start, as a share of their size
    keep_best: bool = False  # the epoch of the best validation instead of the last

    def __post_init__(self) -> None:
        for option, least in (("width", 1), ("batch", 1), ("epochs", 1), ("lr", 1e-9), ("spread", 0)):
            within(self, option, least)

    def learn(self, task: Task, rng: np.random.Generator, advance: Advance) -> Learnt:
        """All epochs."""
        descent = Descent(task.metric == "AUC", self.batch, self.lr)
        state = descent.epochs(self._start(task, rng), task.size)
        return descend(state, task, self.epochs, rng, advance, keep_best=self.keep_best)

    def work(self, task: Task) -> int:
        """A pass over all tuples each epoch."""
        return self.epochs * task.size

    def _start(self, task: Task, rng: np.random.Generator) -> Sides:
        """Σ_k P Q W is the mean at the start, and its sign is that of the users."""
        centre = task.likelihood.centre(task.epoch(rng).value_N)
        size = (abs(centre) / self.width) ** (1 / 3)
        users, items, steps = (
            size * (1 + self.spread * rng.standard_normal((rows, self.width))) for rows in task.parts.train.shape
        )
        return Side.of(users * np.sign(centre)), Side.of(items), Side.of(steps)
