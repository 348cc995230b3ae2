"""A feedback loop: models retrained, round after round, on what users chose from their recommendations (RQ5)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from operator import gt
from typing import Any, ClassVar, Self

from pydantic import Field, model_validator

from unveil.data.filters import LogSource
from unveil.data.interactions import Sequences
from unveil.data.writers import write as write_log
from unveil.errors import AtLeastOne, UnveilError, check_ranges, unknown
from unveil.estimators.base import ESTIMATORS
from unveil.evaluation.statistics import Paired
from unveil.files import write_whole
from unveil.processes import threads
from unveil.settings import parsed, plain
from unveil.simulation.feedback import rounds as feedback
from unveil.simulation.feedback.figures import FIGURES, table
from unveil.simulation.feedback.responses import response_model
from unveil.simulation.world import World
from unveil.studies import shipped
from unveil.studies.arms import changes_of, seconds_of
from unveil.studies.engine import Answer, Cell, Context, Source, Study, Work
from unveil.studies.paper import recognised, size_of, tuned
from unveil.studies.results import Estimate, Known, Measure, Results
from unveil.studies.trial import TrainingShare
from unveil.training.recipe import Recipe, network_in

HEADLINE = "efd"  # what conclusions are drawn from


def measure_of(key: str, k: int) -> Measure:
    """A figure as a measure of the long frame."""
    return Measure(FIGURES[key].group, "loop", key, k)


@dataclass(frozen=True, eq=False)
class LoopResults(Results):
    """The figures by round. Some are missing: no item is chosen in round 0, a rule has no loss, a log no γ."""

    @property
    def trained(self) -> list[str]:
        """Rules stand beside models here."""
        return self.arms

    @property
    def k(self) -> int:
        return self.measures[0].k

    @property
    def rounds(self) -> int:
        return int(self.along("round")[-1])

    @cached_property
    def known(self) -> dict[str, Known]:
        found = ((key, self.known_along("round", measure_of(key, self.k))) for key in FIGURES)
        return {key: known for key, known in found if known.arms}

    @property
    def plotted(self) -> list[str]:
        return [key for key, known in self.known.items() if len(known.values) > 1]

    def title(self, key: str) -> str:
        return FIGURES[key].title.format(k=self.k)

    def figure(self, model: str, key: str, round: int | None = None) -> Estimate:
        return self.at(round=self.rounds if round is None else round).estimate(model, measure_of(key, self.k))

    def changes(self, key: str) -> dict[str, float]:
        """Of every model the mean of the last round less that of the first one that has the figure."""
        first, *_, last = self.known[key].values
        return {m: self.figure(m, key, last).mean - self.figure(m, key, first).mean for m in self.arms}

    def highest_first(self, key: str, round: int | None = None) -> list[str]:
        return sorted(self.known[key].arms, key=lambda model: -self.figure(model, key, round).mean)

    def differences(self) -> dict[str, Paired]:
        """EFD of the other models less that of the first in the last round, replicate by replicate; p after Holm."""
        return self.at(round=self.rounds).against(measure_of(HEADLINE, self.k), self.arms[0])

    def above(self, one: str, other: str) -> int:
        first, second = ([self.figure(m, HEADLINE, n).mean for n in self.along("round")] for m in (one, other))
        return sum(map(gt, first, second))


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
        feedback.Retraining.parse(self.retrain)
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
                feedback.Network(recipe)
            elif model not in feedback.RULES:
                raise unknown("model", model, [*ESTIMATORS, *feedback.RULES])
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

    def loop(self, base: Sequences, world: World | None) -> feedback.Loop:
        beyond = None if world is None else feedback.held(world, base.n_steps + self.rounds + 1)
        response, retraining = response_model(self.response_options), feedback.Retraining.parse(self.retrain)
        return feedback.Loop(base, response, retraining, self.rounds, self.k, self.seed, beyond)

    def open_data(self) -> LoopData:
        log = self.log.load()
        world = None if self.world is None else World.open(self.world).aligned_with(log)
        self.loop(Sequences.of(log), world)  # an error where the two do not fit the study
        return LoopData(recognised(*size_of(log)) or "", log.fingerprint(), f"{log}", log, world)

    def identity(self, source: Any) -> dict[str, Any]:
        """More rounds and replicates may follow later, and nothing else."""
        truth = source.world and feedback.relevance_digest(source.world)
        return {**self._described("k", "retrain", "seed"), "log": source.fingerprint, "world": truth}

    def _described(self, *names: str) -> dict[str, Any]:
        loop = {**self.model_dump(mode="json", include=set(names)), "response": self.response_options}
        return {"loop": loop, "models": {name: recipe and plain(recipe) for name, recipe in self.models.items()}}

    def cells(self) -> Iterable[Cell]:
        """itps-r0-10: of a loop that was made longer, the longer one is another piece of work."""
        for n, (model, recipe) in product(range(self.replicates), self.models.items()):
            cost = 0.1 if recipe is None else seconds_of(recipe, (1000, 1000, 100_000))  # a usual log
            yield Cell(f"{model}-r{n}-{self.rounds}", {"estimator": model, "replicate": n}, cost)

    def stages(self, work: Work) -> Iterator[tuple[str, Sequence[Cell]]]:
        data: Any = work.source
        feedback.write_base(work.folder, Sequences.of(data.log), data.world)
        cells = list(self.cells())
        yield "cells", cells
        records = {(cell.at["replicate"], cell.at["estimator"]): work.records[cell.key]["records"] for cell in cells}
        write_whole(work.folder / "loop.csv", table(records).write_csv())
        for replicate, model in records if self.keep_logs else ():
            state = feedback.state_path(work.folder, model, replicate)
            log = feedback.grown_log(data.log, feedback.chosen_until(state, self.rounds))
            write_log(log, work.folder / "logs" / f"{state.stem}.parquet")

    def run_cell(self, cell: Cell, context: Context) -> Mapping[str, Any]:
        model, replicate = cell.at["estimator"], cell.at["replicate"]
        recipe, loop, over = self.models[model], self.loop(*feedback.read_base(context.folder)), 0

        def advance(share: float) -> None:
            context.on_progress((over + share) / (self.rounds + 1))

        network = recipe and feedback.Network(recipe, loop.world, TrainingShare(advance))
        path = feedback.state_path(context.folder, model, replicate)
        with threads(None if recipe is None else recipe.training.threads):
            for state in loop.kept(network or feedback.RULES[model], replicate, path):
                over = state.round + 1
                advance(0.0)
        return {"records": [*state.records[: self.rounds + 1]]}

    def rows(self, cell: Cell, record: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
        for round, figures in enumerate(record["records"]):
            for key in FIGURES:
                if (value := figures.get(key)) is not None:
                    yield {"round": round, **measure_of(key, self.k)._asdict(), "value": value}

    def csv(self, answer: Answer) -> list[dict[str, Any]]:
        found: Any = answer.results
        same = {"replicates": found.replicates, "paper": None, "preset": self.preset, "worlds": int(bool(self.world))}
        return [
            {"estimator": model, "severity": None, **measure_of(key, self.k)._asdict(), "round": round, **mean, **same}
            for key, known in found.known.items()
            for model, round in product(*known)
            for mean in [found.figure(model, key, round).as_json()]
        ]

    def findings(self, answer: Answer) -> Mapping[str, Any]:
        return {
            "question": "loop" if self.tuned_for is None else "rq5",
            **self._described("rounds", "k", "retrain", "replicates", "seed"),
            "units": "replicates",
            "interval": "95%, Student's t over replicates; none for one replicate",
        }

    def facts(self, answer: Answer) -> Mapping[str, Any]:
        compared = self.tuned_for is not None and {"naive", "ips", "itps"} <= {*self.estimators}
        claim = shipped("paper")["real"]["data"].get(answer.source.name, {}).get("loop", "") if compared else None
        return {
            "shown": FIGURES,
            "measure_of": measure_of,
            "claim": claim,
            "retraining": feedback.Retraining.parse(self.retrain),
        }
