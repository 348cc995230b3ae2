"""A training as what is tuned: an estimator on a network, evaluated on the validation cases. Shapes: N log rows."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from unveil.data.interactions import Interactions
from unveil.data.sequences import Sequences
from unveil.data.splits import Split
from unveil.errors import UnveilError
from unveil.estimators.base import ESTIMATORS
from unveil.evaluation.evaluator import ValidationEvaluator
from unveil.evaluation.ground_truth import true_cases
from unveil.propensity.base import PROPENSITIES
from unveil.propensity.impressions import training_impressions
from unveil.registry import Registry
from unveil.runs.announce import Tell, tell_data, tell_training
from unveil.runs.config import Experiment, as_toml
from unveil.runs.folder import identity
from unveil.runs.train import origin_of, world_of
from unveil.runs.tune.study import Replicate, Reporter
from unveil.simulation.world import World
from unveil.training.checkpoint import Best, Epoch
from unveil.training.fit import Ready, prepare, reads_log, validation_of
from unveil.training.progress import Plan, Silent, Watcher
from unveil.training.recipe import AUTO, Recipe
from unveil.training.trainer import Fitted, Keep

#: Settings that decide which columns of the log a training needs.
_DECIDE = frozenset({"estimator.name", "propensity.name"})


@dataclass(frozen=True)
class Training:
    """An experiment; with `truth` it is validated on what users would have liked best: a world must be known."""

    experiment: Experiment
    truth: bool = False
    lower = False
    command = "unveil train LOG --config {config} -o RUN"

    @property
    def metric(self) -> str:
        """What the epochs of a training are compared by, too."""
        return self.experiment.training.monitor

    @property
    def seed(self) -> int:
        """Of the search; replicate r is trained with this + r."""
        return self.experiment.training.seed

    @property
    def epochs(self) -> int | None:
        """At most; a replicate is validated on its way."""
        return self.experiment.training.epochs

    def facts(self) -> dict[str, Any]:
        """What the report says of it."""
        return {"kind": "training", "truth": self.truth, "ranking": self.experiment.evaluation.validation}

    def changed(self, settings: Mapping[str, Any]) -> Self:
        """The recipe is checked before all else: it knows which settings go together."""
        self.experiment.recipe.changed(settings)
        return replace(self, experiment=self.experiment.changed(settings))

    def identity(self) -> dict[str, Any]:
        """All settings, and the ground truth of validation."""
        return {"settings": identity(self.experiment), "truth": self.truth}

    def context(self, tried: Collection[str], tell: Tell) -> "TrainingContext":
        """Read the log, split it, and leave the test cases out. `tried`: names of the settings that vary."""
        log = self.experiment.data.load()
        split = self.experiment.data.parts(log)
        tell_data(log, split, tell)
        world = world_of(self.experiment, log)
        objective = Objective.of(self.experiment, log, split, world, truth=self.truth, tried=tried)
        return TrainingContext(objective, log.fingerprint(), origin_of(world))

    def toml(self, head: str) -> str:
        """A config of `unveil train`."""
        return as_toml(self.experiment, head)


@dataclass(frozen=True, eq=False)
class Objective:
    """Settings and a replicate in, a training evaluated on the validation cases out. No test case can be reached.

    `logged` holds what the log recorded of the training part beside the histories, and nothing of other rows.
    """

    train: Sequences
    validation: ValidationEvaluator
    recipe: Recipe
    logged: Interactions | None = None
    world: World | None = None

    @classmethod
    def of(
        cls,
        experiment: Experiment,
        log: Interactions,
        split: Split,
        world: World | None,
        *,
        truth: bool = False,
        tried: Collection[str] = (),
    ) -> Self:
        """The last place that sees the whole split: what it gives holds no test case. `tried`: settings that vary."""
        protocol, recipe = experiment.evaluation, experiment.recipe
        exclude_seen = protocol.exclude_seen
        if truth:
            split, exclude_seen = replace(split, valid=true_cases(_known(world), split.valid)), False
        validation = validation_of(
            split, recipe, protocol=protocol.validation, exclude_seen=exclude_seen, seed=protocol.seed
        )
        contexts = replace(validation.evaluator, sequences=validation.evaluator.sequences.copied())
        recorded = log.propensity is not None or log.position is not None
        needed = recorded or reads_log(recipe) or not _DECIDE.isdisjoint(tried)
        logged = training_rows(log, split.train) if needed else None
        validation = replace(validation, evaluator=contexts, of_interactions=not truth)
        return cls(split.train.copied(), validation, recipe, logged, world)

    def recipe_of(self, settings: Mapping[str, Any], replicate: int = 0) -> Recipe:
        """The recipe of a trial. Replicate r has the same seed in all trials: they are compared in pairs."""
        recipe = self.recipe.changed(settings)
        seed = self.recipe.training.seed + replicate
        return recipe.changed({"training.seed": seed, **(_own_seeds(recipe, replicate) if replicate else {})})

    def ready(self, recipe: Recipe) -> Ready:
        """All parts of a training, checked and built."""
        return prepare(self.train, recipe, log=self.logged, world=self.world)

    def __call__(self, recipe: Recipe, keep: Keep, watch: Watcher) -> Fitted:
        """Train, or go on training, by the recipe."""
        evaluator = replace(self.validation.evaluator, length=recipe.model.length)
        return self.ready(recipe).fit(replace(self.validation, evaluator=evaluator), keep=keep, watch=watch)


@dataclass(frozen=True, eq=False)
class TrainingContext:
    """Trains the replicates of trials, each with a checkpoint in its place."""

    objective: Objective
    fingerprint: str
    world: str | None

    def announce(self, settings: Mapping[str, Any], tell: Tell) -> None:
        """Build what a trial needs, to find errors before anything is trained, and say what it is."""
        tell_training(self.objective.ready(self.objective.recipe_of(settings)), tell)

    def replicate(self, settings: Mapping[str, Any], number: int, place: Path, reporter: Reporter) -> Replicate:
        """Train, or go on training; the checkpoint is in `place`."""
        recipe = self.objective.recipe_of(settings, number)
        keep = Keep(place, resume=True, identity={"log": self.fingerprint})
        fitted, monitor = self.objective(recipe, keep, _Reporting(reporter)), recipe.training.monitor
        assert fitted.best is not None
        curve = [(epoch.epoch, epoch.validation[monitor]) for epoch in fitted.epochs if epoch.validation is not None]
        return Replicate(fitted.best.value, fitted.best.epoch, sum(epoch.seconds for epoch in fitted.epochs), curve)


@dataclass
class _Reporting(Silent):
    """Watches one training, and reports its epochs."""

    reporter: Reporter
    epochs: int = 1
    monitor: str = ""

    def start(self, plan: Plan) -> None:
        self.epochs, self.monitor = plan.epochs, plan.monitor
        self.reporter.advance(plan.done / plan.epochs)

    def epoch(self, epoch: Epoch, best: Best | None) -> None:
        self.reporter.advance(epoch.epoch / self.epochs)
        if epoch.validation is not None:
            self.reporter.validated(epoch.epoch, epoch.validation[self.monitor])


def training_rows(log: Interactions, train: Sequences) -> Interactions:
    """The log with all rows outside the training part blank: they stand where they stood, and were not shown."""
    shown_N = training_impressions(log, train)
    kept_N = shown_N.copy()
    kept_N[train.event_N] = True
    blank = {name: np.where(kept_N, column, np.zeros_like(column)) for name, column in log.columns().items()}
    blank["exposed"] = shown_N
    if log.propensity is not None:
        blank["propensity"] = np.where(kept_N, log.propensity, np.ones_like(log.propensity))
    return Interactions(blank.pop("user"), blank.pop("item"), log.users, log.items, **blank)


def _own_seeds(recipe: Recipe, replicate: int) -> dict[str, int]:
    """Where an estimator or a propensity has a seed of its own, replicates differ in it too."""
    parts: list[tuple[str, Registry[Any], Mapping[str, Any]]] = [
        ("estimator", ESTIMATORS, recipe.estimator),
        ("propensity", PROPENSITIES, recipe.propensity),
    ]
    return {
        f"{part}.seed": int(chosen.get("seed", 0)) + replicate
        for part, known, chosen in parts
        if chosen["name"] != AUTO and "seed" in known.options(str(chosen["name"]))
    }


def _known(world: World | None) -> World:
    if world is None:
        hint = "Name the world that the log was drawn from with --world."
        raise UnveilError("what users would have liked best is known in a world only", where="--truth", hint=hint)
    return world
