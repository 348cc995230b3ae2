"""What tells arms apart beside their losses: under some presets each has a network of its own."""

from collections.abc import Sequence
from typing import Protocol

from unveil.report.names import named
from unveil.training.recipe import Recipe


class Study(Protocol):
    """What knows how each arm is trained."""

    def recipe(self, arm: str, replicate: int) -> Recipe:
        """How an arm is trained in a replicate."""


class Plan(Protocol):
    """A study, and the arms of it that are asked for."""

    @property
    def study(self) -> Study:
        """The study."""

    @property
    def estimators(self) -> Sequence[str]:
        """Its arms that are trained."""


def networks(plan: Plan) -> str:
    """A word of caution where arms differ in more than the loss; nothing where they do not."""
    recipes = {arm: plan.study.recipe(arm, 0) for arm in dict.fromkeys(plan.estimators)}
    if len({(recipe.model, recipe.task) for recipe in recipes.values()}) < 2:
        return ""
    told = "; ".join(f"{named(arm)}: {_network(recipe)}" for arm, recipe in recipes.items())
    return (
        f"The arms differ in more than the loss: each has a network and batches of its own ({told}). What tells two "
        f"of them apart is of loss and network together; --preset converged gives all the same."
    )


def _network(recipe: Recipe) -> str:
    """Width 64, blocks 2, batch 16, masked 0.1."""
    model, task = recipe.model, recipe.task
    return f"width {model.width}, blocks {model.blocks}, batch {task.batch_size}, masked {task.mask_probability:g}"
