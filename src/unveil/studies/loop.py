"""A feedback loop: models retrained, round after round, on what users chose from their recommendations (RQ5)."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import polars as pl
from pydantic import Field, model_validator
from safetensors import safe_open
from safetensors.numpy import save as as_bytes

from unveil.data.filters import LogSource
from unveil.data.interactions import Interactions
from unveil.data.sequences import Sequences
from unveil.data.vocabulary import Index
from unveil.data.writers import write as write_log
from unveil.errors import AtLeastOne, UnveilError, check_ranges, unknown
from unveil.estimators.base import ESTIMATORS
from unveil.files import write_whole
from unveil.processes import threads
from unveil.report.page import Block, Table
from unveil.runs.workers import OnProgress
from unveil.settings import parsed, plain
from unveil.simulation.feedback.learners import RULES, Network
from unveil.simulation.feedback.responses import response_model
from unveil.simulation.feedback.rounds import Loop, Retraining, State, grown, held, load, save
from unveil.simulation.world import World
from unveil.studies import loop_report
from unveil.studies.arms import changes_of
from unveil.studies.engine import Answer, Cell, Context, Source, Study, Work
from unveil.studies.loop_report import FIGURES, measure_of
from unveil.studies.paper import paper, recognised, tuned
from unveil.studies.results import ALPHA
from unveil.training.checkpoint import Best, Checkpoint, Epoch, sweep_drafts
from unveil.training.progress import Plan
from unveil.training.progress import Silent as NoTraining
from unveil.training.recipe import Recipe, network_in

#: One thread a model: then figures do not depend on how many models are trained side by side.
ALWAYS: Mapping[str, Any] = {"training.threads": 1, "training.device": "cpu"}
#: Changes of the users' response, among those of the models.
_RESPONSE = "response."


@dataclass(frozen=True, eq=False)
class LoopData(Source):
    """The log before any feedback, and the world that it was drawn from, in the log's own indices."""

    log: Any = None  # Interactions
    world: World | None = None


class LoopStudy(Study):
    """Every model in every replicate through all rounds; see `simulation.feedback.rounds.Loop`."""

    name: ClassVar[str] = "loop"
    title: ClassVar[str] = "What does feedback do to recommendations?"
    template: ClassVar[str] = "loop.md.j2"
    extent: ClassVar[frozenset[str]] = frozenset({"rounds", "replicates", "estimators", "preset", "tuned_for"})
    log: LogSource = Field(exclude=True)
    world: str | None = Field(default=None, exclude=True)
    keep_logs: bool = Field(default=False, exclude=True)  # also write the last log of each model
    estimators: tuple[str, ...] = ("naive", "popularity", "random")  # rules, too
    rounds: AtLeastOne = 10
    k: AtLeastOne = 10
    response: str = "uniform"
    retrain: str = "scratch"  # scratch, warm, warm:EPOCHS or every:ROUNDS
    replicates: AtLeastOne = 1
    preset: str = "quick"
    tuned_for: str | None = None  # the data set to which the authors tuned the settings
    seed: int = 0
    changes: tuple[str, ...] = ()  # NAME=VALUE for all models, ips:NAME=VALUE for one, response.NAME=VALUE

    @model_validator(mode="after")
    def _check(self) -> Self:
        check_ranges(self, "", seed="0 or more")
        Retraining.parse(self.retrain)
        response_model(self.response_options)
        if not self.estimators:
            raise UnveilError("there is no model to loop", expected="at least one, such as naive")
        if len(set(self.estimators)) < len(self.estimators):
            raise UnveilError("a model was named twice", found=", ".join(self.estimators))
        for name, _ in map(parsed, self.changes):
            model, colon, _ = name.partition(":")
            if colon and model not in self.estimators:
                raise unknown("model", model, self.estimators, where=f"--set {name}")
        for model, recipe in self.models.items():
            if recipe is not None:
                Network(recipe)
            elif model not in RULES:
                raise unknown("model", model, [*ESTIMATORS, *RULES])
        return self

    @property
    def response_options(self) -> dict[str, Any]:
        """The name of the response model, then its options."""
        given = (parsed(change.removeprefix(_RESPONSE)) for change in self.changes if change.startswith(_RESPONSE))
        return {"name": self.response, **dict(given)}

    @property
    def models(self) -> dict[str, Recipe | None]:
        """What each model is trained by; None for a rule that learns next to nothing."""
        return {name: self.recipe(name) if name in ESTIMATORS else None for name in self.estimators}

    def recipe(self, model: str) -> Recipe:
        """How the network of an estimator is trained."""
        changes = {} if self.tuned_for is None else tuned(self.tuned_for, model, self.preset)
        changes |= changes_of(model, [each for each in self.changes if not each.startswith(_RESPONSE)])
        network = network_in(changes) or (None if self.tuned_for is None else "bert4rec")  # RQ5: as the paper has it
        return Recipe.preset(self.preset, network).changed({**ALWAYS, "estimator.name": model, **changes})

    def loop(self, base: Sequences, world: World | None) -> Loop:
        """The loop on a log; the world goes on beyond its last step as it was there."""
        beyond = None if world is None else held(world, base.n_steps + self.rounds + 1)
        response, retraining = response_model(self.response_options), Retraining.parse(self.retrain)
        return Loop(base, response, retraining, self.rounds, self.k, self.seed, beyond)

    def open_data(self) -> LoopData:
        """The log, and the part of the world that it shows."""
        log = self.log.load()
        world = None if self.world is None else World.open(self.world).aligned_with(log)
        self.loop(Sequences.of(log), world)  # an error where the two do not fit the study
        known = recognised(len(log.users), len(log.items), len(log.interacted()))
        return LoopData(known or "", log.fingerprint(), f"{log}", log, world)

    def identity(self, source: Any) -> dict[str, Any]:
        """More rounds and replicates may follow later, and nothing else."""
        truth = None
        if source.world is not None:  # the true relevance is all that the loop uses of a world
            factors = source.world.relevance_logits
            truth = sha256(
                b"".join(table.tobytes() for table in (factors.P_UK, factors.Q_VK, factors.W_TK))
            ).hexdigest()
        loop = self._settings("k", "retrain", "seed")
        return {"loop": loop, "models": self._recipes(), "log": source.fingerprint, "world": truth}

    def _settings(self, *names: str) -> dict[str, Any]:
        return {**self.model_dump(mode="json", include=set(names)), "response": self.response_options}

    def _recipes(self) -> dict[str, Any]:
        return {name: recipe and plain(recipe) for name, recipe in self.models.items()}

    def cells(self) -> Iterable[Cell]:
        """itps-r0-10: of a loop that was made longer, the longer one is another piece of work."""
        costs = {model: _cost(recipe) for model, recipe in self.models.items()}
        for replicate in range(self.replicates):
            for model, cost in costs.items():
                at = {"estimator": model, "replicate": replicate}
                yield Cell(f"{model}-r{replicate}-{self.rounds}", at, cost)

    def priority(self, cell: Cell) -> Any:
        """Long ones first."""
        return -cell.cost

    def stages(self, work: Work) -> Iterator[tuple[str, Sequence[Cell]]]:
        """What all cells start from is written; then the cells; then loop.csv, and the logs if they are to be kept."""
        data: Any = work.source
        write_base(work.folder, Sequences.of(data.log), data.world)
        cells = list(self.cells())
        yield "cells", cells
        write_whole(work.folder / "loop.csv", table(cells, work.records).write_csv())
        for cell in cells if self.keep_logs else ():
            state = state_path(work.folder, cell)
            chosen_RU = Checkpoint.load(state).tensors["loop/taken"].numpy()[: self.rounds]
            write_log(grown_log(data.log, chosen_RU), work.folder / "logs" / f"{state.stem}.parquet")

    def run_cell(self, cell: Cell, context: Context) -> Mapping[str, Any]:
        """All rounds of one model in one replicate, from the last one that is there."""
        recipe, path = self.models[cell.at["estimator"]], state_path(context.folder, cell)
        loop, progress = self.loop(*read_base(context.folder)), _Share(context.on_progress, self.rounds + 1)
        learner = RULES[cell.at["estimator"]] if recipe is None else Network(recipe, loop.world, progress)
        sweep_drafts(path)
        state = reached = load(path, loop, learner) if path.exists() else None
        progress.at = 0 if reached is None else reached.round + 1
        with threads(None if recipe is None else recipe.training.threads):
            for state in loop.go(learner, cell.at["replicate"], reached):
                save(state, path)
                progress.next(state)
        assert state is not None
        return {"records": [*state.records[: self.rounds + 1]]}

    def rows(self, cell: Cell, record: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
        """Every figure that there is in a round."""
        for round, figures in enumerate(record["records"]):
            for key in FIGURES:
                if (value := figures.get(key)) is not None:
                    yield {"round": round, **measure_of(key, self.k)._asdict(), "value": value}

    def csv(self, answer: Answer) -> list[dict[str, Any]]:
        """A row for each figure, model and round."""
        worlds = int(answer.source.world is not None)  # type: ignore[attr-defined]
        return loop_report.csv_rows(answer.results, self.k, {"preset": self.preset, "worlds": worlds})

    def findings(self, answer: Answer) -> Mapping[str, Any]:
        """What was looped, and how."""
        return {
            "question": "loop" if self.tuned_for is None else "rq5",
            "loop": self._settings("rounds", "k", "retrain", "replicates", "seed"),
            "models": self._recipes(),
            "units": "replicates",
            "interval": "95%, Student's t over replicates; none for one replicate",
        }

    def facts(self, answer: Answer) -> Mapping[str, Any]:
        """What sentences are chosen by."""
        compared, data = self.tuned_for is not None and {"naive", "ips", "itps"} <= {*self.estimators}, answer.source
        claim = str(paper()["real"]["data"][data.name]["loop"]) if data.name else ""
        return {
            "outcome": loop_report.Outcome(answer.results, self.k),
            "shown": FIGURES,
            "k": self.k,
            "alpha": ALPHA,
            "claim": claim if compared else None,
            "retraining": Retraining.parse(self.retrain),
            "weighted": [name for name in self.estimators if name not in ("naive", "ideal", *RULES)],
        }

    def tables(self, answer: Answer) -> Mapping[str, Table]:
        """The figures in the first round and in the last."""
        outcome = loop_report.Outcome(answer.results, self.k)
        return {"ends": loop_report.ends_table(outcome), "last": loop_report.ends_table(outcome, last_only=True)}

    def figures(self, answer: Answer) -> Mapping[str, Block]:
        """Every figure along the rounds, by group."""
        return loop_report.figures(loop_report.Outcome(answer.results, self.k), self.template)


def _cost(recipe: Recipe | None) -> float:
    """For each training, work for each batch and for each unit of width."""
    if recipe is None:
        return 0.1
    model, epochs = recipe.model, recipe.training.epochs
    return epochs * model.blocks * (40 / recipe.task.batch_size + model.length * (model.width + 16) / 8000)


def table(cells: Sequence[Cell], records: Mapping[str, Mapping[str, Any]]) -> pl.DataFrame:
    """A row for each replicate, model and round."""
    rows = [
        {"replicate": cell.at["replicate"], "model": cell.at["estimator"], "round": round, **figures}
        for cell in cells
        for round, figures in enumerate(records[cell.key]["records"])
    ]
    schema = {"replicate": pl.Int64, "model": pl.String, "round": pl.Int64, **dict.fromkeys(FIGURES, pl.Float64)}
    return pl.DataFrame(rows, schema=schema)


BASE, WORLD, STATES = "histories.safetensors", "world", "states"
_ARRAYS = ("item_N", "step_N", "event_N", "offset_U1")


def write_base(folder: Path, base: Sequences, world: World | None) -> None:
    """What all cells start from: the histories before any feedback, and the world in the log's own indices."""
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


def state_path(folder: Path, cell: Cell) -> Path:
    """The file that is written after every round of a model in a replicate, however many rounds there will be."""
    return folder / STATES / f"{cell.at['estimator']}-r{cell.at['replicate']}.safetensors"


class _Share(NoTraining):
    """The share of all rounds that is done, from the epochs of each training."""

    def __init__(self, on_progress: OnProgress, rounds: int) -> None:
        self.on_progress, self.rounds, self.at, self.epochs = on_progress, rounds, 0, 1

    def next(self, state: State) -> None:
        self.at = state.round + 1
        self.on_progress(self.at / self.rounds)

    def start(self, plan: Plan) -> None:
        self.epochs = plan.epochs

    def epoch(self, epoch: Epoch, best: Best | None) -> None:
        self.on_progress((self.at + epoch.epoch / (self.epochs + 1)) / self.rounds)


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
