"""Tensor factorisation by gradient descent: ψ_sit = Σ_k P_sk Q_ik W_tk, minibatches and Adam, as in the paper.

Shapes: R rows of a side, K columns, N tuples, B tuples of a batch.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unveil.errors import AtLeastOne, NotNegative, Positive, UnveilError, check_range, check_ranges
from unveil.models.tensor_factorization.gibbs import Gibbs, SlowSteps
from unveil.models.tensor_factorization.task import Task, Tuples, Where
from unveil.processes import threads
from unveil.propensity.factors import Factors
from unveil.registry import Registry

Values = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Side:
    """The table of users, items or steps, what the penalty draws it to, and which of its columns are learnt."""

    table_RK: Tensor
    rest_K: Tensor
    learnt_K: Tensor

    @classmethod
    def of(
        cls, table_RK: Values, rest_K: NDArray[Any] | None = None, learnt_K: NDArray[np.bool_] | None = None
    ) -> "Side":
        width = table_RK.shape[1]
        rest_K = np.zeros(width) if rest_K is None else rest_K
        learnt_K = np.ones(width, bool) if learnt_K is None else learnt_K
        table, rest, learnt = (torch.tensor(array, dtype=torch.float32) for array in (table_RK, rest_K, learnt_K))
        return cls(table, rest, learnt)


Sides = tuple[Side, Side, Side]


class Descent:
    """Tables and the state of Adam.

    The loss is the mean over tuples of (ψ − y)², or of the cross-entropy of σ(ψ) if `logistic`, plus
    (penalty / 2N) · ‖table − rest‖² over all three tables, N = `size` the number of tuples in an epoch.
    """

    def __init__(
        self, sides: Sides, size: int, *, logistic: bool, batch: int = 256, lr: float = 1e-3, penalty: float = 0.0
    ) -> None:
        self.sides, self.logistic, self.batch, self.decay = sides, logistic, batch, penalty / size
        for side in sides:
            side.table_RK.grad = torch.zeros_like(side.table_RK)
        self.adam = torch.optim.Adam([side.table_RK for side in sides], lr=lr, fused=True)

    def epoch(self, tuples: Tuples, rng: np.random.Generator) -> None:
        for index, value_B in _batches(tuples, self.batch, rng):
            self.gradient(index, value_B)
            self.adam.step()

    def gradient(self, index: list[Tensor], value_B: Tensor) -> None:
        """∂L/∂P_s = Σ slope_n · Q_i ∘ W_t over the batch's tuples of s, divided by B; and so for Q and W."""
        rows = [side.table_RK[index_B] for side, index_B in zip(self.sides, index, strict=True)]
        product_BK = rows[0] * rows[1]
        logit_B = (product_BK * rows[2]).sum(1)
        slope_B = torch.sigmoid(logit_B) - value_B if self.logistic else 2 * (logit_B - value_B)
        slope_B1 = slope_B[:, None] / len(value_B)
        others = [rows[1] * rows[2], rows[0] * rows[2], product_BK]
        for side, index_B, other_BK in zip(self.sides, index, others, strict=True):
            grad_RK = side.table_RK.grad
            assert grad_RK is not None
            grad_RK.zero_()
            if self.decay:
                torch.sub(side.table_RK, side.rest_K, out=grad_RK).mul_(self.decay)
            grad_RK.index_add_(0, index_B, other_BK.mul_(slope_B1)).mul_(side.learnt_K)

    def factors(self) -> Factors:
        return Factors.of(*(side.table_RK.numpy().copy() for side in self.sides))


def _batches(tuples: Tuples, size: int, rng: np.random.Generator) -> Iterator[tuple[list[Tensor], Tensor]]:
    order = rng.permutation(len(tuples))
    index = [torch.from_numpy(side_N[order]) for side_N in tuples.sides]
    value_N = torch.from_numpy(tuples.value_N[order].astype(np.float32))
    for at in range(0, len(order), size):
        yield [side_N[at : at + size] for side_N in index], value_N[at : at + size]


Advance = Callable[[int], None]  # of the number of tuples since the last call


@dataclass(frozen=True, eq=False)
class FittedFactors:
    """Factors, and the prediction of the validation and test tuples: a sampler's is the mean over draws."""

    factors: Factors
    valid_N: NDArray[np.float64]
    test_N: NDArray[np.float64]

    @classmethod
    def by(cls, factors: Factors, task: Task) -> Self:
        valid_N, test_N = (factors.logits_of(*part.sides).astype(np.float64) for part in task.parts[1:])
        return cls(factors, task.likelihood.predicted(valid_N), task.likelihood.predicted(test_N))


class Recipe(Protocol):
    """Learns the factors of a task."""

    name: ClassVar[str]
    where: ClassVar[Where]  # it takes its negatives from

    def learn(self, task: Task, rng: np.random.Generator, advance: Advance) -> FittedFactors:
        """Learn from the training part; choose, if anything, by the validation part."""

    def work(self, task: Task) -> int:
        """Tuples that will be gone through."""


RECIPES: Registry[Recipe] = Registry(
    "recipe", package="unveil.models.tensor_factorization.recipes", group="unveil.factorisations"
)
register = RECIPES.register


class ByDescent:
    """Minibatches and Adam from where a recipe starts; the last epoch, or the best on the validation part, is kept."""

    name: ClassVar[str]
    batch: int
    epochs: int
    lr: float
    penalty: float = 0.0
    keep_best: bool = True

    def __post_init__(self) -> None:
        check_ranges(self, self.name)

    def start(self, task: Task, rng: np.random.Generator) -> Sides:
        raise NotImplementedError

    def learn(self, task: Task, rng: np.random.Generator, advance: Advance) -> FittedFactors:
        how: dict[str, Any] = {"batch": self.batch, "lr": self.lr, "penalty": self.penalty}
        state = Descent(self.start(task, rng), task.size, logistic=task.metric == "AUC", **how)
        kept: tuple[float, FittedFactors] | None = None
        for _ in range(self.epochs):
            train = task.epoch(rng)
            with threads(1):
                state.epoch(train, rng)
            advance(len(train))
            if self.keep_best:
                learnt = FittedFactors.by(state.factors(), task)
                loss = task.loss(learnt.valid_N, task.parts.valid)
                kept = min(kept or (loss, learnt), (loss, learnt), key=lambda each: each[0])
        return kept[1] if kept is not None else FittedFactors.by(state.factors(), task)

    def work(self, task: Task) -> int:
        return self.epochs * task.size


@register
@dataclass(frozen=True)
class Paper(ByDescent):
    """Adam on minibatches, with the sizes of the paper's code.

    The paper gives no initial values. Started about zero, a product of three is never learnt (validation MSE 25 on
    ml-100k); ours start about the cube root at which the product is the mean.
    """

    name: ClassVar[str] = "paper"
    where: ClassVar[Where] = "anywhere"

    width: AtLeastOne = 50
    batch: AtLeastOne = 256
    epochs: AtLeastOne = 100
    lr: Positive = 1e-3
    spread: NotNegative = 0.3  # of the factors at the start, as a share of their size
    keep_best: bool = False  # the epoch of the best validation instead of the last

    def start(self, task: Task, rng: np.random.Generator) -> Sides:
        """Σ_k P Q W is the mean at the start, and its sign is that of the users."""
        centre = task.likelihood.centre(task.epoch(rng).value_N)
        size = (abs(centre) / self.width) ** (1 / 3)
        users, items, steps = (
            size * (1 + self.spread * rng.standard_normal((rows, self.width))) for rows in task.parts.train.shape
        )
        return Side.of(users * np.sign(centre)), Side.of(items), Side.of(steps)


_BIASES = 4  # columns for the centre, and the biases of users, items and steps


@register
@dataclass(frozen=True)
class Regularised(ByDescent):
    """The maximum a posteriori under P, Q ~ N(0, 1/λ), W ~ N(1, 1/λ), with early stopping (ADR 5)."""

    name: ClassVar[str] = "regularised"
    where: ClassVar[Where] = "slots"

    width: AtLeastOne = 10
    batch: AtLeastOne = 256
    epochs: AtLeastOne = 40
    lr: Positive = 5e-3
    penalty: NotNegative = 20.0

    def start(self, task: Task, rng: np.random.Generator) -> Sides:
        users, items, steps = (self._table(rows, bias, rng) for bias, rows in enumerate(task.parts.train.shape, 1))
        users[:, self.width] = task.likelihood.centre(task.epoch(rng).value_N)
        steps[:, : self.width] = 1
        column_K = np.arange(self.width + _BIASES)
        factors_K = column_K < self.width
        learnt = [factors_K | (column_K == self.width + bias) for bias in (1, 2, 3)]
        return Side.of(users, None, learnt[0]), Side.of(items, None, learnt[1]), Side.of(steps, factors_K, learnt[2])

    def _table(self, rows: int, bias: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Ones, but for the factors and the side's own bias, a factor whose other sides are one."""
        table_RK = np.ones((rows, self.width + _BIASES))
        table_RK[:, : self.width] = 0.1 * rng.standard_normal((rows, self.width))
        table_RK[:, self.width + bias] = 0
        return table_RK


@register
@dataclass(frozen=True)
class Posterior:
    """The factors are a draw, with the posterior's spread over users; the prediction is the mean over draws."""

    name: ClassVar[str] = "posterior"
    where: ClassVar[Where] = "slots"

    width: AtLeastOne = 15
    sweeps: AtLeastOne = 100
    burn_in: int = 40
    persistence: float = 0.95  # correlation of a factor's weight from one step to the next
    sway: Positive = 0.3  # prior standard deviation of a factor's weight over the steps

    def __post_init__(self) -> None:
        check_ranges(self, self.name)
        last, kept = self.sweeps - 1, self.persistence
        check_range(0 <= self.burn_in <= last, f"{self.name}.burn_in", self.burn_in, f"0 to {last}")
        check_range(0 <= kept <= 0.999, f"{self.name}.persistence", kept, "0 to 0.999")

    def learn(self, task: Task, rng: np.random.Generator, advance: Advance) -> FittedFactors:
        """Sample; the negatives of exposure are drawn once, as a posterior is that of one set of data."""
        gibbs = Gibbs(self.width, self.sweeps, self.burn_in, SlowSteps(self.persistence, self.sway))
        try:
            draw, means = gibbs.sample(task.epoch(rng), task.likelihood, task.parts[1:], rng, advance)
        except (np.linalg.LinAlgError, ArithmeticError):
            hint = "Options nearer to the usual may help, or ratings of a usual size."
            raise UnveilError(f"the factors of {task.name} grew without bound", hint=hint) from None
        return FittedFactors(draw.factors(), *means)

    def work(self, task: Task) -> int:
        return self.sweeps * task.size
