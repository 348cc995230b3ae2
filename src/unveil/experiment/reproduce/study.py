"""Study: all that the cells of a semi-synthetic question depend on, but their place in the grid."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from unveil.errors import refuse_unless, unknown
from unveil.estimators.base import ESTIMATORS, estimator
from unveil.models.tensor_factorization.recipes import RECIPES
from unveil.propensity.impressions import RecordedStatic, RecordedTemporal
from unveil.simulation.choice import CHOICES
from unveil.studies.arms import (
    NOISY,
    TRUE_THETA,
    Variant,
    changes_of,
    check_changes,
    estimator_seed,
    propensity_settings,
    with_changes,
)
from unveil.studies.presets import Preset, preset
from unveil.studies.results import BASELINES
from unveil.training.recipe import Recipe, network_in

#: Targets and negatives among the items that the drawn log shows, or among all of the world's.
CATALOGUES = ("observed", "whole")
#: What decides which epoch is kept: true relevance, as in the paper, or what was taken, as on a real log.
JUDGES = ("truth", "taken")

#: Propensities that are learnt from the impressions of a drawn log.
RECORDED = (RecordedStatic.name, RecordedTemporal.name)
#: Propensities that are on the scale of the true ones, for which the clips of presets are meant.
_ON_THAT_SCALE = (TRUE_THETA, NOISY, "recorded")

#: Streams of random numbers of one replicate, kept apart.
_LOG, _TRAINING = 0, 1


@dataclass(frozen=True)
class Study:
    """Where worlds come from, how logs are drawn from them, how networks are trained and judged."""

    popular: ClassVar[bool] = False  # whether targets are ranked against negatives drawn by popularity as well

    data: str = "ml-100k"  # 'builtin', the folder of a world, or a log with ratings that worlds are fitted to
    preset: str = "paper"
    steps: int = 100  # T: of each user the last so many ratings
    fit: str = "posterior"  # how worlds are fitted to the log
    choice: str = "rational_exposed"
    catalogue: str = "observed"  # or whole
    propensity: str = "true"  # handed to the estimators: true, noisy:SD, estimated or one of the registry
    clip: float | None = None  # θ is clipped from below at this; None: as the preset says
    negatives: int = 100
    seed: int = 0
    changes: tuple[str, ...] = ()  # settings of all trainings, or of one estimator, as NAME=VALUE or ips:NAME=VALUE
    foresight: float = 0.0  # how far exposure follows relevance
    epoch_by: str = "truth"  # or taken
    stars: bool = False  # whether ratings of drawn logs are rounded to 1 … 5
    impressions: float = 0.1  # the share of what is shown and left that drawn logs record, for arms that use it

    def __post_init__(self) -> None:
        """Whatever can be refused before any work is done is refused here."""
        for name in ("steps", "negatives"):
            refuse_unless(getattr(self, name) >= 1, name, getattr(self, name), "at least 1")
        refuse_unless(self.seed >= 0, "seed", self.seed, "0 or more")
        refuse_unless(self.clip is None or 0 <= self.clip <= 1, "clip", self.clip, "between 0 and 1")
        refuse_unless(0 < self.impressions <= 1, "impressions", self.impressions, "above 0, at most 1")
        refuse_unless(abs(self.foresight) < float("inf"), "foresight", self.foresight, "a number")
        if self.catalogue not in CATALOGUES:
            raise unknown("catalogue", self.catalogue, CATALOGUES)
        if self.epoch_by not in JUDGES:
            raise unknown("judge of the epochs", self.epoch_by, JUDGES)
        if self.choice not in list(CHOICES):
            raise unknown("choice model", self.choice, CHOICES)
        if self.fit not in list(RECIPES):
            raise unknown("way to fit a world", self.fit, RECIPES)
        check_changes((), self.changes)
        for name in ("naive", "ips", "itps"):
            self.recipe(name, 0)

    @property
    def training(self) -> Preset:
        """The preset."""
        return preset(self.preset)

    @property
    def about(self) -> str:
        """How networks are trained, in words."""
        return with_changes(self.training.about, self.changes)

    @property
    def validation(self) -> str:
        """The ranking that decides which epoch is kept."""
        return "full" if self.training.validation == "full" else f"uniform-{self.negatives}"

    def recipe(self, arm: str, seed: int) -> Recipe:
        """How an arm is trained. Baselines have the recipe of the naive estimator, and do not use it.

        A network that changes name keeps of the preset what it has as well.
        """
        variant = Variant.of("naive" if arm in BASELINES else arm)
        name = variant.estimator
        changes = estimator_seed(name, seed) | changes_of(name, self.changes)
        changes |= {"training.seed": seed} | self._weighting(variant, seed) | variant.settings
        preset = self._preset_of(variant, network_in(changes))
        return Recipe().changed({"estimator.name": name}).changed(preset).changed(changes)

    def _preset_of(self, variant: Variant, network: str | None) -> dict[str, Any]:
        """The preset's clips are on the scale of true propensities: an arm that is told others has none of them."""
        settings = self.training.settings(variant.estimator, network)
        if (variant.propensity or self.propensity).partition(":")[0] not in _ON_THAT_SCALE:
            settings.pop("estimator.clip", None)
        return settings

    def _weighting(self, variant: Variant, seed: int) -> dict[str, Any]:
        """Which propensity an estimator is given, and how it is clipped."""
        chosen = estimator(variant.estimator)
        settings: dict[str, Any] = {}
        if self.clip is not None and "clip" in ESTIMATORS.options(chosen.name):
            settings["estimator.clip"] = self.clip
        if chosen.needs in ("static", "temporal"):
            told = propensity_settings(variant.propensity or self.propensity, chosen.needs, seed)
            recorded = {"propensity.rate": self.impressions} if told["propensity.name"] in RECORDED else {}
            settings |= told | recorded
        return settings

    def log_seed(self, world: int, replicate: int) -> list[int]:
        """Of the draw of a replicate's log: the same for all estimators and all severities."""
        return [self.seed, world, replicate, _LOG]

    def training_seed(self, world: int, replicate: int) -> int:
        """Of all that is random in a replicate's trainings and evaluation: the same for all estimators."""
        return int(np.random.SeedSequence([self.seed, world, replicate, _TRAINING]).generate_state(1)[0])
