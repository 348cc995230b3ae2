"""A cell: one estimator trained on one replicate's log of one world at one severity, and judged."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from unveil.evaluation.ground_truth import favourites_of
from unveil.experiment.outcome import STANDARD, TRUE
from unveil.experiment.reproduce.study import RECORDED, Study
from unveil.experiment.reproduce.worlds import place, ratings_noise
from unveil.runs.workers import OnProgress
from unveil.simulation.world import World
from unveil.studies import trial
from unveil.studies.arms import Variant
from unveil.studies.results import BASELINES
from unveil.studies.trial import TrialContext, clipped
from unveil.training.recipe import Recipe


@dataclass(frozen=True)
class CellJob:
    """One training and its judgement. The world lies in the folder; the log is drawn again, always the same."""

    study: Study
    folder: Path
    world: int
    severity: float
    replicate: int
    arm: str

    @property
    def key(self) -> str:
        """w0-p1-r0-naive; no colon, which not every file system bears."""
        return f"w{self.world}-p{self.severity:g}-r{self.replicate}-{self.arm}".replace(":", "-")

    @property
    def cost(self) -> float:
        """About the seconds it takes on the log of ml-100k."""
        return 4.0 if self.arm in BASELINES else 6.0 + _training_cost(self.study, self.arm)

    def run(self, tell: OnProgress) -> Mapping[str, Any]:
        """Train, judge, and tell all that tables and plots need."""
        recipe = self.study.recipe(self.arm, self.study.training_seed(self.world, self.replicate))
        recorded = recipe.propensity["name"] in RECORDED
        bench = _bench(self.study, self.folder, self.world, self.severity, self.replicate, recorded)
        where = {"world": self.world, "severity": self.severity, "replicate": self.replicate}
        return {**where, "estimator": self.arm, **judged(bench, self.arm, recipe, tell)}


def judged(bench: TrialContext, name: str, recipe: Recipe, tell: OnProgress) -> dict[str, Any]:
    """Train an arm on a bench, judge it, and tell what came out and of which log."""
    trained = name if name in BASELINES else Variant.of(name).estimator
    arm = bench.arm(trained, clipped(recipe, bench), trial.TrainingShare(tell))
    return {
        "log": _log(bench),
        "ranks": {TRUE: trial.ranks(arm.truth), STANDARD: trial.ranks(arm.standard)},
        "lists": trial.list_metrics(arm.truth),
        "weights": None if arm.weights is None else asdict(arm.weights.diagnostics),
        "training": None if arm.fitted is None else trial.training_record(arm.fitted),
    }


def _training_cost(study: Study, arm: str) -> float:
    """Measured on one thread: an overhead for each batch, and work for each token and unit of width, in each block."""
    recipe = study.recipe(arm, 0)
    rows, tokens, model = 943, 943 * 98, recipe.model
    epoch = model.blocks * (0.0025 * rows / recipe.task.batch_size + 1.5e-7 * tokens * model.width)
    return recipe.training.epochs * epoch


@lru_cache(maxsize=1)
def _bench(
    study: Study, folder: Path, world: int, severity: float, replicate: int, recorded: bool = False
) -> TrialContext:
    """The estimators of a replicate, one after another in the same process, share its bench.

    Where impressions are `recorded`, what was taken is the same: they come on top.
    """
    whole = World.load(place(folder, world)).with_severity(severity).with_foresight(study.foresight)
    rng = np.random.default_rng(study.log_seed(world, replicate))
    # Rated, for estimates that need ratings.
    log = whole.log(
        rng,
        study.choice,
        ratings_noise=ratings_noise(whole),
        stars=study.stars,
        impressions=study.impressions if recorded else None,
    )
    shown = log.within_taken() if study.catalogue == "observed" else log
    return TrialContext.of(
        whole.aligned_with(shown),
        shown,
        study.recipe("naive", study.training_seed(world, replicate)),
        negatives=study.negatives,
        popular=study.popular,
        validation=study.validation,
        by_log=study.epoch_by == "taken",
    )


def _log(bench: TrialContext) -> dict[str, Any]:
    log = bench.log.interacted()
    assert log.step is not None
    best_N = favourites_of(bench.world, log.user, log.step)
    return {
        "fingerprint": replace(log, rating=None, clicked=None).fingerprint(),  # of what was taken alone
        "events": len(log),
        "users": len(log.users),
        "items": len(np.unique(log.item)),
        "catalogue": len(log.items),
        "favourite_taken": float((best_N == log.item).mean()),
        "unlearnable": bench.unlearnable,
    }
