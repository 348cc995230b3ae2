"""From a training part and a recipe to a trained model: the parts put together in one place."""

from dataclasses import dataclass, replace
from typing import Protocol

from unveil.data.batches import ClozeTask, NextItemTask
from unveil.data.interactions import Interactions
from unveil.data.sequences import Sequences
from unveil.data.splits import Split
from unveil.errors import UnveilError
from unveil.estimators.base import Estimator, Explaining, estimator
from unveil.estimators.build import build as build_estimator
from unveil.estimators.build import parts as parts_of_estimator
from unveil.estimators.inverse import weight_diagnostics
from unveil.estimators.naive import Truth
from unveil.evaluation.evaluator import ValidationEvaluator
from unveil.evaluation.protocols import FULL
from unveil.models.base import Backbone, TaskName, backbone
from unveil.propensity.base import PROPENSITIES, PropensityModel
from unveil.propensity.build import build as build_propensity
from unveil.propensity.build import caveats, is_popularity
from unveil.propensity.build import parts as parts_of_propensity
from unveil.propensity.known import Exposure
from unveil.propensity.weights import WeightDiagnostics
from unveil.settings import plain
from unveil.training.device import pick_device
from unveil.training.process_group import SINGLE, ProcessGroup
from unveil.training.progress import Silent, Watcher
from unveil.training.recipe import AUTO, Recipe, named
from unveil.training.trainer import Fitted, Keep, Trainer


class KnownTruth(Exposure, Truth, Protocol):
    """A world: its exposure and its relevance are known."""


@dataclass(frozen=True, eq=False)
class Ready:
    """All that training needs, checked and built: nothing that a user got wrong is found later than here."""

    recipe: Recipe
    task: ClozeTask | NextItemTask
    estimator: Estimator
    propensity: PropensityModel | None  # None: the estimator does not weight by one
    model: Backbone
    weights: WeightDiagnostics | None
    shown: bool = False  # the log has impressions without a click

    @property
    def by_proxy(self) -> bool:
        """Whether popularity stands in for exposure that nobody recorded."""
        return is_popularity(self.propensity)

    def warnings(self) -> list[str]:
        """Plain sentences where the weights or their source are doubtful."""
        found = [] if self.weights is None else self.weights.warnings()
        return [*found, *caveats(self.propensity, shown=self.shown)]

    def fit(
        self,
        validation: ValidationEvaluator | None,
        *,
        keep: Keep | None = None,
        watch: Watcher | None = None,
        group: ProcessGroup = SINGLE,
    ) -> Fitted:
        """Train the model in place, and bring it home from wherever it was trained; the best weights are kept.

        Which are best is decided by the validation interactions, as the estimator explains them.
        """
        if validation is not None and isinstance(self.estimator, Explaining):
            validation = validation.explained_by(self.estimator.offset)
        mean_weight, config = 1.0 if self.weights is None else self.weights.mean, self.recipe.training
        trainer = Trainer(
            config, self.model, self.estimator, self.task, validation, keep, watch or Silent(), mean_weight, group
        )
        fitted = trainer.fit()
        self.model.cpu()
        return fitted


def prepare(
    train: Sequences,
    recipe: Recipe,
    *,
    log: Interactions | None = None,
    world: KnownTruth | None = None,
    propensity: PropensityModel | None = None,
) -> Ready:
    """Build the parts of a recipe. The log gives logged propensities, a world the true ones and the true relevance.

    A `propensity` that was fitted before (`propensity_of`) is not fitted again.
    """
    pick_device(recipe.training.device)
    model = new_model(recipe, train.n_items)
    task = _task(train, recipe, model.task)
    propensity = propensity or propensity_of(train, recipe, log, world)
    name, options = named(recipe.estimator)
    chosen = build_estimator(name, options, propensity=propensity, world=world, train=train, log=log)
    shown = log is not None and log.clicked is not None and not log.clicked.all()
    return Ready(recipe, task, chosen, propensity, model, weight_diagnostics(chosen, task.slots), shown)


def validation_of(
    split: Split, recipe: Recipe, *, protocol: str = FULL, exclude_seen: bool = True, seed: int = 0
) -> ValidationEvaluator:
    """What `training.monitor`, such as NDCG@10, says of a model under `protocol`: full, uniform-N or popular-N."""
    metric, k = _monitor(recipe.training.monitor)
    kind, _, count = protocol.partition("-")
    validation = ValidationEvaluator.of(
        split,
        length=recipe.model.length,
        metric_name=metric,
        k=k,
        protocol=protocol,
        uniform=int(count) if kind == "uniform" else 0,
        popular=int(count) if kind == "popular" else 0,
        exclude_seen=exclude_seen,
        seed=seed,
    )
    device = str(pick_device(recipe.training.device))
    return replace(validation, evaluator=replace(validation.evaluator, device=device))


def _monitor(name: str) -> tuple[str, int]:
    metric, _, k = name.partition("@")
    if not k.isdecimal() or not int(k):
        expected = "a metric at a number of places, e.g. NDCG@10"
        raise UnveilError("no such figure", where="training.monitor", found=name, expected=expected)
    return metric, int(k)


def new_model(recipe: Recipe, n_items: int) -> Backbone:
    """The recipe's network, its weights drawn from the recipe's seed."""
    name = str(plain(recipe.model)["name"])
    return backbone(name)(recipe.model, n_items, seed=recipe.training.seed)


def _task(train: Sequences, recipe: Recipe, name: TaskName) -> ClozeTask | NextItemTask:
    config, length, seed = recipe.task, recipe.model.length, recipe.training.seed
    if name == "next-item":
        return NextItemTask(train, length, config.batch_size, seed=seed, bucket=config.bucket)
    return ClozeTask(
        train,
        length=length,
        batch_size=config.batch_size,
        mask_probability=config.mask_probability,
        last_share=config.last_share,
        seed=seed,
        always_mask=config.always_mask,
        bucket=config.bucket,
    )


def propensity_of(
    train: Sequences, recipe: Recipe, log: Interactions | None, world: KnownTruth | None
) -> PropensityModel | None:
    """The one that is named, or what the estimator needs: true where there is a world, else popularity."""
    name = propensity_name(recipe, world)
    if name is None:
        return None
    _, options = named(recipe.propensity)
    return build_propensity(name, options, train, window=recipe.model.length, log=log, world=world)


def check_available(recipe: Recipe, log: Interactions | None, world: KnownTruth | None = None) -> None:
    """Before anything is fitted: a column, or a world, that the recipe needs and that is not there."""
    name = propensity_name(recipe, world)
    if name is None:
        parts_of_estimator(str(recipe.estimator["name"]), None, world, log)
    else:
        parts_of_propensity(PROPENSITIES[name], log, world)


def propensity_name(recipe: Recipe, world: KnownTruth | None = None) -> str | None:
    """The propensity that the recipe comes down to; None where its estimator uses none."""
    needs, name = estimator(str(recipe.estimator["name"])).needs, str(recipe.propensity["name"])
    if needs not in ("static", "temporal"):
        return None
    return f"{'popularity' if world is None else 'known'}-{needs}" if name == AUTO else name


def reads_log(recipe: Recipe) -> bool:
    """Whether a training by the recipe asks for more of the log than its histories: ratings, positions, times …"""
    name = propensity_name(recipe)
    if name is None:
        return estimator(str(recipe.estimator["name"])).needs == "ratings"
    return PROPENSITIES[name].source not in ("nothing", "truth")
