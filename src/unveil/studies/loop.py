"""A feedback loop: models retrained, round after round, on what users chose from their recommendations (RQ5)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any, ClassVar, Self

import polars as pl
from pydantic import Field, model_validator

from unveil.data.filters import LogSource
from unveil.data.sequences import Sequences
from unveil.data.writers import write as write_log
from unveil.errors import AtLeastOne, UnveilError, check_ranges, unknown
from unveil.estimators.base import ESTIMATORS
from unveil.files import write_whole
from unveil.processes import threads
from unveil.report import page
from unveil.settings import parsed, plain
from unveil.simulation.feedback.learners import RULES, Network
from unveil.simulation.feedback.responses import response_model
from unveil.simulation.feedback.rounds import Loop, Retraining, grown_log, held, load, read_base, save, write_base
from unveil.simulation.world import World
from unveil.studies.arms import changes_of
from unveil.studies.engine import Answer, Cell, Context, Source, Study, Work
from unveil.studies.loop_results import FIGURES, LoopResults, measure_of, round_figure
from unveil.studies.paper import paper, recognised, tuned
from unveil.studies.results import ALPHA, Results
from unveil.studies.trial import TrainingShare
from unveil.training.checkpoint import Checkpoint, sweep_drafts
from unveil.training.recipe import Recipe, network_in

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
    results_type: ClassVar[type[Results]] = LoopResults
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
        given = (parsed(change.removeprefix(_RESPONSE)) for change in self.changes if change.startswith(_RESPONSE))
        return {"name": self.response, **dict(given)}

    @property
    def models(self) -> dict[str, Recipe | None]:
        """What each model is trained by; None for a rule that learns next to nothing."""
        return {name: self.recipe(name) if name in ESTIMATORS else None for name in self.estimators}

    def recipe(self, model: str) -> Recipe:
        changes = {} if self.tuned_for is None else tuned(self.tuned_for, model, self.preset)
        changes |= changes_of(model, [each for each in self.changes if not each.startswith(_RESPONSE)])
        network = network_in(changes) or (None if self.tuned_for is None else "bert4rec")  # RQ5: as the paper has it
        # One thread a model: then figures do not depend on how many models are trained side by side.
        always = {"training.threads": 1, "training.device": "cpu", "estimator.name": model}
        return Recipe.preset(self.preset, network).changed(always | changes)

    def loop(self, base: Sequences, world: World | None) -> Loop:
        beyond = None if world is None else held(world, base.n_steps + self.rounds + 1)
        response, retraining = response_model(self.response_options), Retraining.parse(self.retrain)
        return Loop(base, response, retraining, self.rounds, self.k, self.seed, beyond)

    def open_data(self) -> LoopData:
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
            tables = (factors.P_UK, factors.Q_VK, factors.W_TK)
            truth = sha256(b"".join(table.tobytes() for table in tables)).hexdigest()
        loop = self._settings("k", "retrain", "seed")
        return {"loop": loop, "models": self._recipes(), "log": source.fingerprint, "world": truth}

    def _settings(self, *names: str) -> dict[str, Any]:
        return {**self.model_dump(mode="json", include=set(names)), "response": self.response_options}

    def _recipes(self) -> dict[str, Any]:
        return {name: recipe and plain(recipe) for name, recipe in self.models.items()}

    def cells(self) -> Iterable[Cell]:
        """itps-r0-10: of a loop that was made longer, the longer one is another piece of work."""
        costs = {model: _cost(recipe) for model, recipe in self.models.items()}
        for n, (model, cost) in product(range(self.replicates), costs.items()):
            yield Cell(f"{model}-r{n}-{self.rounds}", {"estimator": model, "replicate": n}, cost)

    def priority(self, cell: Cell) -> Any:
        return -cell.cost

    def stages(self, work: Work) -> Iterator[tuple[str, Sequence[Cell]]]:
        data: Any = work.source
        write_base(work.folder, Sequences.of(data.log), data.world)
        cells = list(self.cells())
        yield "cells", cells
        rows = [
            {"replicate": cell.at["replicate"], "model": cell.at["estimator"], "round": round, **figures}
            for cell in cells
            for round, figures in enumerate(work.records[cell.key]["records"])
        ]
        schema = {"replicate": pl.Int64, "model": pl.String, "round": pl.Int64, **dict.fromkeys(FIGURES, pl.Float64)}
        write_whole(work.folder / "loop.csv", pl.DataFrame(rows, schema=schema).write_csv())
        for cell in cells if self.keep_logs else ():
            state = state_path(work.folder, cell)
            chosen_RU = Checkpoint.load(state).tensors["loop/taken"].numpy()[: self.rounds]
            write_log(grown_log(data.log, chosen_RU), work.folder / "logs" / f"{state.stem}.parquet")

    def run_cell(self, cell: Cell, context: Context) -> Mapping[str, Any]:
        recipe, path = self.models[cell.at["estimator"]], state_path(context.folder, cell)
        loop = self.loop(*read_base(context.folder))

        def advance(share: float) -> None:
            context.on_progress((after + share) / (self.rounds + 1))

        learner = RULES[cell.at["estimator"]] if recipe is None else Network(recipe, loop.world, TrainingShare(advance))
        sweep_drafts(path)
        state = reached = load(path, loop, learner) if path.exists() else None
        after = 0 if reached is None else reached.round + 1
        with threads(None if recipe is None else recipe.training.threads):
            for state in loop.go(learner, cell.at["replicate"], reached):
                save(state, path)
                after = state.round + 1
                advance(0.0)
        assert state is not None
        return {"records": [*state.records[: self.rounds + 1]]}

    def rows(self, cell: Cell, record: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
        for round, figures in enumerate(record["records"]):
            for key in FIGURES:
                if (value := figures.get(key)) is not None:
                    yield {"round": round, **measure_of(key, self.k)._asdict(), "value": value}

    def csv(self, answer: Answer) -> list[dict[str, Any]]:
        found: Any = answer.results
        same = {"paper": None, "preset": self.preset, "worlds": int(answer.source.world is not None)}  # type: ignore[attr-defined]
        return [
            {
                "estimator": model,
                "severity": None,
                **measure_of(key, self.k)._asdict(),
                "round": round,
                **{name: value for name, value in vars(found.figure(model, key, round)).items() if name != "n"},
                "replicates": found.replicates,
                **same,
            }
            for key, known in found.known.items()
            for model, round in product(*known)
        ]

    def findings(self, answer: Answer) -> Mapping[str, Any]:
        return {
            "question": "loop" if self.tuned_for is None else "rq5",
            "loop": self._settings("rounds", "k", "retrain", "replicates", "seed"),
            "models": self._recipes(),
            "units": "replicates",
            "interval": "95%, Student's t over replicates; none for one replicate",
        }

    def facts(self, answer: Answer) -> Mapping[str, Any]:
        compared, data = self.tuned_for is not None and {"naive", "ips", "itps"} <= {*self.estimators}, answer.source
        claim = str(paper()["real"]["data"][data.name]["loop"]) if data.name else ""
        return {
            "shown": FIGURES,
            "alpha": ALPHA,
            "claim": claim if compared else None,
            "retraining": Retraining.parse(self.retrain),
        }

    def figures(self, answer: Answer) -> Mapping[str, page.Block]:
        results: Any = answer.results
        return {key: round_figure(results, key) for key in results.plotted}


def _cost(recipe: Recipe | None) -> float:
    if recipe is None:
        return 0.1
    model, epochs = recipe.model, recipe.training.epochs
    return epochs * model.blocks * (40 / recipe.task.batch_size + model.length * (model.width + 16) / 8000)


def state_path(folder: Path, cell: Cell) -> Path:
    """The file that is written after every round of a model in a replicate, however many rounds there will be."""
    return folder / "states" / f"{cell.at['estimator']}-r{cell.at['replicate']}.safetensors"
