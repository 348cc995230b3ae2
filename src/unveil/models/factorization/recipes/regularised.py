"""The recipe that predicts best with one set of factors: biases, a penalty, the best epoch."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from unveil.models.factorization.gradient import Descent, Side, Sides
from unveil.models.factorization.negatives import Where
from unveil.models.factorization.recipes.base import Advance, Learnt, register, within
from unveil.models.factorization.recipes.descend import descend
from unveil.models.factorization.task import Task

_BIASES = 4  # columns for the centre, and the biases of users, items and steps


@register
@dataclass(frozen=True)
class Regularised:
    """The maximum a posteriori under P, Q ~ N(0, 1/λ), W ~ N(1, 1/λ), stopped where the validation part likes it best.

    The penalty shrinks whatever the tuples do not insist on, and that is most of what is personal: see ADR 5.
    """

    name: ClassVar[str] = "regularised"
    where: ClassVar[Where] = "slots"

    width: int = 10
    batch: int = 256
    epochs: int = 40
    lr: float = 5e-3
    penalty: float = 20.0

    def __post_init__(self) -> None:
        for option, least in (("width", 1), ("batch", 1), ("epochs", 1), ("lr", 1e-9), ("penalty", 0)):
            within(self, option, least)

    def learn(self, task: Task, rng: np.random.Generator, advance: Advance) -> Learnt:
        """All epochs; the best on the validation part is kept."""
        descent = Descent(task.metric == "AUC", self.batch, self.lr, self.penalty)
        state = descent.epochs(self._start(task, rng), task.size)
        return descend(state, task, self.epochs, rng, advance, keep_best=True)

    def work(self, task: Task) -> int:
        """A pass over all tuples each epoch."""
        return self.epochs * task.size

    def _start(self, task: Task, rng: np.random.Generator) -> Sides:
        """Small tastes, steps that do nothing yet, no biases, and a fixed centre."""
        users, items, steps = (self._table(rows, bias, rng) for bias, rows in enumerate(task.parts.train.shape, 1))
        users[:, self.width] = task.likelihood.centre(task.epoch(rng).value_N)
        steps[:, : self.width] = 1
        return (
            Side.of(users, None, self._learnt(1)),
            Side.of(items, None, self._learnt(2)),
            Side.of(steps, self._factors_K, self._learnt(3)),
        )

    def _table(self, rows: int, bias: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Ones, but for the factors and the side's own bias: a bias is a factor whose other sides are one."""
        table_RK = np.ones((rows, self.width + _BIASES))
        table_RK[:, : self.width] = 0.1 * rng.standard_normal((rows, self.width))
        table_RK[:, self.width + bias] = 0
        return table_RK

    def _learnt(self, bias: int) -> NDArray[np.bool_]:
        learnt_K = self._factors_K
        learnt_K[self.width + bias] = True
        return learnt_K

    @property
    def _factors_K(self) -> NDArray[np.bool_]:
        """Which columns are factors."""
        return np.asarray(np.arange(self.width + _BIASES) < self.width)
