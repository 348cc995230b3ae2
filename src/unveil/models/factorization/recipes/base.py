"""What a recipe is, and where recipes are found. Shapes: N tuples."""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from unveil.errors import UnveilError
from unveil.models.factorization.negatives import Where
from unveil.models.factorization.task import Task
from unveil.propensity.factors import Factors
from unveil.registry import Registry

#: Told how many tuples were gone through since last time.
Advance = Callable[[int], None]


@dataclass(frozen=True, eq=False)
class Learnt:
    """Factors, and the best prediction the recipe has of the validation and test tuples.

    The two are the same where a recipe learns one set of factors; a sampler predicts by the mean of many.
    """

    factors: Factors
    valid_N: NDArray[np.float64]
    test_N: NDArray[np.float64]

    @classmethod
    def by(cls, factors: Factors, task: Task) -> Self:
        """Predict by the factors themselves."""
        valid_N, test_N = (factors.logits_of(*part.sides).astype(np.float64) for part in task.parts[1:])
        return cls(factors, task.likelihood.predicted(valid_N), task.likelihood.predicted(test_N))


class Recipe(Protocol):
    """Learns the factors of a task."""

    name: ClassVar[str]
    where: ClassVar[Where]  # it takes its negatives from

    def learn(self, task: Task, rng: np.random.Generator, advance: Advance) -> Learnt:
        """Learn from the training part; choose, if anything, by the validation part."""

    def work(self, task: Task) -> int:
        """Tuples that will be gone through."""


RECIPES: Registry[Recipe] = Registry(
    "recipe", package="unveil.models.factorization.recipes", group="unveil.factorisations"
)
register = RECIPES.register


def within(recipe: Recipe, option: str, least: float, most: float = inf) -> None:
    """Refuse an option that is out of its range."""
    value = getattr(recipe, option)
    if not least <= value <= most:
        raise UnveilError(
            "an option of the recipe is out of range",
            where=f"{recipe.name}.{option}",
            found=value,
            expected=f"{least:g} to {most:g}" if most < inf else f"at least {least:g}",
        )
