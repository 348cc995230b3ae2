"""What is tuned: a training, or one of the two factorisations behind a world (the paper's section 5.1). A subject reads
the log and gives a context, which tries settings and can reach no test case. Shapes: N log rows."""

import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np

from unveil.data.filters import LogSource
from unveil.data.interactions import Interactions, Sequences
from unveil.data.splits import Split
from unveil.errors import UnveilError
from unveil.estimators.base import ESTIMATORS
from unveil.evaluation.evaluator import ValidationEvaluator, true_cases
from unveil.evaluation.labelled import LabelledValidation
from unveil.files import write_json
from unveil.models.tensor_factorization.task import Task, Tuples
from unveil.propensity.base import PROPENSITIES
from unveil.propensity.impressions import training_impressions
from unveil.registry import Registry
from unveil.runs.config import Experiment, Tell, as_toml
from unveil.runs.labelled import labelled_validation
from unveil.runs.run_folder import identity, read_json
from unveil.runs.train import origin_of, world_of
from unveil.runs.tune.study import Replicate, Space
from unveil.settings import changed
from unveil.simulation.fit import Fit, counted, observed, shared
from unveil.simulation.fit import as_toml as fit_as_toml
from unveil.simulation.world import World
from unveil.training.checkpoint import Best, Epoch
from unveil.training.fit import prepare, reads_log, validation_of
from unveil.training.progress import Plan, Silent, Watcher
from unveil.training.recipe import AUTO, Recipe
from unveil.training.trainer import Fitted, Keep, Trainer

Part = Literal["relevance", "exposure"]
PARTS: tuple[Part, ...] = ("relevance", "exposure")
KEPT = "fit.json"  # what came of a replicate of a factorisation, in its folder
#: Called with the share of a replicate that is done and, after a validation, the epoch and its metric; raises to stop.
Report = Callable[[float, tuple[int, float] | None], None]


@dataclass(frozen=True)
class Objective:
    """What trials are compared by, and the seed of the search: replicate r has this + r, or draws from both."""

    metric: str
    seed: int
    epochs: int | None = None  # at most, each validated; None: evaluated at the end only
    lower: bool = False  # of errors, less is better


@dataclass(frozen=True)
class Training:
    """An experiment; with `truth` it is validated on what users would have liked best: a world must be known."""

    experiment: Experiment
    truth: bool = False
    kind: ClassVar[str] = "training"
    command: ClassVar[str] = "unveil train LOG --config {config} -o RUN"

    @property
    def objective(self) -> Objective:
        training = self.experiment.training
        return Objective(training.monitor, training.seed, training.epochs)

    def changed(self, settings: Mapping[str, Any]) -> Self:
        """The recipe is checked before all else: it knows which settings go together."""
        self.experiment.recipe.changed(settings)
        return replace(self, experiment=self.experiment.changed(settings))

    def identity(self) -> dict[str, Any]:
        return {"settings": identity(self.experiment), "truth": self.truth}

    def context(self, tried: Collection[str], tell: Tell) -> "TrainingContext":
        """Read the log, split it, and leave the test cases out. `tried`: names of the settings that vary."""
        log = self.experiment.data.load()
        split = self.experiment.data.parts(log, tell)
        return TrainingContext.of(self, log, split, world_of(self.experiment, log), tried)

    def toml(self, head: str) -> str:
        return as_toml(self.experiment, head)


@dataclass(frozen=True, eq=False)
class TrainingContext:
    """Trains the replicates of trials. No test case can be reached; of the log only rows of the training part."""

    train: Sequences
    validation: ValidationEvaluator | LabelledValidation
    recipe: Recipe
    fingerprint: str
    logged: Interactions | None = None
    world: World | None = None

    @classmethod
    def of(
        cls, training: Training, log: Interactions, split: Split, world: World | None, tried: Collection[str] = ()
    ) -> Self:
        """The last place that sees the whole split: what it gives holds no test case. `tried`: settings that vary."""
        config, recipe = training.experiment.evaluation, training.experiment.recipe
        if training.truth:
            if config.labelled is not None:
                raise UnveilError("two validations", found="--validation and --truth", expected="one of them")
            if world is None:
                problem = "what users would have liked best is known in a world only"
                hint = "Name the world that the log was drawn from with --world."
                raise UnveilError(problem, where="--truth", hint=hint)
            split = replace(split, valid=true_cases(world, split.valid))
        train = split.train.copied()
        labelled = labelled_validation(training.experiment, log, split)
        how: dict[str, Any] = {"protocol": config.validation, "seed": config.seed}
        how["exclude_seen"] = config.exclude_seen and not training.truth
        validation: ValidationEvaluator | LabelledValidation
        if labelled is not None:
            validation = replace(labelled, sequences=train)
        else:
            validation = validation_of(split, recipe, **how)
            evaluator = replace(validation.evaluator, sequences=validation.evaluator.sequences.copied())
            validation = replace(validation, evaluator=evaluator, of_interactions=not training.truth)
        recorded = log.propensity is not None or log.position is not None
        needed = recorded or reads_log(recipe) or not {"estimator.name", "propensity.name"}.isdisjoint(tried)
        logged = training_rows(log, split.train) if needed else None
        fingerprint = log.fingerprint() + ("" if labelled is None else labelled.test.fingerprint)
        return cls(train, validation, recipe, fingerprint, logged, world)

    @property
    def origin(self) -> str | None:
        return origin_of(self.world)

    def announce(self, settings: Mapping[str, Any], tell: Tell) -> None:
        """Build what a trial needs, to find errors before anything is trained, and say what it is."""
        if isinstance(self.validation, LabelledValidation):
            tell(str(self.validation))
        self.trainer(self.recipe_of(settings), tell)

    def recipe_of(self, settings: Mapping[str, Any], replicate: int = 0) -> Recipe:
        """The recipe of a trial. Replicate r has the same seed in all trials: they are compared in pairs."""
        recipe = self.recipe.changed(settings)
        seeds = {"training.seed": self.recipe.training.seed + replicate}
        registries: dict[str, Registry[Any]] = {"estimator": ESTIMATORS, "propensity": PROPENSITIES}
        for part, known in registries.items() if replicate else ():  # replicates differ in a seed of their own too
            chosen = getattr(recipe, part)
            if chosen["name"] != AUTO and "seed" in known.options(chosen["name"]):
                seeds[f"{part}.seed"] = int(chosen.get("seed", 0)) + replicate
        return recipe.changed(seeds)

    def trainer(self, recipe: Recipe, tell: Tell | None = None) -> Trainer:
        return prepare(self.train, recipe, log=self.logged, world=self.world, tell=tell)

    def fit(self, recipe: Recipe, keep: Keep, watch: Watcher) -> Fitted:
        validation = self.validation
        if isinstance(validation, ValidationEvaluator):
            validation = replace(validation, evaluator=replace(validation.evaluator, length=recipe.model.length))
        return self.trainer(recipe).fit(validation, keep=keep, watch=watch)

    def replicate(self, settings: Mapping[str, Any], number: int, place: Path, report: Report) -> Replicate:
        recipe, keep = self.recipe_of(settings, number), Keep(place, resume=True, identity={"log": self.fingerprint})
        fitted, monitor = self.fit(recipe, keep, _Reporting(report, recipe)), recipe.training.monitor
        assert fitted.best is not None
        curve = [(epoch.epoch, epoch.validation[monitor]) for epoch in fitted.epochs if epoch.validation is not None]
        return Replicate(fitted.best.value, fitted.best.epoch, sum(epoch.seconds for epoch in fitted.epochs), curve)


@dataclass
class _Reporting(Silent):
    report: Report
    recipe: Recipe

    def start(self, plan: Plan) -> None:
        self.report(plan.done / plan.epochs, None)

    def epoch(self, epoch: Epoch, best: Best | None) -> None:
        training, values = self.recipe.training, epoch.validation
        self.report(epoch.epoch / training.epochs, None if values is None else (epoch.epoch, values[training.monitor]))


def training_rows(log: Interactions, train: Sequences) -> Interactions:
    """The log with all rows outside the training part blank: they stand where they stood, and were not shown."""
    shown_N = training_impressions(log, train)
    kept_N = shown_N.copy()
    kept_N[train.event_N] = True
    blank = {name: np.where(kept_N, column, np.zeros_like(column)) for name, column in log.columns().items()}
    blank["exposed"] = shown_N
    if log.propensity is not None:
        blank["propensity"] = np.where(kept_N, log.propensity, np.ones_like(log.propensity))
    return Interactions(blank.pop("user"), blank.pop("item"), log.users, log.items, **blank)


def part_of(space: Space) -> Part | None:
    """Which factorisation a space is about; None: it is about trainings."""
    where, sections = f"space {space.name}", {name: name.partition(".")[0] for name in space.dimensions}
    if not set(sections.values()) & {*PARTS, "recipe"}:
        return None
    if other := next((name for name in sections if sections[name] not in PARTS and name != "recipe"), None):
        place, expected = f"{where}, {other}", "recipe = [NAME], and settings of relevance or of exposure"
        hint = "What else a world is fitted with is the same for all trials: --set steps=50."
        raise UnveilError("not a setting of a factorisation", where=place, expected=expected, hint=hint)
    recipes = space.plain().get("recipe", [""])
    if not isinstance(recipes, list) or len(recipes) > 1:
        hint = "Recipes have other settings and draw other negatives: give each a study."
        raise UnveilError("a study is of one recipe", where=f"{where}, recipe", found=recipes, hint=hint)
    found = [part for part in PARTS if part in sections.values()]
    if len(found) != 1:
        expected = "settings of relevance (relevance.width …) or of exposure (exposure.width …), not of both"
        hint = "They are evaluated by different metrics: give each a space and a study of its own."
        raise UnveilError("a study is of one factorisation", where=where, expected=expected, hint=hint)
    return found[0]


@dataclass(frozen=True)
class Factorisation:
    """A part of how a world is fitted to a log."""

    source: LogSource | None  # None: it was read
    fit: Fit
    part: Part
    kind: ClassVar[str] = "factorisation"
    command: ClassVar[str] = "unveil world fit LOG --config {config} -o WORLD"

    @property
    def objective(self) -> Objective:
        """MSE of ratings, or AUC of interactions among negatives."""
        is_error = self.part == "relevance"
        return Objective("MSE" if is_error else "AUC", self.fit.seed, lower=is_error)

    def changed(self, settings: Mapping[str, Any]) -> Self:
        fit = changed(self.fit, settings)
        fit.recipes()
        return replace(self, fit=fit)

    def identity(self) -> dict[str, Any]:
        return {"part": self.part, "settings": shared(self.fit) | {self.part: dict(getattr(self.fit, self.part))}}

    def context(self, tried: Collection[str], tell: Tell) -> "FactorisationContext":
        assert self.source is not None
        log = self.source.load()
        tell(f"log        {log}")
        untested = self.fit.untested(observed(log, self.fit.steps))
        return FactorisationContext(replace(self, source=None), untested, log.fingerprint())

    def toml(self, head: str) -> str:
        return fit_as_toml(self.fit, [self.part], head)


@dataclass(frozen=True, eq=False)
class FactorisationContext:
    """Fits the replicates of trials, those that were stopped anew. The tuples it is given are all it can reach."""

    subject: Factorisation
    tuples: Tuples  # without those for test
    fingerprint: str
    origin: ClassVar[str | None] = None  # of no world

    def announce(self, settings: Mapping[str, Any], tell: Tell) -> None:
        fit = self.subject.changed(settings).fit
        train, valid, _ = self.tasks(fit, 0)[PARTS.index("relevance")].parts
        sizes = f"{len(train):,} tuples to learn from, {len(valid):,} to validate on"
        tell(f"{self.subject.part:10} recipe {fit.recipe}; {sizes}")

    def replicate(self, settings: Mapping[str, Any], number: int, place: Path, report: Report) -> Replicate:
        """Fit, unless it was done before: a file that is damaged, or of something else, says nothing."""
        subject = self.subject.changed(settings)
        about = {"log": self.fingerprint, **subject.identity(), "replicate": number}
        with suppress(UnveilError, KeyError, TypeError, ValueError):
            known = read_json(place / KEPT)
            if known["of"] == about:
                return Replicate(float(known["value"]), None, float(known["seconds"]))
        fit, at, begun = subject.fit, PARTS.index(subject.part), time.monotonic()
        task, recipe = self.tasks(fit, number)[at], fit.recipes()[at]
        advance = counted(recipe.work(task), lambda done, total: report(done / total, None))
        learnt = recipe.learn(task, np.random.default_rng([fit.seed, 2, number]), advance)
        value = task.score(learnt.valid_N, task.parts.valid)
        if not (np.isfinite(value) and np.isfinite(learnt.valid_N).all()):  # an AUC ranks even what is no number
            raise UnveilError(f"the {task.metric} is not a number: the factors grew without bound")
        found = Replicate(value, None, time.monotonic() - begun)
        write_json(place / KEPT, {"of": about, "value": found.value, "seconds": found.seconds})
        return found

    def tasks(self, fit: Fit, number: int) -> tuple[Task, Task]:
        return fit.tuning_tasks(self.tuples, np.random.default_rng([fit.seed, 1, number]))


Subject = Training | Factorisation
TrialContext = TrainingContext | FactorisationContext
