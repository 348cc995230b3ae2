"""A feedback loop: models retrained, round after round, on what users chose from their recommendations (RQ5)."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as as_bytes

from unveil.data.interactions import Interactions
from unveil.data.sequences import Sequences
from unveil.data.vocabulary import Index
from unveil.data.writers import write as write_log
from unveil.errors import UnveilError, unknown
from unveil.estimators.base import ESTIMATORS
from unveil.files import alone_in, refuse_occupied, write_whole
from unveil.processes import threads
from unveil.runs.progress import Silent, Watcher
from unveil.runs.workers import Engine, OnProgress
from unveil.settings import parsed, plain
from unveil.simulation.feedback.learners import RULES, Network
from unveil.simulation.feedback.responses import response_model
from unveil.simulation.feedback.rounds import Loop, Retraining, State, grown, held, load, save
from unveil.simulation.world import World
from unveil.studies.cells import ABOUT, Store, run_cells
from unveil.studies.loop_results import LoopOutcome
from unveil.studies.paper import recognised, tuned
from unveil.training.checkpoint import Best, Epoch, sweep_drafts
from unveil.training.progress import Plan
from unveil.training.progress import Silent as NoTraining
from unveil.training.recipe import Recipe, network_in

#: One thread a model: then figures do not depend on how many models are trained side by side.
ALWAYS: Mapping[str, Any] = {"training.threads": 1, "training.device": "cpu"}


@dataclass(frozen=True)
class LoopConfig:
    """How the loop goes; see `simulation.feedback.rounds.Loop`."""

    rounds: int = 10
    k: int = 10
    response: dict[str, Any] = field(default_factory=lambda: {"name": "uniform"})  # its name, then its options
    retrain: str = "scratch"  # scratch, warm, warm:EPOCHS or every:ROUNDS
    replicates: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("rounds", 1), ("k", 1), ("replicates", 1), ("seed", 0)):
            if getattr(self, name) < least:
                expected = f"at least {least}"
                raise UnveilError("out of range", where=name, found=getattr(self, name), expected=expected)
        Retraining.parse(self.retrain)
        response_model(self.response)


@dataclass(frozen=True)
class LoopPlan:
    """The loop, and what each model is trained by; None for a rule that learns next to nothing."""

    loop: LoopConfig
    models: dict[str, Recipe | None]
    preset: str = "quick"
    tuned_for: str | None = None  # the data set to which the authors tuned the settings
    data: str | None = None  # the data set of the paper that the log has the size of

    @classmethod
    def of(
        cls,
        loop: LoopConfig,
        models: Sequence[str],
        preset: str = "quick",
        assignments: Sequence[str] = (),
        tuned_for: str | None = None,
    ) -> Self:
        """Models by the names of their estimators, or of rules; `MODEL:name=value` changes one of them only."""
        if not models:
            raise UnveilError("there is no model to loop", expected="at least one, such as naive")
        if len(set(models)) < len(models):
            raise UnveilError("a model was named twice", found=", ".join(models))
        changes = {name: {} if tuned_for is None else dict(tuned(tuned_for, name, preset)) for name in models}
        response = dict(loop.response)
        # Settings of all models first: those of one have the last word.
        for name, value in sorted(map(parsed, assignments), key=lambda pair: ":" in pair[0]):
            model, colon, setting = name.partition(":")
            if colon and model not in models:
                raise unknown("model", model, models, where=f"--set {name}")
            if colon:
                changes[model][setting] = value
            elif name.startswith("response."):
                response[name.removeprefix("response.")] = value
            else:
                for own in changes.values():
                    own[name] = value
        recipes = {name: _recipe(name, preset, own) for name, own in changes.items()}
        return cls(replace(loop, response=response), recipes, preset, tuned_for)

    @property
    def networks(self) -> list[str]:
        """The models that are trained."""
        return [name for name, recipe in self.models.items() if recipe is not None]

    @property
    def trainings(self) -> int:
        """Of one network in one replicate."""
        how = Retraining.parse(self.loop.retrain)
        return sum(how.due(round) for round in range(self.loop.rounds + 1))


def _recipe(name: str, preset: str, changes: Mapping[str, Any]) -> Recipe | None:
    if name in RULES:
        return None
    if name not in ESTIMATORS:
        raise unknown("model", name, [*ESTIMATORS, *RULES])
    recipe = Recipe.preset(preset, network_in(changes)).changed({**ALWAYS, "estimator.name": name, **changes})
    Network(recipe)
    return recipe


BASE, WORLD, STATES = "histories.safetensors", "world", "states"
_ARRAYS = ("item_N", "step_N", "event_N", "offset_U1")


def write_base(folder: Path, base: Sequences, world: World | None) -> None:
    """What all jobs start from: the histories before any feedback, and the world in the log's own indices."""
    about = json.dumps({"n_items": base.n_items, "n_steps": base.n_steps})
    arrays = {name: np.ascontiguousarray(getattr(base, name)) for name in _ARRAYS}
    write_whole(folder / BASE, as_bytes(arrays, {"about": about}))
    if world is not None and not (folder / WORLD).exists():
        world.save(folder / WORLD)


def read_base(folder: Path) -> tuple[Sequences, World | None]:
    """What `write_base` wrote."""
    with safe_open(folder / BASE, framework="numpy") as file:
        about = json.loads((file.metadata() or {})["about"])
        arrays = {name: file.get_tensor(name) for name in _ARRAYS}
    world = World.load(folder / WORLD) if (folder / WORLD).exists() else None
    return Sequences(clock=None, **arrays, **about), world


def loop_of(config: LoopConfig, base: Sequences, world: World | None) -> Loop:
    """The loop of a config on a log; the world goes on beyond its last step as it was there."""
    beyond = None if world is None else held(world, base.n_steps + config.rounds + 1)
    retraining = Retraining.parse(config.retrain)
    return Loop(base, response_model(config.response), retraining, config.rounds, config.k, config.seed, beyond)


@dataclass(frozen=True)
class LoopJob:
    """All rounds of one model in one replicate. The folder holds what they start from and what they have reached."""

    folder: Path
    config: LoopConfig
    model: str
    recipe: Recipe | None
    replicate: int

    @property
    def key(self) -> str:
        """itps-r0-10: of a loop that was made longer, the longer one is another piece of work."""
        return f"{self.model}-r{self.replicate}-{self.config.rounds}"

    @property
    def state(self) -> Path:
        """The file that is written after every round."""
        return state_path(self.folder, self.model, self.replicate)

    @property
    def cost(self) -> float:
        """For each training, work for each batch and for each unit of width."""
        if self.recipe is None:
            return 0.1
        model, epochs = self.recipe.model, self.recipe.training.epochs
        return epochs * model.blocks * (40 / self.recipe.task.batch_size + model.length * (model.width + 16) / 8000)

    def run(self, tell: OnProgress) -> Mapping[str, Any]:
        """Go on from the last round that is there."""
        loop = loop_of(self.config, *read_base(self.folder))
        progress = _Share(tell, self.config.rounds + 1)
        learner = RULES[self.model]() if self.recipe is None else Network(self.recipe, loop.world, progress)
        sweep_drafts(self.state)
        state = reached = load(self.state, loop, learner) if self.state.exists() else None
        progress.at = 0 if reached is None else reached.round + 1
        with threads(None if self.recipe is None else self.recipe.training.threads):
            for state in loop.go(learner, self.replicate, reached):
                save(state, self.state)
                progress.next(state)
        assert state is not None
        return {"records": [*state.records[: self.config.rounds + 1]]}


def state_path(folder: Path, model: str, replicate: int) -> Path:
    """Where the state of a model in a replicate is kept."""
    return folder / STATES / f"{model}-r{replicate}.safetensors"


def chosen_items(state: Path, rounds: int) -> Any:
    """chosen_RU of a loop that is done, from the file of its state."""
    try:
        with safe_open(state, framework="numpy") as file:
            return file.get_tensor("loop/taken")[:rounds]
    except FileNotFoundError:
        raise UnveilError("the state of the loop is gone", where=state) from None
    except SafetensorError as error:
        raise UnveilError(f"the state of the loop is damaged: {error}", where=state) from None


class _Share(NoTraining):
    """The share of all rounds that is done, from the epochs of each training."""

    def __init__(self, tell: OnProgress, rounds: int) -> None:
        self.tell, self.rounds, self.at, self.epochs = tell, rounds, 0, 1

    def next(self, state: State) -> None:
        self.at = state.round + 1
        self.tell(self.at / self.rounds)

    def start(self, plan: Plan) -> None:
        self.epochs = plan.epochs

    def epoch(self, epoch: Epoch, best: Best | None) -> None:
        self.tell((self.at + epoch.epoch / (self.epochs + 1)) / self.rounds)


_DAY = 86_400_000_000


def grown_log(log: Interactions, chosen_RU: Index) -> Interactions:
    """The interactions of the log and of the loop by user and step, with raw ids. Other columns are left behind.

    Where the log has times, a round is a day after the log's last moment, as in the paper.
    """
    base = Sequences.of(log)
    after = grown(base, chosen_RU)
    time_N = None
    if log.time is not None:
        round_N = np.maximum(after.step_N.astype(np.int64) - base.n_steps + 1, 0)
        known_N = log.time[np.minimum(after.event_N, len(log) - 1)]
        time_N = np.where(round_N > 0, int(log.time.max()) + round_N * _DAY, known_N)
    return Interactions(after.user_N, after.item_N, log.users, log.items, time=time_N, step=after.step_N)


#: Raised when the same settings no longer give the same rounds.
FORMAT = 1


@dataclass(frozen=True, eq=False)
class Looped:
    """What came out, and of what."""

    plan: LoopPlan
    log: Interactions
    world: World | None
    outcome: LoopOutcome
    seconds: float  # of this run
    worker_seconds: float  # of the run that ended each job; what was stopped before is not in it


def run_loop(
    plan: LoopPlan,
    log: Interactions,
    folder: Path,
    engine: Engine,
    *,
    world: World | None = None,
    resume: bool = False,
    keep_logs: bool = False,
    watch: Watcher | None = None,
) -> Looped:
    """Loop every model in every replicate. Whatever a user got wrong is found before the folder is touched."""
    begun = time.monotonic()
    if not resume:
        refuse_occupied(folder, hint="Name another; or, if it holds a loop that was stopped, pass --resume.")
    elif not (folder / ABOUT).exists():
        raise UnveilError("there is no loop to resume", where=folder, hint="Leave --resume out to start one.")
    base, truth = Sequences.of(log), None if world is None else world.aligned_with(log)
    loop_of(plan.loop, base, truth)
    store = Store(folder, identity(plan, log, truth))
    store.open()
    jobs = [
        LoopJob(folder, plan.loop, model, recipe, replicate)
        for replicate in range(plan.loop.replicates)
        for model, recipe in plan.models.items()
    ]
    with alone_in(folder):
        write_base(folder, base, truth)
        done = run_cells(sorted(jobs, key=lambda job: -job.cost), store, engine, watch or Silent())  # long ones first
    records = {model: [done[job.key]["records"] for job in jobs if job.model == model] for model in plan.models}
    for job in jobs if keep_logs else ():
        chosen_RU = chosen_items(job.state, plan.loop.rounds)
        write_log(grown_log(log, chosen_RU), folder / "logs" / f"{job.state.stem}.parquet")
    worked = sum(float(result["seconds"]) for result in done.values())
    known = replace(plan, data=recognised(len(log.users), len(log.items), len(log.interacted())))
    return Looped(known, log, truth, LoopOutcome(records, plan.loop.rounds), time.monotonic() - begun, worked)


def identity(plan: LoopPlan, log: Interactions, world: World | None) -> dict[str, Any]:
    """What identifies a folder: more rounds and replicates may follow later, and nothing else."""
    loop = {name: value for name, value in plain(plan.loop).items() if name not in ("rounds", "replicates")}
    models = {name: recipe and plain(recipe) for name, recipe in plan.models.items()}
    truth = None
    if world is not None:  # the true relevance is all that the loop uses of a world
        tables = (world.relevance_logits.P_UK, world.relevance_logits.Q_VK, world.relevance_logits.W_TK)
        truth = sha256(b"".join(table.tobytes() for table in tables)).hexdigest()
    cells = {"loop": loop, "models": models, "log": log.fingerprint(), "world": truth}
    return {"question": "loop", "format": FORMAT, "cells": cells}
