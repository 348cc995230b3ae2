"""Several losses trained on one log, and evaluated by the log and, where it is of a world, by its truth.

All arms share log, split, negatives, initial weights, batches and masks: they differ in the loss alone.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from typing import Any, Self

import numpy as np
import torch

from unveil.data.interactions import Interactions, Sequences
from unveil.data.splits import Split, leave_one_out
from unveil.estimators.base import blocks, estimator, events
from unveil.estimators.inverse import CLIP, share_of
from unveil.evaluation import evaluator
from unveil.evaluation.evaluator import Evaluator, ValidationEvaluator, favourites_of, true_cases
from unveil.evaluation.metrics import RankMetric, metrics_of
from unveil.evaluation.protocols import FULL
from unveil.evaluation.ranking import Scorer
from unveil.evaluation.result import Evaluation, parts
from unveil.models.baselines import Random, fitted
from unveil.processes import threads
from unveil.propensity.base import PropensityModel
from unveil.runs.workers import OnProgress
from unveil.simulation.world import World
from unveil.studies.arms import Variant
from unveil.studies.results import BASELINES, STANDARD, TRUE
from unveil.training.checkpoint import Best, Epoch
from unveil.training.fit import prepare, propensity_of, validation_of
from unveil.training.progress import Plan, Watcher
from unveil.training.recipe import Recipe
from unveil.training.trainer import Fitted, Keep, Trainer

#: Places of the recommendations whose true relevance is measured.
TOP = 10
#: Lengths of list at which the target's rank is measured.
PLACES = (5, 10)


@dataclass(frozen=True, eq=False)
class Arm:
    """A scorer, evaluated on the test cases of a trial, and what trained it; None where nothing was trained."""

    scorer: Scorer
    evaluations: Mapping[str, Evaluation]
    trainer: Trainer | None = None
    fitted: Fitted | None = None


@dataclass(frozen=True, eq=False)
class TrialContext:
    """What arms share; `tests`: the most relevant items of a world (TRUE), the held-out interactions (STANDARD)."""

    log: Interactions
    split: Split
    validation: ValidationEvaluator
    tests: Mapping[str, Evaluator]
    world: World | None = None
    _fitted: dict[str, PropensityModel | None] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls,
        world: World,
        log: Interactions,
        recipe: Recipe,
        *,
        negatives: int = 100,
        popular: bool = True,
        validation: str = FULL,
        by_log: bool = False,
    ) -> Self:
        """A log of a world, whose users may return to their items. Validation is on true relevance, or `by_log`."""
        split, seed = leave_one_out(Sequences.of(log)), recipe.training.seed
        true = replace(split, valid=true_cases(world, split.valid), test=true_cases(world, split.test))
        drawn: dict[str, Any] = {"uniform": negatives, "popular": negatives if popular else 0, "exclude_seen": False}
        truth, standard = (
            Evaluator.of(cases, split.whole, split.train, length=recipe.model.length, seed=seed, **drawn)
            for cases in (true.test, split.test)
        )
        truth = replace(truth, case_metrics=evaluator.true_relevance_metrics(world, true.test, TOP))
        chosen = validation_of(split if by_log else true, recipe, protocol=validation, exclude_seen=False, seed=seed)
        chosen = replace(_in_small_batches(chosen), of_interactions=by_log)
        return cls(log, split, chosen, {TRUE: truth, STANDARD: standard}, world)

    @classmethod
    def real(cls, log: Interactions, split: Split, recipe: Recipe, *, negatives: int, validation: str) -> Self:
        """A real log: items of a user's history do not compete; validation, too, has negatives of every kind."""
        drawn: dict[str, Any] = {"uniform": negatives, "popular": negatives}
        shared: dict[str, Any] = {"length": recipe.model.length, "seed": recipe.training.seed}
        chosen = ValidationEvaluator.of(split, protocol=validation, negatives=drawn, **shared)
        standard = Evaluator.of(split.test, split.whole, split.train, **drawn, **shared)
        return cls(log, split, _in_small_batches(chosen), {STANDARD: standard})

    def of_length(self, length: int) -> Self:
        validation = replace(self.validation, evaluator=replace(self.validation.evaluator, length=length))
        tests = {name: replace(test, length=length) for name, test in self.tests.items()}
        return replace(self, validation=validation, tests=tests)

    @property
    def unlearnable(self) -> float:
        """Share of the test cases whose most relevant item has no training event."""
        return float((self.split.train.count_V[self.tests[TRUE].cases.item_C] == 0).mean())

    def propensity(self, recipe: Recipe) -> PropensityModel | None:
        """What the recipe's estimator is given, if anything; fitted once for all arms that ask for the same."""
        asked = repr((estimator(str(recipe.estimator["name"])).needs, recipe.propensity, recipe.model.length))
        if asked not in self._fitted:
            self._fitted[asked] = propensity_of(self.split.train, recipe, self.log, self.world)
        return self._fitted[asked]

    def prepared(self, name: str, recipe: Recipe) -> Trainer:
        train, named = self.split.train, recipe.changed({"estimator.name": Variant.of(name).estimator})
        known: dict[str, Any] = {"log": self.log, "propensity": self.propensity(named)}
        return prepare(train, resolved(named, train, **known), world=self.world, **known)

    def arm(self, name: str, recipe: Recipe, watch: Watcher | None = None, keep: Keep | None = None) -> Arm:
        """Train and evaluate one estimator, by the recipe but for its name; or evaluate a baseline."""
        with threads(recipe.training.threads):
            if name in BASELINES:
                train, seed = self.split.train, recipe.training.seed
                return self._evaluated(Random(train.n_items, seed) if name == "random" else fitted(name, train))
            trainer = self.prepared(name, recipe)
            done = trainer.fit(self.validation, keep=keep, watch=watch)
            return replace(self._evaluated(trainer.model), trainer=trainer, fitted=done)

    def _evaluated(self, scorer: Scorer) -> Arm:
        return Arm(scorer, {name: test.evaluate(scorer, top=TOP, resamples=1) for name, test in self.tests.items()})


def _in_small_batches(validation: ValidationEvaluator) -> ValidationEvaluator:
    # Few enough for the activations of a small network to stay in the processor's cache.
    return replace(validation, evaluator=replace(validation.evaluator, batch_size=64))


def resolved(recipe: Recipe, train: Sequences, log: Interactions, propensity: PropensityModel | None = None) -> Recipe:
    """The recipe with a clip such as 5% as the quantile of θ̂ over the training events: scales of estimates differ."""
    share = share_of(recipe.estimator.get(CLIP))
    if share is None or (fitted := propensity or propensity_of(train, recipe, log, None)) is None:
        return recipe
    return recipe.changed({f"estimator.{CLIP}": quantile(fitted, train, share)})


def quantile(propensity: PropensityModel, train: Sequences, share: float) -> float:
    """The θ̂ that this share of the training events lies below, to six digits: the same on every machine."""
    theta_N = torch.cat([propensity(part) for part in blocks(events(train))]).double().numpy()
    return float(f"{np.quantile(theta_N, share):.6g}")


def record(context: TrialContext, name: str, recipe: Recipe, on_progress: OnProgress) -> dict[str, Any]:
    """Train and evaluate an arm, and give what a cell keeps of it and of its log."""
    return arm_record(context, context.arm(name, recipe, TrainingShare(on_progress)))


def arm_record(context: TrialContext, arm: Arm) -> dict[str, Any]:
    """What a cell keeps of an arm."""
    weights = None if arm.trainer is None else arm.trainer.weights
    return {
        "log": log_record(context),
        "ranks": {name: ranks(evaluation) for name, evaluation in arm.evaluations.items()},
        "lists": list_metrics(next(iter(arm.evaluations.values()))),
        "weights": None if weights is None else asdict(weights),
        "training": None if arm.fitted is None else training_record(arm.fitted),
    }


def log_record(context: TrialContext) -> dict[str, Any]:
    """What a log is: of a drawn one also its size, and how much of it is the most relevant item of its step."""
    if context.world is None:
        return {"fingerprint": context.log.fingerprint()}
    log = context.log.interacted()
    assert log.step is not None
    best_N = favourites_of(context.world, log.user, log.step)
    return {
        "fingerprint": replace(log, rating=None, clicked=None).fingerprint(),  # of the interactions alone
        "events": len(log),
        "users": len(log.users),
        "items": len(np.unique(log.item)),
        "catalogue": len(log.items),
        "favourite_taken": float((best_N == log.item).mean()),
        "unlearnable": context.unlearnable,
    }


def ranks(evaluation: Evaluation) -> dict[str, list[int]]:
    """The rank of every target under every protocol: all metrics follow from it."""
    return {
        name.removesuffix(":rank"): column.to_list()
        for name, column in evaluation.frame.to_dict(as_series=True).items()
        if name.endswith(":rank")
    }


def list_metrics(evaluation: Evaluation) -> dict[str, float]:
    """Of the recommendations: what the world, where there is one, and the training counts say, on average."""
    return {
        f"{row['protocol']}:{row['metric']}@{row['k']}": row["mean"]
        for row in evaluation.summary.iter_rows(named=True)
        if row["protocol"] in ("truth", "lists")
    }


def training_record(fitted: Fitted) -> dict[str, Any]:
    """Losses, validations and the best epoch."""
    validated = [epoch for epoch in fitted.epochs if epoch.validation is not None]
    return {
        "epochs": len(fitted.epochs),
        "best": None if fitted.best is None else asdict(fitted.best),
        "validation": [[epoch.epoch, *(epoch.validation or {}).values()] for epoch in validated],
        "loss": [epoch.loss for epoch in fitted.epochs],
    }


def rank_rows(cell: Mapping[str, Any], *, by_user: bool) -> Iterator[dict[str, Any]]:
    """The measures of a cell's ranks and list metrics (means, or values by user): of every user, or their means."""
    for evaluation, protocols in cell["ranks"].items():
        for protocol, rank_C in protocols.items():
            for metric, k in product(metrics_of(RankMetric), PLACES):
                value_C = np.asarray(metric(np.array(rank_C), k))
                row = {"evaluation": evaluation, "protocol": protocol, "metric": metric.name, "k": k}
                values = enumerate(value_C.tolist()) if by_user else [(None, float(value_C.mean()))]
                yield from ({**row, "user": user, "value": value} for user, value in values)
    first = next(iter(cell["ranks"]))
    for name, value in cell["lists"].items():
        protocol, metric_name, k = parts(name)
        row = {"evaluation": first, "protocol": protocol, "metric": metric_name, "k": k}
        values = enumerate(value) if by_user and isinstance(value, list) else [(None, float(np.mean(value)))]
        yield from ({**row, "user": user, "value": each} for user, each in values)


class TrainingShare(Watcher):
    """A watcher of a training that reports the share of its epochs that is done."""

    def __init__(self, on_progress: OnProgress) -> None:
        self.on_progress, self.epochs = on_progress, 1

    def start(self, plan: Plan) -> None:
        self.epochs = plan.epochs
        self.on_progress(plan.done / plan.epochs)

    def epoch(self, epoch: Epoch, best: Best | None) -> None:
        self.on_progress(epoch.epoch / self.epochs)
