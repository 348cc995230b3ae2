"""From a training part and a recipe to a `Trainer`."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from unveil.data.batches import ClozeTask, NextItemTask
from unveil.data.interactions import Interactions, Sequences
from unveil.data.splits import Split
from unveil.estimators import base as estimators
from unveil.estimators.inverse import weight_diagnostics
from unveil.evaluation.evaluator import Sharing, ValidationEvaluator
from unveil.evaluation.protocols import FULL
from unveil.models.base import Backbone, backbone
from unveil.propensity import build as propensities
from unveil.propensity.base import PROPENSITIES, PropensityModel
from unveil.propensity.impressions import ImpressionGroups, Recorded
from unveil.propensity.known import TrueWorld
from unveil.settings import plain
from unveil.training.device import pick_device
from unveil.training.recipe import AUTO, Recipe, named
from unveil.training.trainer import Trainer
from unveil.wording import quantity


def prepare(
    train: Sequences,
    recipe: Recipe,
    *,
    log: Interactions | None = None,
    world: TrueWorld | None = None,
    propensity: PropensityModel | None = None,
    tell: Callable[[str], None] | None = None,
) -> Trainer:
    """Build the parts of a recipe, and raise all errors of a user; describe them to `tell`, with warnings.

    The log gives logged propensities, a world the true ones and the true relevance. A `propensity` that was fitted
    before (`propensity_of`) is not fitted again.
    """
    pick_device(recipe.training.device)
    model = new_model(recipe, train.n_items)
    task = task_of(train, recipe, model)
    propensity = propensity or propensity_of(train, recipe, log, world)
    name, options = named(recipe.estimator)
    chosen = estimators.build(name, options, propensity=propensity, world=world, train=train, log=log)
    weights = weight_diagnostics(chosen, task.slots)
    mean_weight = 1.0 if weights is None else weights.mean
    groups = None if log is None or propensity is None else ImpressionGroups.of(log)
    trainer = Trainer(recipe.training, model, chosen, task, mean_weight, propensity, weights, groups)
    if tell is not None:
        for line in _description(trainer, train):
            tell(line)
    return trainer


def _description(trainer: Trainer, train: Sequences) -> list[str]:
    how = "with" if trainer.weights is None else "weighted by"
    by = "" if trainer.propensity is None else f", {how} {trainer.propensity.name}"
    lines = [f"estimator  {trainer.estimator.name}{by}"]
    if isinstance(trainer.propensity, Recorded):  # a wrong share of the impressions would go unnoticed
        rate = trainer.propensity.rate
        share = f", of which the log holds {rate:g} (propensity.rate)"
        doubt = "; if the log holds only a share of them, set it: --set propensity.rate=0.1"
        lines.append(f"exposure   learned from impressions{share if rate < 1 else doubt}")
    if trainer.weights is not None:
        lines.append(f"weights    {trainer.weights}")
    lines += [f"warning: {warning}" for warning in trainer.warnings()]
    model, length = trainer.model, trainer.model.config.length
    events, read = len(train.item_N), len(trainer.task.recent)
    kept = f"the last {length} of each user" if read < events else "all of them"
    return [
        *lines,
        f"model      {model.name}, {quantity(model.n_parameters(), 'parameter')}, on {trainer.device}",
        f"reads      {quantity(events, 'event')} to train on, of which the network reads {read:,}: {kept}",
    ]


def new_model(recipe: Recipe, n_items: int) -> Backbone:
    """The recipe's network, initialised with its seed."""
    return backbone(str(plain(recipe.model)["name"]))(recipe.model, n_items, seed=recipe.training.seed)


def task_of(train: Sequences, recipe: Recipe, model: Backbone) -> ClozeTask | NextItemTask:
    """The task that the network is for: next items, or masked ones."""
    config, length, seed = recipe.task, recipe.model.length, recipe.training.seed
    if model.task == "next-item":
        shared = {"bucket": config.bucket, "windows": config.windows}
        return NextItemTask(train, length, config.batch_size, seed=seed, **shared)
    return ClozeTask(train, length, **vars(config), seed=seed)


def validation_of(
    split: Split,
    recipe: Recipe,
    *,
    protocol: str = FULL,
    exclude_seen: bool = True,
    seed: int = 0,
    sharing: Sharing | None = None,
) -> ValidationEvaluator:
    """Computes `training.monitor`, such as NDCG@10, under `protocol`: full, uniform-N or popular-N."""
    how: dict[str, Any] = {"monitor": recipe.training.monitor, "exclude_seen": exclude_seen, "seed": seed}
    validation = ValidationEvaluator.of(split, length=recipe.model.length, protocol=protocol, **how)
    device = str(pick_device(recipe.training.device))
    return replace(validation, evaluator=replace(validation.evaluator, device=device, sharing=sharing))


def propensity_of(
    train: Sequences, recipe: Recipe, log: Interactions | None, world: TrueWorld | None
) -> PropensityModel | None:
    """The one that is named, or what the estimator needs: true where there is a world, else popularity."""
    name = propensity_name(recipe, world)
    if name is None:
        return None
    _, options = named(recipe.propensity)
    window = None if recipe.task.windows else recipe.model.length
    return propensities.build(name, options, train, window=window, log=log, world=world)


def check_available(recipe: Recipe, log: Interactions | None, world: TrueWorld | None = None) -> None:
    """Refuse a recipe that needs a column, or a world, that is not there, before anything is fitted."""
    name = propensity_name(recipe, world)
    if name is None:
        estimators.parts(str(recipe.estimator["name"]), None, world, log)
    else:
        propensities.parts(PROPENSITIES[name], log, world)


def propensity_name(recipe: Recipe, world: TrueWorld | None = None) -> str | None:
    """The propensity of the recipe; None if its estimator uses none."""
    needs, name = estimators.estimator(str(recipe.estimator["name"])).needs, str(recipe.propensity["name"])
    if needs not in ("static", "temporal"):
        return None
    return f"{'popularity' if world is None else 'known'}-{needs}" if name == AUTO else name


def reads_log(recipe: Recipe) -> bool:
    """Whether training needs more of the log than its histories: ratings, positions, times …"""
    name = propensity_name(recipe)
    if name is None:
        return estimators.estimator(str(recipe.estimator["name"])).needs in ("ratings", "impressions")
    return PROPENSITIES[name].source not in ("nothing", "truth")
