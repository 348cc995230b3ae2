"""What a tuner works with: the training part, a validation evaluator and a recipe. No test case can be reached.

Shapes: N rows of a log.
"""

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
from unveil.runs.tune.claims import Replicate
from unveil.runs.tune.subject import Told, Words
from unveil.simulation.world import World
from unveil.training.checkpoint import Best, Epoch
from unveil.training.fit import Ready, prepare, reads_log, validation_of
from unveil.training.progress import Plan, Watcher
from unveil.training.recipe import AUTO, Recipe
from unveil.training.trainer import Fitted, Keep

#: Settings that decide what a training asks of the log.
_DECIDE = frozenset({"estimator.name", "propensity.name"})


@dataclass(frozen=True, eq=False)
class Objective:
    """Settings and a replicate in, a training judged on the validation cases out.

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
        judging, recipe = experiment.evaluation, experiment.recipe
        exclude_seen = judging.exclude_seen
        if truth:
            split, exclude_seen = replace(split, valid=true_cases(_known(world), split.valid)), False
        validation = validation_of(
            split, recipe, protocol=judging.validation, exclude_seen=exclude_seen, seed=judging.seed
        )
        contexts = replace(validation.evaluator, sequences=validation.evaluator.sequences.apart())
        tells = log.propensity is not None or log.position is not None
        asked = reads_log(recipe) or not _DECIDE.isdisjoint(tried)
        logged = training_rows(log, split.train) if tells or asked else None
        validation = replace(validation, evaluator=contexts, of_takes=not truth)
        return cls(split.train.apart(), validation, recipe, logged, world)

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


def training_rows(log: Interactions, train: Sequences) -> Interactions:
    """The log with all rows outside the training part made blank: they stand where they stood, and were not shown."""
    shown_N = training_impressions(log, train)
    kept_N = shown_N.copy()
    kept_N[train.event_N] = True
    blank = {name: np.where(kept_N, column, np.zeros_like(column)) for name, column in log.columns().items()}
    blank["exposed"] = shown_N
    if log.propensity is not None:
        blank["propensity"] = np.where(kept_N, log.propensity, np.ones_like(log.propensity))
    return Interactions(blank.pop("user"), blank.pop("item"), log.users, log.items, **blank)


def _own_seeds(recipe: Recipe, replicate: int) -> dict[str, int]:
    """Where an estimator or a propensity draws lots of its own, a replicate has its own too."""
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


_TRUE = "Validation asked for the true favourite of each user, as in the paper's semi-synthetic study."
_TAKEN = "Validation asked for what users took next."


@dataclass(frozen=True)
class Training:
    """An experiment; with `truth` it is validated on what users would have liked best: a world must be known."""

    experiment: Experiment
    truth: bool = False

    @property
    def metric(self) -> str:
        """What the epochs of a training are compared by, too."""
        return self.experiment.training.monitor

    @property
    def lower(self) -> bool:
        """Metrics of rankings are better when higher."""
        return False

    @property
    def seed(self) -> int:
        """Replicate r is trained with this + r."""
        return self.experiment.training.seed

    @property
    def epochs(self) -> int | None:
        """At most."""
        return self.experiment.training.epochs

    @property
    def words(self) -> Words:
        """Of models, trainings and cases."""
        return Words(
            several=(
                "Each trial trains a model with other settings, several times with other seeds, and is judged by the "
                "mean of its replicates on the validation cases. The test cases were not looked at."
            ),
            once=(
                "Each trial trains a model with other settings, once, and is judged on the validation cases: how much "
                "another seed would change is not known. The test cases were not looked at."
            ),
            unit="training",
            judging=f"{_TRUE if self.truth else _TAKEN} Ranking: {self.experiment.evaluation.validation}.",
            chosen=(
                "The best of many is chosen by the very figures shown here, so its own figure is too good by chance. "
                "How good the settings are, only the test cases of a run with them can say."
            ),
            command="unveil train LOG --config {config} -o RUN",
        )

    def changed(self, settings: Mapping[str, Any]) -> Self:
        """The recipe is checked before all else: it knows which settings go together."""
        self.experiment.recipe.changed(settings)
        return replace(self, experiment=self.experiment.changed(settings))

    def identity(self) -> dict[str, Any]:
        """All settings, and what is asked for in validation."""
        return {"settings": identity(self.experiment), "truth": self.truth}

    def bench(self, tried: Collection[str], tell: Tell) -> "TrainingBench":
        """Read the log, split it, and put the test cases away."""
        log = self.experiment.data.load()
        split = self.experiment.data.parts(log)
        tell_data(log, split, tell)
        world = world_of(self.experiment, log)
        objective = Objective.of(self.experiment, log, split, world, truth=self.truth, tried=tried)
        return TrainingBench(objective, log.fingerprint(), origin_of(world))

    def toml(self, head: str) -> str:
        """A config of `unveil train`."""
        return as_toml(self.experiment, head)


@dataclass(frozen=True, eq=False)
class TrainingBench:
    """Trains the replicates of trials, each with a checkpoint in its place."""

    objective: Objective
    fingerprint: str
    world: str | None

    def announce(self, settings: Mapping[str, Any], tell: Tell) -> None:
        """The estimator, its weights, the model and where it is trained."""
        tell_training(self.objective.ready(self.objective.recipe_of(settings)), tell)

    def replicate(self, settings: Mapping[str, Any], number: int, place: Path, told: Told) -> Replicate:
        """Train, or go on training."""
        recipe = self.objective.recipe_of(settings, number)
        keep = Keep(place, resume=True, identity={"log": self.fingerprint})
        return _summary(self.objective(recipe, keep, Inside(told)), recipe.training.monitor)


@dataclass
class Inside:
    """Watches one training, and passes on how far it is and how good."""

    told: Told
    epochs: int = 1
    monitor: str = ""

    def start(self, plan: Plan) -> None:
        """What lies ahead."""
        self.epochs, self.monitor = plan.epochs, plan.monitor
        self.told.part(plan.done / plan.epochs)

    def batch(self, loss: float) -> None:
        """Nothing: epochs are told."""

    def epoch(self, epoch: Epoch, best: Best | None) -> None:
        """After each epoch, with its checkpoint written."""
        self.told.part(epoch.epoch / self.epochs)
        if epoch.validation is not None:
            self.told.judged(epoch.epoch, epoch.validation[self.monitor])

    def stop(self) -> None:
        """Nothing to tidy up."""


def _summary(fitted: Fitted, monitor: str) -> Replicate:
    assert fitted.best is not None
    curve = [(epoch.epoch, epoch.validation[monitor]) for epoch in fitted.epochs if epoch.validation is not None]
    return Replicate(fitted.best.value, fitted.best.epoch, sum(epoch.seconds for epoch in fitted.epochs), curve)
