"""From a training part and a recipe to a trained model: the parts put together in one place."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from unveil.data.batches import ClozeTask
from unveil.data.interactions import Interactions
from unveil.data.sequences import Sequences
from unveil.estimators.base import Estimator, estimator
from unveil.estimators.build import build as build_estimator
from unveil.estimators.build import weight_diagnostics
from unveil.estimators.ideal import Truth
from unveil.evaluation.validation import ValidationEvaluator
from unveil.models.base import Backbone
from unveil.models.bert4rec import BERT4Rec
from unveil.propensity.build import build as build_propensity
from unveil.propensity.known import Exposure
from unveil.propensity.weights import WeightDiagnostics
from unveil.training.progress import Watcher
from unveil.training.recipe import Recipe
from unveil.training.trainer import Fitted, Keep, Trainer


class KnownTruth(Exposure, Truth, Protocol):
    """A world: its exposure and its relevance are known."""


@dataclass(frozen=True, eq=False)
class Ready:
    """All that training needs, checked and built: nothing that a user got wrong is found later than here."""

    recipe: Recipe
    task: ClozeTask
    estimator: Estimator
    model: Backbone
    weights: WeightDiagnostics | None  # None: the estimator does not weight by a propensity

    def fit(
        self, validation: ValidationEvaluator | None, *, keep: Keep | None = None, watch: Watcher | None = None
    ) -> Fitted:
        """Train the model in place; the best weights by validation are kept."""
        monitor = self.recipe.training.monitor
        validate: Callable[[Backbone], Mapping[str, float]] | None = None
        if validation is not None:
            validate = lambda model: {monitor: validation(model)}  # noqa: E731
        trainer = Trainer(self.recipe.training)
        return trainer.fit(self.model, self.estimator, self.task, validate, keep=keep, watch=watch)


def prepare(
    train: Sequences, recipe: Recipe, *, log: Interactions | None = None, world: KnownTruth | None = None
) -> Ready:
    """Build the parts of a recipe. The log gives logged propensities, a world the true ones and the true relevance."""
    seed, cloze = recipe.training.seed, recipe.task
    task = ClozeTask(
        train,
        length=recipe.model.length,
        batch_size=cloze.batch_size,
        mask_probability=cloze.mask_probability,
        last_share=cloze.last_share,
        seed=seed,
        always_mask=cloze.always_mask,
        bucket=cloze.bucket,
    )
    chosen = _estimator(train, recipe, log, world)
    model = BERT4Rec(recipe.model, train.n_items, seed=seed)
    return Ready(recipe, task, chosen, model, weight_diagnostics(chosen, task.slots))


def _estimator(train: Sequences, recipe: Recipe, log: Interactions | None, world: KnownTruth | None) -> Estimator:
    name, options = _named(recipe.estimator)
    needs = estimator(name).needs
    if needs in ("nothing", "truth"):
        return build_estimator(name, options, world=world)
    asked, its_options = _named(recipe.propensity)
    if asked == "auto":
        asked = f"{'popularity' if world is None else 'known'}-{needs}"
    propensity = build_propensity(asked, its_options, train, window=recipe.model.length, log=log, world=world)
    return build_estimator(name, options, propensity=propensity)


def _named(choice: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    options = dict(choice)
    return str(options.pop("name")), options
