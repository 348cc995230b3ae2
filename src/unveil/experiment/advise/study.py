"""AdviceStudy: all that the cells depend on, but their place. Networks are trained as by `unveil train`."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from unveil.errors import UnveilError, unknown
from unveil.estimators.base import estimator
from unveil.experiment.advise.scenarios import Scenario
from unveil.models.tensor_factorization.recipes import RECIPES
from unveil.propensity.base import PROPENSITIES
from unveil.simulation.fit import refuse_no_share
from unveil.studies.arms import (
    TRUE_THETA,
    Variant,
    changes_of,
    check_changes,
    check_distinct,
    estimator_seed,
    propensity_settings,
)
from unveil.training.recipe import Recipe, network_in

#: The same figures everywhere, however many processes there are.
_ALWAYS = {"training.device": "cpu", "training.threads": 1}
#: Streams of random numbers of one draw, kept apart.
_LOG, _TRAINING = 0, 1


@dataclass(frozen=True)
class AdviceStudy:
    """Where worlds come from, and how networks are trained on the logs drawn from them."""

    preset: str = "quick"  # of training, as in `unveil train`
    users: int = 500  # of the log that worlds are fitted to
    steps: int = 100
    fit: str = "posterior"
    liked: tuple[float, ...] = ()  # for logs without ratings: declared shares of popularity that are liking
    world: str | None = None  # a saved world, or 'builtin', in the place of one that is fitted
    seed: int = 0
    changes: tuple[str, ...] = ()  # settings of all trainings, or of one estimator
    left: float = 0.0  # impressions that nobody took, for each event of the log: drawn logs keep as many
    impressions: float = 1.0  # the share of what was shown and left that the log keeps

    def __post_init__(self) -> None:
        for name in ("users", "steps"):
            if getattr(self, name) < 1:
                raise UnveilError("out of range", where=name, found=getattr(self, name), expected="at least 1")
        if self.fit not in list(RECIPES):
            raise unknown("way to fit a world", self.fit, RECIPES)
        for share in self.liked:
            refuse_no_share(share, "--implicit")
        check_distinct(self.liked, "--implicit")
        if self.liked and self.world is not None:
            problem = "a world that is given has a liking of its own, and none is to be declared"
            raise UnveilError(
                problem, where="--implicit", found=self.liked[0], hint="Leave out --implicit, or --world."
            )
        if not 0 < self.impressions <= 1:
            found = self.impressions
            raise UnveilError("out of range", where="impressions", found=found, expected="above 0, at most 1")
        check_changes((), self.changes)
        self.recipe("naive", 0)

    @property
    def groups(self) -> int:
        """Worlds of one draw: one for each declared share."""
        return max(1, len(self.liked))

    def number(self, draw: int, scenario: Scenario) -> int:
        """The world of a scenario."""
        group = 0 if scenario.liked is None else self.liked.index(scenario.liked)
        return draw * self.groups + group

    def recipe(self, arm: str, seed: int) -> Recipe:
        """How an arm is trained."""
        variant = Variant.of(arm)
        needs = estimator(variant.estimator).needs
        own = estimator_seed(variant.estimator, seed) | changes_of(variant.estimator, self.changes)
        changes: dict[str, Any] = {**_ALWAYS, **own, "training.seed": seed}
        if needs in ("static", "temporal"):
            changes |= propensity_settings(variant.propensity or TRUE_THETA, needs, seed)
            changes |= with_rate(self.impressions, changes["propensity.name"])
        named = Recipe.preset(self.preset, network_in(changes)).changed({"estimator.name": variant.estimator})
        return named.changed(changes | variant.settings)

    def log_seed(self, world: int, scenario: Scenario, replicate: int) -> list[int]:
        """Of a draw: the same for all arms."""
        return [self.seed, world, scenario.seed, replicate, _LOG]

    def training_seed(self, world: int, scenario: Scenario, replicate: int) -> int:
        """Of all that is random in the trainings on a draw: the same for all arms."""
        entropy = [self.seed, world, scenario.seed, replicate, _TRAINING]
        return int(np.random.SeedSequence(entropy).generate_state(1)[0])


def by_impressions(recipe: Recipe) -> bool:
    """Whether it learns exposure from what was shown and left."""
    name = str(recipe.propensity["name"])
    return name in list(PROPENSITIES) and PROPENSITIES[name].source == "impressions"


def with_rate(rate: float, propensity: str) -> dict[str, Any]:
    """The setting that tells a propensity which share of what was left a log keeps, where it asks."""
    return {"propensity.rate": rate} if "rate" in PROPENSITIES.options(propensity) else {}
