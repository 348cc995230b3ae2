"""One model in one replicate, round after round; kept after each, and taken up again from there."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as as_bytes

from unveil.data.sequences import Sequences
from unveil.errors import UnveilError
from unveil.experiment.loop.plan import LoopConfig
from unveil.files import write_whole
from unveil.processes import threads
from unveil.runs.workers import OnProgress
from unveil.simulation.feedback.held import held
from unveil.simulation.feedback.learners import RULES, Learner, Network
from unveil.simulation.feedback.loop import Loop, State
from unveil.simulation.feedback.responses import response_model
from unveil.simulation.feedback.retraining import Retraining
from unveil.simulation.feedback.storage import load, save
from unveil.simulation.world import World
from unveil.training.checkpoint import Best, Epoch, sweep_drafts
from unveil.training.progress import Plan
from unveil.training.recipe import Recipe

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
        learner = self._learner(loop, progress)
        state = reached = self._reached(loop, learner)
        progress.at = 0 if reached is None else reached.round + 1
        with threads(None if self.recipe is None else self.recipe.training.threads):
            for state in loop.go(learner, self.replicate, reached):
                save(state, self.state)
                progress.next(state)
        assert state is not None
        return {"records": [*state.records[: self.config.rounds + 1]]}

    def _learner(self, loop: Loop, progress: "_Share") -> Learner:
        if self.recipe is None:
            return RULES[self.model]()
        return Network(self.recipe, loop.world, progress)

    def _reached(self, loop: Loop, learner: Learner) -> State | None:
        sweep_drafts(self.state)
        return load(self.state, loop, learner) if self.state.exists() else None


def state_path(folder: Path, model: str, replicate: int) -> Path:
    """Where the state of a model in a replicate is kept."""
    return folder / STATES / f"{model}-r{replicate}.safetensors"


def taken_so_far(folder: Path, model: str, replicate: int, rounds: int) -> Any:
    """taken_RU of a loop that is done."""
    try:
        with safe_open(state_path(folder, model, replicate), framework="numpy") as file:
            return file.get_tensor("loop/taken")[:rounds]
    except FileNotFoundError as error:
        raise UnveilError("the state of the loop is gone", where=error.filename) from None
    except SafetensorError as error:
        where = state_path(folder, model, replicate)
        raise UnveilError(f"the state of the loop is damaged: {error}", where=where) from None


class _Share:
    """Turns what a training tells into the share of all rounds that is done."""

    def __init__(self, tell: OnProgress, rounds: int) -> None:
        self.tell, self.rounds, self.at, self.epochs = tell, rounds, 0, 1

    def next(self, state: State) -> None:
        self.at = state.round + 1
        self.tell(self.at / self.rounds)

    def start(self, plan: Plan) -> None:
        self.epochs = plan.epochs

    def batch(self, loss: float) -> None:
        pass

    def epoch(self, epoch: Epoch, best: Best | None) -> None:
        self.tell((self.at + epoch.epoch / (self.epochs + 1)) / self.rounds)

    def stop(self) -> None:
        pass
