"""Study of a real log: all that its cells depend on, but their place in the grid."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from unveil.errors import UnveilError, unknown
from unveil.estimators.base import estimator
from unveil.experiment.rq4.log import LogChoice
from unveil.experiment.tuned import TUNED, tuned
from unveil.studies.arms import (
    POPULARITY,
    Variant,
    changes_of,
    check_changes,
    estimator_seed,
    propensity_settings,
    with_changes,
)
from unveil.training.recipe import PRESETS, Recipe, network_in

#: One thread a training: then no figure depends on how many are made side by side.
ALWAYS: Mapping[str, Any] = {"training.device": "cpu", "training.threads": 1, "training.checkpoint_minutes": 1.0}
#: λ of the control arm: 0 is the naive model itself, 1 divides popularity out.
STRENGTHS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.5)

_ABOUT = {
    "paper": "the authors' settings, tuned for each estimator apart",
    "converged": "one backbone for all estimators, trained until validation no longer rises",
    "quick": "a small backbone for all estimators and few epochs: to see that all is well",
}


@dataclass(frozen=True)
class RealStudy:
    """A log, how networks are trained on it, and what they are ranked against."""

    log: LogChoice
    tuned_for: str = "ml-1m"  # whose settings and exponents
    preset: str = "paper"
    negatives: int = 100  # drawn by popularity, and as many uniformly
    strengths: tuple[float, ...] = STRENGTHS
    seed: int = 0
    changes: tuple[str, ...] = ()  # settings of all trainings, or of one estimator, as NAME=VALUE or ips:NAME=VALUE

    def __post_init__(self) -> None:
        """Whatever can be refused before any work is done is refused here."""
        for name, least in (("negatives", 1), ("seed", 0)):
            if getattr(self, name) < least:
                raise UnveilError("out of range", where=name, found=getattr(self, name), expected=f"at least {least}")
        if self.tuned_for not in TUNED:
            raise unknown("data set with the authors' settings", self.tuned_for, TUNED)
        if self.preset not in PRESETS:
            raise unknown("preset", self.preset, PRESETS)
        if not self.strengths or self.strengths[0] != 0:
            raise UnveilError("the strengths of the control begin with 0, the naive model", found=self.strengths)
        check_changes((), self.changes)
        for name in ("naive", "ips", "itps"):
            self.recipe(name, 0)

    @property
    def about(self) -> str:
        """How networks are trained, in words."""
        return with_changes(f"{_ABOUT[self.preset]}; settings and exponents for {self.tuned_for}", self.changes)

    @property
    def popular(self) -> str:
        """The ranking of the paper."""
        return f"popular-{self.negatives}"

    @property
    def validation(self) -> str:
        """The ranking that decides which epoch is kept: the paper's own in its preset, else full."""
        return self.popular if self.preset == "paper" else "full"

    def recipe(self, arm: str, replicate: int) -> Recipe:
        """How an arm is trained in a replicate: told popularity, unless its word or a setting names a propensity."""
        variant, seed = Variant.of(arm), self.replicate_seed(replicate)
        name, needs = variant.estimator, estimator(variant.estimator).needs
        said = changes_of(name, self.changes)
        told = {}
        if needs in ("static", "temporal"):
            told = propensity_settings(variant.propensity or POPULARITY, needs, seed)
        changes = {**ALWAYS, **self._tuned(variant), **estimator_seed(name, seed)}
        changes |= told | said if variant.propensity is None else said | told
        changes |= variant.settings | {"training.seed": seed, "estimator.name": name}
        return Recipe.preset(self.preset, network_in(changes)).changed({"estimator.name": name}).changed(changes)

    def _tuned(self, variant: Variant) -> dict[str, Any]:
        """The authors' exponents are for popularity: an arm that is told another propensity has none of them."""
        settings = tuned(self.tuned_for, variant.estimator, self.preset)
        if variant.propensity not in (None, POPULARITY):
            settings.pop("estimator.exponent", None)
        return settings

    def replicate_seed(self, replicate: int) -> int:
        """Of all that is random in a replicate: initial weights, batches, masks, negatives; the same for all arms."""
        return int(np.random.SeedSequence([self.seed, replicate]).generate_state(1)[0])
