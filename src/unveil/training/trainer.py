"""The trainer: epochs of batches, validated, checkpointed and resumable.

Shapes: B batch, L length, D width, M masked slots, V items.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import nn

from unveil.data.batches import Batch, ClozeTask, NextItemTask
from unveil.errors import UnveilError
from unveil.estimators.base import Estimator, Explaining, Signal, cloze_risk
from unveil.evaluation.evaluator import ValidationEvaluator
from unveil.files import explained, write_whole
from unveil.models.base import Backbone
from unveil.processes import threads
from unveil.propensity.base import PropensityModel
from unveil.propensity.build import caveats, is_popularity
from unveil.propensity.impressions import ImpressionGroups
from unveil.propensity.weights import WeightDiagnostics
from unveil.training.checkpoint import Best, Checkpoint, Epoch, TrainingState, check_same_run, read_epochs
from unveil.training.device import HeapTrim, pick_device, seed_epoch
from unveil.training.distributed import SINGLE, ProcessGroup
from unveil.training.optimiser import AdamW, WeightAverage, learning_rate
from unveil.training.progress import Plan, Watcher
from unveil.training.recipe import WHEREABOUTS, TrainerConfig
from unveil.wording import quantity

Validate = Callable[[Backbone], Mapping[str, float] | float]

CHECKPOINT, EPOCHS = "checkpoint.safetensors", "training.jsonl"


@dataclass(frozen=True)
class Keep:
    """The folder of a run's checkpoint and file of epochs; `identity` must match on resumption."""

    folder: Path
    resume: bool = False
    identity: Mapping[str, Any] = field(default_factory=dict)
    prefix: str = ""  # of the names of both files

    @property
    def checkpoint(self) -> Path:
        return self.folder / f"{self.prefix}{CHECKPOINT}"

    @property
    def epochs(self) -> Path:
        return self.folder / f"{self.prefix}{EPOCHS}"


@dataclass(frozen=True)
class Fitted:
    """The result of training; the model itself has the best weights."""

    epochs: list[Epoch]
    best: Best | None  # None without validation: the last weights are kept
    stopped_early: bool


def fitted_in(folder: Path, config: TrainerConfig) -> Fitted:
    """The result of a finished training, by its file of epochs."""
    epochs = read_epochs(folder / EPOCHS)
    try:
        validated = [(epoch.epoch, epoch.validation) for epoch in epochs if epoch.validation is not None]
        valid = [Best(epoch, float(metrics[config.monitor])) for epoch, metrics in validated]
    except LookupError:
        problem = f"the epochs do not tell the validation's {config.monitor}"
        raise UnveilError(problem, where=folder / EPOCHS, hint="Restore the folder from a copy.") from None
    return Fitted(epochs, max(valid, key=lambda best: best.value, default=None), 0 < len(epochs) < config.epochs)


class Stopped(KeyboardInterrupt):
    """Training was interrupted; epochs up to the last checkpoint are kept."""

    def __init__(self, epochs_kept: int, folder: Path | None) -> None:
        self.epochs_kept, self.folder = epochs_kept, folder
        kept = quantity(epochs_kept, "epoch")
        super().__init__(f"training was stopped; {kept} {'is' if epochs_kept == 1 else 'are'} kept")


@dataclass
class Tally:
    """The risk of an epoch: Σ w·(−log p), and its divisor."""

    risk: float = 0.0
    total: float = 0.0
    slots: int = 0
    lr: float = 0.0

    @property
    def loss(self) -> float:
        return self.risk / self.total if self.total else 0.0


@dataclass
class Trainer:
    """Minimises an estimator's risk over a task, epoch by epoch. `training.fit.prepare` builds one from a recipe."""

    config: TrainerConfig
    model: Backbone
    estimator: Estimator
    task: ClozeTask | NextItemTask  # `epoch(n)` is a pure function of n: that makes resumption exact
    mean_weight: float = 1.0  # of the estimator's weights over all slots
    propensity: PropensityModel | None = None  # None: the estimator does not weight by one
    weights: WeightDiagnostics | None = None
    groups: ImpressionGroups | None = None  # of the log's impressions without a click
    group: ProcessGroup = SINGLE
    keep: Keep | None = None
    watch: Watcher = field(default_factory=Watcher)
    state: TrainingState = field(default_factory=TrainingState)  # what a checkpoint holds
    saved_at: float = -math.inf
    began_at: float = -math.inf  # as if all epochs so far had been trained in this process
    late: bool = False  # the time to train is over
    last: int = field(init=False)  # epoch
    kept: int = 0  # epochs in the last checkpoint
    trim_heap: HeapTrim = field(default_factory=HeapTrim)

    @cached_property
    def device(self) -> torch.device:
        return pick_device(self.config.device)

    @cached_property
    def optimiser(self) -> AdamW:
        return AdamW(list(self.model.parameters()), self.config.betas, self.config.weight_decay)

    @cached_property
    def average(self) -> WeightAverage:
        return WeightAverage(self.config.average)

    @property
    def by_proxy(self) -> bool:
        """Whether θ is by popularity, for want of recorded exposure."""
        return is_popularity(self.propensity)

    def warnings(self) -> list[str]:
        found = [] if self.weights is None else self.weights.warnings()
        chosen_by = self.estimator.name if isinstance(self.estimator, Explaining) else None
        return [*found, *caveats(self.propensity, groups=self.groups, chosen_by=chosen_by)]

    def fit(
        self,
        validate: Validate | None = None,
        *,
        keep: Keep | None = None,
        watch: Watcher | None = None,
        group: ProcessGroup = SINGLE,
        last: int | None = None,
    ) -> Fitted:
        """Train the model in place, from the checkpoint if there is one to resume; it then has the best weights.

        `validate` gives the metric to be maximised, alone or by its name among others. All processes of a group have
        the same model, estimator and task; only the leader has `keep` and `watch`. `last`: the epoch to end with, if
        it is not the last of the schedule.
        """
        self.keep, self.watch, self.group = keep, watch or Watcher(), group
        self.last = min(last or self.config.epochs, self.config.epochs)
        if isinstance(validate, ValidationEvaluator) and isinstance(self.estimator, Explaining):
            validate = validate.explained_by(self.estimator.offset)
        self.model.to(self.device)
        private = torch.random.fork_rng(devices=[self.device] if self.device.type == "cuda" else [])
        with threads(self.config.threads), private:
            self.begin()
            self.began_at = time.monotonic() - sum(epoch.seconds for epoch in self.state.epochs)
            grace = None if self.config.patience is None else self.config.patience * self.config.validate_every
            self.watch.start(Plan(self.last, len(self.task), self.state.done, self.config.monitor, grace))
            try:
                while not self.finished():
                    self.train_epoch(self.state.done + 1, validate)
            except KeyboardInterrupt as interrupt:
                raise Stopped(self.kept, keep.folder if keep else None) from interrupt
            finally:
                self.watch.stop()
            self.model.load_state_dict(self.state.best_weights or self.average.weights, strict=False)
        self.model.eval().cpu()
        return Fitted(self.state.epochs, self.state.best, self.state.done < self.config.epochs)

    def finished(self) -> bool:
        out_of_patience = self.config.patience is not None and self.state.waited >= self.config.patience
        return out_of_patience or self.late or self.state.done >= self.last

    def look_at_clock(self) -> None:
        """See whether the time to train is over; with several processes, by the clock of the leader."""
        if self.config.minutes is not None:  # the last fit takes at most as long as all before it
            limit = 60 * self.config.minutes / (2 if self.config.refit else 1)
            self.late = self.group.broadcast(time.monotonic() - self.began_at > limit)

    def train_epoch(self, number: int, validate: Validate | None) -> None:
        start, tally = time.perf_counter(), Tally()
        for nth, tally in enumerate(self.steps(number)):
            self.watch.batch(tally.loss)
            if nth % 16 == 15:
                self.look_at_clock()
            if self.late:
                break
        if not tally.slots:
            raise UnveilError("no item was masked in a whole epoch", hint="Raise the mask probability.")
        seconds = time.perf_counter() - start
        self.look_at_clock()
        due = number % self.config.validate_every == 0 or number == self.last or self.late
        with self.average.applied(self.model) if due else nullcontext():
            validation = self.validated(number, validate) if validate is not None and due else None
        self.state.epochs.append(Epoch(number, tally.loss, tally.lr, tally.slots, seconds, validation))
        self.store()
        self.watch.epoch(self.state.epochs[-1], self.state.best)

    def steps(self, number: int) -> Iterator[Tally]:
        seed_epoch(self.config.seed, number, self.group.rank)
        self.model.train()
        tally = Tally()
        for nth, batch in enumerate(self.task.epoch(number)):
            done = (number - 1) * len(self.task) + nth
            tally.lr = learning_rate(self.config, done, len(self.task))
            if len(batch.slots):  # a batch without slots teaches nothing
                self.step(batch, tally, number)
                self.average.update(self.model, done + 1)
            if nth % 16 == 0:
                self.trim_heap()
            yield tally

    def step(self, batch: Batch, tally: Tally, epoch: int) -> None:
        """One step of the optimiser; risks and gradients are summed over the group."""
        part = self.group.part(batch)
        signal = self.estimator(part.slots).to(self.device)
        size = len(batch.slots), self.task.slots_per_batch
        divisor, total = normaliser(self.estimator, signal, *size, self.mean_weight, self.group)
        self.optimiser.zero_grad()
        risk = self.backward(part.to(self.device), signal, divisor)
        (value,) = self.group.sum_gradients(self.optimiser.parameters, risk)
        if not math.isfinite(value):
            hint = (
                "Try a smaller training.lr, a smaller training.clip, warm-up, a clip on the propensities, or less "
                "extreme options of the estimator or the propensity."
            )
            problem = "training diverged: the loss is not finite"
            raise UnveilError(problem, where=f"epoch {epoch}", found=value, hint=hint)
        if self.config.clip is not None:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.config.clip)
        self.optimiser.step(tally.lr)
        tally.risk += value * divisor
        tally.total += total
        tally.slots += len(batch.slots)

    def backward(self, part: Batch, signal: Signal, divisor: float) -> float:
        """Compute the gradients of a part's risk, and return the risk; a part without slots has none."""
        if not len(part.slots):
            return 0.0
        loss = cloze_risk(*self.model.head(self.model(part.token_BL, part.where)), signal, normaliser=divisor)
        torch.autograd.backward(loss)
        return loss.item()

    def validated(self, number: int, validate: Validate) -> Mapping[str, float]:
        """The metrics of the model, the same for all of the group; the best weights are kept."""
        self.model.eval()
        found = validate(self.model)
        mine = found if isinstance(found, Mapping) else {self.config.monitor: found}
        metrics = self.group.broadcast({name: float(value) for name, value in mine.items()})
        wrong = [name for name, value in metrics.items() if not math.isfinite(value)]
        if wrong or self.config.monitor not in metrics:
            problem = f"no number for {wrong[0]}" if wrong else ", ".join(metrics)
            raise UnveilError("validation failed", where=f"epoch {number}", found=problem, expected=self.config.monitor)
        self.state.validated(metrics[self.config.monitor], self.model)
        return metrics

    def begin(self) -> None:
        """Resume from the checkpoint, or start; all of a group from the state of its leader."""
        self.group.check_same(self.settings())
        if self.keep is not None:
            path = self.keep.checkpoint
            if path.exists():  # a run that died before its first starts anew
                if not self.keep.resume:
                    hint = "Resume the run, or name another folder."
                    raise UnveilError("the folder holds a run already", where=self.keep.folder, hint=hint)
                saved = Checkpoint.load(path)
                check_same_run(saved.state["identity"], self.identity(), path)
                self.state = TrainingState.restored(saved, self.model, self.optimiser, self.average)
                self.kept = self.state.done
            self.state.begin(self.config.threads, path)
            write_whole(self.keep.epochs, "".join(epoch.line() for epoch in self.state.epochs))
        received = self.group.broadcast_state(self.checkpoint)
        if received is not None:
            self.state = TrainingState.restored(received, self.model, self.optimiser, self.average)
            torch.set_num_threads(self.state.began.get("threads", torch.get_num_threads()))

    def store(self) -> None:
        """The line first, then the checkpoint: a line without its checkpoint is written again on resumption."""
        if self.keep is None:
            return
        path = self.keep.epochs
        with explained(path), path.open("a", encoding="utf-8") as file:
            file.write(self.state.epochs[-1].line())
        now = time.monotonic()
        if self.finished() or now - self.saved_at >= 60 * self.config.checkpoint_minutes:
            self.checkpoint().save(self.keep.checkpoint)
            self.saved_at, self.kept = now, self.state.done

    def checkpoint(self) -> Checkpoint:
        return self.state.checkpoint(self.model, self.optimiser, self.average, self.identity())

    def identity(self) -> dict[str, Any]:
        return self.settings() | (dict(self.keep.identity) if self.keep else {})

    def settings(self) -> dict[str, Any]:
        model, estimator = self.model, self.estimator
        return {
            "training": {name: value for name, value in settings(self.config).items() if name not in WHEREABOUTS},
            "model": {"class": type(model).__name__, "n_items": model.n_items, **settings(model.config)},
            "estimator": {"name": estimator.name, **settings(estimator)},
            "task": settings(self.task),
        }


def settings(thing: object) -> dict[str, Any]:
    """The fields of a dataclass with simple values; data and parts of other kinds are left out."""
    if not is_dataclass(thing):
        return {}
    named = {field.name: getattr(thing, field.name) for field in fields(thing)}
    return {name: _plain(value) for name, value in named.items() if isinstance(value, int | float | str | tuple | None)}


def _plain(value: object) -> object:
    """For JSON, which has no infinity."""
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def normaliser(
    estimator: Estimator,
    signal: Signal,
    slots: int,
    expected: float,
    mean_weight: float = 1.0,
    group: ProcessGroup = SINGLE,
) -> tuple[float, float]:
    """The divisor of the risk of a batch with `expected` slots, and its part in the mean over the epoch.

    The paper's 1/N with N the *expected* slots of a batch, so that every slot of an epoch counts alike, times the mean
    weight of the estimator, which puts all risks on one scale for the gradient clip; self-normalised, times that of the
    batch. The signal is this process's part; `slots` and the sum of weights are those of the whole batch.
    """
    if not estimator.self_normalised:
        return expected * mean_weight, slots * mean_weight
    (weight,) = group.sum(float(signal.weight_M.sum()))
    total = max(weight, torch.finfo(torch.float32).tiny)
    return total * expected / slots, total
