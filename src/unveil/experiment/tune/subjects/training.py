"""A training as what is tuned: an estimator on a backbone, judged on the validation cases."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from unveil.experiment.tune.record import Replicate
from unveil.experiment.tune.subjects.base import Told, Words
from unveil.experiment.tune.subjects.objective import Objective
from unveil.experiment.tune.winner import as_toml
from unveil.runs.announce import Tell, tell_data, tell_training
from unveil.runs.config import Experiment
from unveil.runs.folder import identity
from unveil.runs.train import origin_of, world_of
from unveil.training.checkpoint import Best, Epoch
from unveil.training.progress import Plan
from unveil.training.trainer import Fitted, Keep

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
