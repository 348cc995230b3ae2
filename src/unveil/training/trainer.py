"""The one place that sees model and estimator together: epochs of Cloze batches, validated, kept and resumable."""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from unveil.errors import UnveilError
from unveil.estimators.base import Estimator
from unveil.models.base import Backbone
from unveil.processes import threads
from unveil.training.checkpoint import (
    Best,
    Checkpoint,
    Epoch,
    TrainingState,
    append,
    check_same_run,
    checkpoint_of,
    read,
    restored,
    rewrite,
    settings,
    sweep_drafts,
)
from unveil.training.device import pick_device, private_randomness, seed_epoch
from unveil.training.learner import Learner, Task
from unveil.training.process_group import SINGLE, ProcessGroup
from unveil.training.progress import Plan, Silent, Watcher
from unveil.training.recipe import WHEREABOUTS, TrainerConfig
from unveil.wording import quantity

Validate = Callable[[Backbone], Mapping[str, float] | float]

CHECKPOINT, EPOCHS = "checkpoint.safetensors", "training.jsonl"


@dataclass(frozen=True)
class Keep:
    """Where a run is kept: its checkpoint and its file of epochs. `identity` is what else must match on resumption."""

    folder: Path
    resume: bool = False
    identity: Mapping[str, Any] = field(default_factory=dict)

    @property
    def checkpoint(self) -> Path:
        """The one file a run goes on from."""
        return self.folder / CHECKPOINT

    @property
    def epochs(self) -> Path:
        """One JSON object per epoch."""
        return self.folder / EPOCHS


@dataclass(frozen=True)
class Fitted:
    """What training gave; the model itself holds the best weights."""

    epochs: list[Epoch]
    best: Best | None  # None without validation: the last weights are kept
    stopped_early: bool


def fitted_in(folder: Path, config: TrainerConfig) -> Fitted:
    """What training gave that is over, by its file of epochs."""
    epochs = read(folder / EPOCHS)
    try:
        validated = [(epoch.epoch, epoch.validation) for epoch in epochs if epoch.validation is not None]
        valid = [Best(epoch, float(metrics[config.monitor])) for epoch, metrics in validated]
    except (LookupError, TypeError, ValueError):
        problem = f"the epochs do not tell the validation's {config.monitor}"
        raise UnveilError(problem, where=folder / EPOCHS, hint="Restore the folder from a copy.") from None
    return Fitted(epochs, max(valid, key=lambda best: best.value, default=None), len(epochs) < config.epochs)


class Stopped(KeyboardInterrupt):
    """Training was interrupted; nothing is lost but what came after the last checkpoint."""

    def __init__(self, epochs_kept: int, folder: Path | None) -> None:
        self.epochs_kept, self.folder = epochs_kept, folder
        kept = quantity(epochs_kept, "epoch")
        super().__init__(f"training was stopped; {kept} {'is' if epochs_kept == 1 else 'are'} kept")


@dataclass
class Trainer:
    """Minimises an estimator's risk over a task, epoch by epoch.

    `validate` gives the metric to be maximised, alone or by its name among others. All processes of a group train with
    the same model, estimator and task; only its leader keeps and watches. `state` is what a checkpoint holds.
    """

    config: TrainerConfig
    model: Backbone
    estimator: Estimator
    task: Task
    validate: Validate | None = None
    keep: Keep | None = None
    watch: Watcher = field(default_factory=Silent)
    mean_weight: float = 1.0  # of the estimator's weights over all slots
    group: ProcessGroup = SINGLE
    state: TrainingState = field(default_factory=TrainingState)
    saved_at: float = -math.inf
    kept: int = 0  # epochs in the last checkpoint

    def __post_init__(self) -> None:
        device = pick_device(self.config.device)
        self.learner = Learner(
            self.config, self.model.to(device), self.estimator, self.task, device, self.mean_weight, self.group
        )

    def fit(self) -> Fitted:
        """Train the model in place, from the checkpoint if there is one to resume; it then holds the best weights."""
        with threads(self.config.threads), private_randomness(self.learner.device):
            self.begin()
            self.watch.start(Plan(self.config.epochs, len(self.task), self.state.done, self.config.monitor))
            try:
                while not self.finished():
                    self.one_epoch(self.state.done + 1)
            except KeyboardInterrupt as interrupt:
                raise Stopped(self.kept, self.keep.folder if self.keep else None) from interrupt
            finally:
                self.watch.stop()
            if self.state.best_weights:
                self.model.load_state_dict(self.state.best_weights)
            self.model.eval()
        return Fitted(self.state.epochs, self.state.best, self.state.done < self.config.epochs)

    def finished(self) -> bool:
        """Whether all epochs are done, or validation has not improved for too long."""
        out_of_patience = self.config.patience is not None and self.state.waited >= self.config.patience
        return out_of_patience or self.state.done >= self.config.epochs

    def one_epoch(self, number: int) -> None:
        """Train, validate, store and report."""
        seed_epoch(self.config.seed, number, self.group.rank)
        start = time.perf_counter()
        tally = self.learner.epoch(number, self.watch)
        seconds = time.perf_counter() - start
        validation = self.validated(number)
        self.state.epochs.append(Epoch(number, tally.loss, tally.lr, tally.slots, seconds, validation))
        self.store()
        self.watch.epoch(self.state.epochs[-1], self.state.best)

    def validated(self, number: int) -> Mapping[str, float] | None:
        """Metrics each `validate_every` epochs and after the last."""
        due = number % self.config.validate_every == 0 or number == self.config.epochs
        if self.validate is None or not due:
            return None
        self.model.eval()
        found = self.validate(self.model)
        mine = found if isinstance(found, Mapping) else {self.config.monitor: found}
        metrics = self.group.broadcast({name: float(value) for name, value in mine.items()})
        wrong = [name for name, value in metrics.items() if not math.isfinite(value)]
        if wrong or self.config.monitor not in metrics:
            problem = f"no number for {wrong[0]}" if wrong else ", ".join(metrics)
            raise UnveilError("validation failed", where=f"epoch {number}", found=problem, expected=self.config.monitor)
        self.state.validated(metrics[self.config.monitor], self.model)
        return metrics

    def begin(self) -> None:
        """Go on from the checkpoint, or start anew; all of a group from the state of its leader."""
        self.group.check_same(self.learning())
        if self.keep is not None:
            self.go_on(self.keep)
        received = self.group.broadcast_state(self.checkpoint)
        if received is not None:
            self.state = restored(received, self.model, self.learner.optimiser)

    def go_on(self, keep: Keep) -> None:
        """From the checkpoint, if there is one: a run that died before its first starts anew."""
        there = keep.checkpoint.exists()
        if there and not keep.resume:
            hint = "Resume the run, or name another folder."
            raise UnveilError("the folder holds a run already", where=keep.folder, hint=hint)
        if there:
            checkpoint = Checkpoint.load(keep.checkpoint)
            check_same_run(checkpoint.state["identity"], self.identity(), keep.checkpoint)
            self.state = restored(checkpoint, self.model, self.learner.optimiser)
            self.kept = self.state.done
        sweep_drafts(keep.checkpoint)
        rewrite(keep.epochs, self.state.epochs)

    def store(self) -> None:
        """The line first, then the checkpoint: a kill between them leaves a line that resumption writes again."""
        if self.keep is None:
            return
        append(self.keep.epochs, self.state.epochs[-1])
        now = time.monotonic()
        if self.finished() or now - self.saved_at >= 60 * self.config.checkpoint_minutes:
            self.checkpoint().save(self.keep.checkpoint)
            self.saved_at, self.kept = now, self.state.done

    def checkpoint(self) -> Checkpoint:
        """The state as it is now."""
        return checkpoint_of(self.state, self.model, self.learner.optimiser, self.identity())

    def identity(self) -> dict[str, Any]:
        """Everything that decides the numbers, as far as it can be named."""
        return self.learning() | (dict(self.keep.identity) if self.keep else {})

    def learning(self) -> dict[str, Any]:
        """What is learnt, and how."""
        model, estimator = self.model, self.estimator
        trainer = {name: value for name, value in settings(self.config).items() if name not in WHEREABOUTS}
        return {
            "training": trainer,
            "model": {"class": type(model).__name__, "n_items": model.n_items, **settings(model.config)},
            "estimator": {"name": estimator.name, **settings(estimator)},
            "task": settings(self.task),
        }
