"""From a training part and a recipe to a `Trainer`, or to what fits a baseline in its place."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unveil.data.batches import ClozeTask, NextItemTask
from unveil.data.indexing import UNKNOWN, Vocabulary
from unveil.data.interactions import Interactions, Sequences
from unveil.data.slots import histories
from unveil.data.splits import Split
from unveil.errors import UnveilError
from unveil.estimators import base as estimators
from unveil.estimators.inverse import weight_diagnostics
from unveil.evaluation.evaluator import Evaluator, Sharing, ValidationEvaluator
from unveil.evaluation.protocols import FULL
from unveil.files import write_whole
from unveil.models.base import BACKBONES, Backbone, Baseline, BaselineConfig, Model, backbone
from unveil.models.baselines import ItemToItem
from unveil.propensity import build as propensities
from unveil.propensity.base import PROPENSITIES, PropensityModel
from unveil.propensity.impressions import ImpressionGroups, Recorded
from unveil.propensity.known import TrueWorld
from unveil.settings import flattened, plain
from unveil.training.checkpoint import Best
from unveil.training.device import pick_device
from unveil.training.recipe import AUTO, Recipe, named
from unveil.training.trainer import EPOCHS, Fitted, Keep, Trainer
from unveil.wording import quantity

#: Weights with a row for each item; some have rows for PAD and MASK as well.
OF_ITEMS = {"item.weight", "table.weight", "bias", "output.bias", "output.linear.weight", "output.linear.bias"}


@dataclass(frozen=True)
class Start:
    """A trained network to go on from: the rows of items that it knows are kept, new items begin as they would."""

    model: Model
    items: Vocabulary

    def into(self, model: Backbone, items: Vocabulary) -> None:
        """Set the weights of a network of the same form."""
        if plain(self.model.config) != plain(model.config):
            before, now = flattened(plain(self.model.config)), flattened(plain(model.config))
            name = next(each for each in now if before.get(each) != now[each])
            problem, hint = "the network to go on from has another form", "Leave the model as it is."
            found = f"{before.get(name, 'nothing')}, and now {now[name]}"
            raise UnveilError(problem, where=f"model.{name}", found=found, hint=hint)
        place_V = self.items.index(items.ids)
        known_V = torch.from_numpy(place_V != UNKNOWN)
        place = torch.from_numpy(place_V[place_V != UNKNOWN].astype(np.int64))
        with torch.no_grad():
            for (name, own), old in zip(model.named_parameters(), self.model.parameters(), strict=True):
                if name in OF_ITEMS:
                    own[: len(items)][known_V] = old[place]
                    own[len(items) :] = old[self.model.n_items :]
                else:
                    own.copy_(old)


def prepare(
    train: Sequences,
    recipe: Recipe,
    *,
    log: Interactions | None = None,
    world: TrueWorld | None = None,
    propensity: PropensityModel | None = None,
    start: Start | None = None,
    tell: Callable[[str], None] | None = None,
) -> Trainer:
    """Build the parts of a recipe, and raise all errors of a user; describe them to `tell`, with warnings.

    The log gives logged propensities, a world the true ones and the true relevance. A `propensity` that was fitted
    before (`propensity_of`) is not fitted again. The network goes on from `start`, whose ids the log's are.
    """
    pick_device(recipe.training.device)
    model = new_model(recipe, train.n_items)
    if start is not None and log is not None:
        start.into(model, log.items)
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


Validation = Callable[[Baseline], float]
FEW = 2000  # validation cases
SCORES = 2**20  # held at once, to fit their scale


@dataclass
class BaselineFit:
    """Fits a baseline in the place of a `Trainer`, with a decay chosen on the validation cases."""

    model: Baseline
    train: Sequences
    best: Best | None = None
    propensity: None = None
    weights: None = None
    by_proxy: bool = False

    def __str__(self) -> str:
        decay = f", each event counts {self.model.decay:g} of the next" if self.model.decays else ""
        by = "" if self.best is None else f" (validation {self.best.value:.4f})"
        return f"{quantity(self.model.n_parameters(), 'number')}{decay}{by}"

    def fit(self, validate: Validation | None = None, *, keep: Keep | None = None, **_: Any) -> Fitted:
        """The decay changes no count: each choice costs one validation, and no fit."""
        model, found = self.model.fit(self.train), dict[Any, float]()
        for decay in model.decays if model.config.decay is None and model.decays else [model.config.decay]:
            model.config = replace(model.config, decay=decay)
            found[model.config] = 0.0 if validate is None else validate(model)
        model.config = max(found, key=lambda config: found[config])
        if isinstance(model, ItemToItem) and isinstance(validate, ValidationEvaluator):
            model.scale.copy_(fitted_scale(model, validate.evaluator))
        if keep is not None:
            write_whole(keep.folder / EPOCHS, "")
        self.best = None if validate is None else Best(0, max(found.values()))
        return Fitted([], self.best, False)

    def again(self, events: Sequences) -> Baseline:
        """The same baseline with the constants that were chosen, of other events."""
        model = type(self.model)(self.model.config, events.n_items).fit(events)
        if isinstance(model, ItemToItem) and isinstance(self.model, ItemToItem):
            model.scale.copy_(self.model.scale)
        return model


def fitted_scale(model: ItemToItem, cases: Evaluator) -> Tensor:
    """The a ≥ 0 that maximises Σ_c log softmax(a · s_c)[target of c] over some of the cases: a concave function, whose
    root of the slope is found by bisection of log a."""
    some = cases.cases.some(slice(0, max(1, SCORES // model.n_items)))
    score_CV = model.scores(histories(cases.sequences, some.user_C, some.seen_C, cases.length)).double()
    target_C = score_CV.gather(1, torch.from_numpy(some.item_C.astype(np.int64))[:, None]).sum()
    low, high = torch.tensor(1e-3), torch.tensor(1e4)
    for _ in range(30):
        scale = (low * high).sqrt()
        slope = target_C - ((scale * score_CV).softmax(1) * score_CV).sum()
        low, high = (scale, high) if slope > 0 else (low, scale)
    return low


def learner(
    train: Sequences, recipe: Recipe, *, tell: Callable[[str], None] | None = None, **known: Any
) -> Trainer | BaselineFit:
    """What trains the recipe's network (`prepare`), or fits its baseline."""
    kind = BACKBONES[str(plain(recipe.model)["name"])]
    if not issubclass(kind, Baseline):
        return prepare(train, recipe, tell=tell, **known)
    model = kind(recipe.model, train.n_items)
    if tell is not None:
        tell(f"model      {model.name}, a baseline: fitted by counting {quantity(len(train.item_N), 'event')}")
    return BaselineFit(model, train)


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
    """Computes `training.monitor`, such as NDCG@10, under `protocol`: full, uniform-N or popular-N. For the decay of a
    baseline `FEW` of the cases are enough."""
    if isinstance(recipe.model, BaselineConfig) and len(split.valid) > FEW:
        drawn_C = np.random.default_rng(seed).choice(len(split.valid), FEW, replace=False)
        split = replace(split, valid=split.valid.some(np.sort(drawn_C)))
    how: dict[str, Any] = {"monitor": recipe.training.monitor, "exclude_seen": exclude_seen, "seed": seed}
    validation = ValidationEvaluator.of(split, length=recipe.model.length, protocol=protocol, **how)
    device = "cpu" if isinstance(recipe.model, BaselineConfig) else str(pick_device(recipe.training.device))
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
