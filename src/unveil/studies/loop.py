"""A feedback loop: models retrained, round after round, on what users chose from their recommendations (RQ5)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import polars as pl
from pydantic import Field, model_validator

from unveil.data.filters import LogSource
from unveil.data.interactions import Sequences
from unveil.data.writers import write as write_log
from unveil.errors import AtLeastOne, UnveilError, check_ranges, unknown
from unveil.estimators.base import ESTIMATORS
from unveil.evaluation.statistics import Paired
from unveil.files import write_whole
from unveil.processes import threads
from unveil.report import page
from unveil.report.names import COLOURS, listed, named
from unveil.report.plots import Line, Scale, lines
from unveil.settings import parsed, plain
from unveil.simulation.feedback import rounds as feedback
from unveil.simulation.feedback.responses import response_model
from unveil.simulation.world import World
from unveil.studies.arms import changes_of
from unveil.studies.engine import Answer, Cell, Context, Source, Study, Work
from unveil.studies.paper import paper, recognised, tuned
from unveil.studies.results import ALPHA, Estimate, Measure, Results, corrected
from unveil.studies.trial import TrainingShare
from unveil.training.checkpoint import Checkpoint, sweep_drafts
from unveil.training.recipe import Recipe, network_in


class Shown(NamedTuple):
    """A figure as it is called, `{k}` standing for the places of a list; its explanation is in the template."""

    title: str
    group: str
    digits: int = 3


FIGURES: Mapping[str, Shown] = {
    "efd": Shown("EFD@{k}", "novelty"),
    "efd_first": Shown("EFD@{k} by the first log", "novelty"),
    "arp": Shown("ARP@{k}", "novelty", 1),
    "gini": Shown("Gini@{k}", "diversity"),
    "coverage": Shown("Coverage@{k}", "diversity"),
    "collective": Shown("Collective diversity", "diversity", 1),
    "individual": Shown("Individual diversity", "diversity"),
    "overlap": Shown("Overlap", "diversity"),
    "log_gini": Shown("Gini of the log", "log", 4),
    "taken_efd": Shown("Novelty of the chosen items", "log"),
    "taken": Shown("Users who chose an item", "log"),
    "relevance": Shown("Relevance of the recommendations", "truth"),
    "taken_relevance": Shown("Relevance of the chosen items", "truth"),
    "standing": Shown("Rank of the recommendations", "truth"),
    "taken_standing": Shown("Rank of the chosen items", "truth"),
    "short": Shown("Short lists", "log"),
    "events": Shown("Events", "log", 0),
    "loss": Shown("Loss", "training"),
    "ess": Shown("Effective sample", "training"),
}
#: The figure that conclusions are drawn from.
HEADLINE = "efd"


def measure_of(key: str, k: int) -> Measure:
    """A figure as a measure of the long frame."""
    return Measure(FIGURES[key].group, "loop", key, k)


class Known(NamedTuple):
    """The models with a figure in some round, and the rounds in which all of them have it, in all replicates."""

    models: list[str]
    rounds: list[int]


@dataclass(frozen=True, eq=False)
class LoopResults(Results):
    """The figures by round. Some are missing: no item is chosen in round 0, a rule has no loss, a log no γ."""

    @property
    def k(self) -> int:
        return self.measures[0].k

    @property
    def rounds(self) -> int:
        return int(self.along("round")[-1])

    @cached_property
    def known(self) -> dict[str, Known]:
        found, every = {}, range(self.rounds + 1)
        for key in FIGURES:
            at = {
                (model, n)
                for model, n in product(self.arms, every)
                if len(self.values[(("round", n),)].get((model, measure_of(key, self.k)), ())) == self.replicates
            }
            if models := [model for model in self.arms if any((model, n) in at for n in every)]:
                found[key] = Known(models, [n for n in every if all((model, n) in at for model in models)])
        return found

    @property
    def plotted(self) -> list[str]:
        return [key for key, known in self.known.items() if len(known.rounds) > 1]

    def title(self, key: str) -> str:
        return FIGURES[key].title.format(k=self.k)

    def figure(self, model: str, key: str, round: int | None = None) -> Estimate:
        return self.at(round=self.rounds if round is None else round).estimate(model, measure_of(key, self.k))

    def changes(self, key: str) -> dict[str, float]:
        """Of every model the mean of the last round less that of the first one that has the figure."""
        first, *_, last = self.known[key].rounds
        return {m: self.figure(m, key, last).mean - self.figure(m, key, first).mean for m in self.arms}

    def highest_first(self, key: str, round: int | None = None) -> list[str]:
        return sorted(self.known[key].models, key=lambda model: -self.figure(model, key, round).mean)

    def differences(self) -> dict[str, Paired]:
        """EFD of the other models less that of the first in the last round, replicate by replicate; p after Holm."""
        last, measure, (base, *others) = self.at(round=self.rounds), measure_of(HEADLINE, self.k), self.arms
        return dict(zip(others, corrected(last.difference(each, base, measure) for each in others), strict=True))

    def above(self, one: str, other: str) -> int:
        every = range(self.rounds + 1)
        return sum(self.figure(one, HEADLINE, n).mean > self.figure(other, HEADLINE, n).mean for n in every)


def round_figure(results: LoopResults, key: str) -> page.Figure:
    """A figure's means along the rounds, with bands where there are replicates."""
    title, digits, (models, rounds) = results.title(key), FIGURES[key].digits, results.known[key]
    drawn, cells = dict[str, Line](), list[list[page.Cell]]()
    for model in models:
        found = [results.figure(model, key, n) for n in rounds]
        texts = [_text(each, digits) for each in found]
        ends = [(each.low, each.high) for each in found if each.low is not None and each.high is not None]
        low, high = zip(*ends, strict=True) if ends else (None, None)
        titles = [f"{named(model)}, round {n}: {text}" for n, text in zip(rounds, texts, strict=True)]
        drawn[named(model)] = Line(rounds, [each.mean for each in found], titles, COLOURS.get(model), low, high)
        cells.append([page.Cell(text, each.mean) for text, each in zip(texts, found, strict=True)])
    columns = [page.Column(name, True) for name in ("round", *drawn)]
    rows = [[str(n), *row] for n, *row in zip(rounds, *cells, strict=True)]
    return page.Figure(
        title,
        lines(drawn, ("round", title), f"loop-{key}", Scale(bottom=None, whole=True)),
        f"{title} along the rounds for {listed(models)}.",
        data=page.Table(f"{title} by round", columns, rows, sortable=False),
    )


def _text(found: Estimate, digits: int) -> str:
    interval = "" if found.low is None else f" [{found.low:,.{digits}f}, {found.high:,.{digits}f}]"
    return f"{found.mean:,.{digits}f}{interval}".replace("-", "−")


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
        feedback.write_base(work.folder, Sequences.of(data.log), data.world)
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
            write_log(feedback.grown_log(data.log, chosen_RU), work.folder / "logs" / f"{state.stem}.parquet")

    def run_cell(self, cell: Cell, context: Context) -> Mapping[str, Any]:
        recipe, path = self.models[cell.at["estimator"]], state_path(context.folder, cell)
        loop = self.loop(*feedback.read_base(context.folder))

        def advance(share: float) -> None:
            context.on_progress((after + share) / (self.rounds + 1))

        learner = (
            feedback.RULES[cell.at["estimator"]]
            if recipe is None
            else feedback.Network(recipe, loop.world, TrainingShare(advance))
        )
        sweep_drafts(path)
        state = reached = feedback.load(path, loop, learner) if path.exists() else None
        after = 0 if reached is None else reached.round + 1
        with threads(None if recipe is None else recipe.training.threads):
            for state in loop.go(learner, cell.at["replicate"], reached):
                feedback.save(state, path)
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
            "retraining": feedback.Retraining.parse(self.retrain),
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
