"""A cell of RQ4: one estimator trained on the log in one replicate, and judged; the naive one with its control."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from unveil.evaluation.evaluator import Evaluator
from unveil.evaluation.ranking import Scorer
from unveil.experiment.outcome import BASE, STANDARD
from unveil.experiment.rq4.bench import RealBench
from unveil.experiment.rq4.control import CONTROL, Control
from unveil.experiment.rq4.study import RealStudy
from unveil.models.baselines import Popularity, Random
from unveil.processes import threads
from unveil.propensity.weights import diagnose, inverse
from unveil.runs.workers import OnProgress
from unveil.studies import trial
from unveil.studies.arms import seconds_of
from unveil.studies.results import BASELINES
from unveil.studies.trial import resolved
from unveil.training.checkpoint import read as read_epochs
from unveil.training.fit import Ready, prepare
from unveil.training.trainer import CHECKPOINT, EPOCHS, Keep

#: Slots whose propensity is looked up together.
_BLOCK = 1 << 16


@dataclass(frozen=True)
class RealCell:
    """One training and its judgement. A training that was stopped goes on from its last checkpoint."""

    study: RealStudy
    folder: Path
    fingerprint: str  # of the log
    size: tuple[int, int, int]  # of the log: users, items, events
    replicate: int
    arm: str

    @property
    def key(self) -> str:
        """r0-naive."""
        return f"r{self.replicate}-{self.arm}"

    @property
    def training(self) -> Path:
        """Where the training is kept until the cell is done."""
        return self.folder / "trainings" / self.key

    @property
    def cost(self) -> float:
        """About the seconds it takes on one core."""
        return 5.0 if self.arm in BASELINES else 10.0 + training_cost(self.study, self.arm, self.size)

    def run(self, tell: OnProgress) -> Mapping[str, Any]:
        """Train, judge, and tell all that tables and plots need."""
        bench = _bench(self.study, self.replicate)
        with threads(1):
            if self.arm in BASELINES:
                return self._about(_judged(self._baseline(bench), bench.test), None, None)
            return self._trained(bench, tell)

    def seconds(self, done: Mapping[str, Any]) -> float:
        """What the cell took, at least. The run that ended it knows of itself alone, the epochs of all runs."""
        epochs = self.training / EPOCHS
        trained = sum(epoch.seconds for epoch in read_epochs(epochs)) if epochs.exists() else 0.0
        return max(trained, float(done.get("seconds", 0.0)))

    def _baseline(self, bench: RealBench) -> Scorer:
        if self.arm == "random":
            return Random(bench.split.train.n_items, self.study.replicate_seed(self.replicate))
        return Popularity.fit(bench.split.train)

    def _trained(self, bench: RealBench, tell: OnProgress) -> Mapping[str, Any]:
        recipe = resolved(self.study.recipe(self.arm, self.replicate), bench.split.train, bench.log)
        ready, bench = prepare(bench.split.train, recipe, log=bench.log), bench.of_length(recipe.model.length)
        self.training.mkdir(parents=True, exist_ok=True)
        keep = Keep(self.training, resume=True, identity={"log": self.fingerprint})
        fitted = ready.fit(bench.validation, keep=keep, watch=trial.TrainingShare(tell))
        cell = self._about(_judged(ready.model, bench.test), trial.training_record(fitted), _weights(ready))
        if self.arm != BASE:
            return cell
        control = Control.chosen(ready.model, bench.validation, self.study.strengths)
        judged = control.judged(ready.model, bench.test, self.study.popular)
        return {**cell, CONTROL: {**judged, "ranks": {STANDARD: judged["ranks"]}}}

    def _about(
        self, judged: Mapping[str, Any], training: Mapping[str, Any] | None, weights: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        about = {"replicate": self.replicate, "estimator": self.arm, "log": {"fingerprint": self.fingerprint}}
        return {**about, **judged, "training": training, "weights": weights}


def forget_trainings(cells: list[RealCell]) -> None:
    """Remove the checkpoints of cells that are done; what each epoch gave stays."""
    for cell in cells:
        (cell.training / CHECKPOINT).unlink(missing_ok=True)


def training_cost(study: RealStudy, arm: str, size: tuple[int, int, int]) -> float:
    """Seconds on one core, roughly."""
    return seconds_of(study.recipe(arm, 0), size)


@lru_cache(maxsize=1)
def _bench(study: RealStudy, replicate: int) -> RealBench:
    """The estimators of a replicate, one after another in the same process, share its bench."""
    return RealBench.of(study, replicate)


def _judged(scorer: Scorer, test: Evaluator) -> dict[str, Any]:
    found = test.evaluate(scorer, resamples=1)
    return {"ranks": {STANDARD: trial.ranks(found)}, "lists": trial.list_metrics(found)}


def _weights(ready: Ready) -> dict[str, Any] | None:
    """The weights as they were, and as the paper writes them: 1/θ̂, with no exponent and no clip."""
    if ready.weights is None or ready.propensity is None:
        return None
    slots = ready.task.slots
    parts = [ready.propensity(slots.part(at, at + _BLOCK)) for at in range(0, len(slots), _BLOCK)]
    as_written = diagnose(inverse(torch.cat(parts), 0.0, 1.0))
    return {**asdict(ready.weights), "as_written": asdict(as_written)}
