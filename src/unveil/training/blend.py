"""What is served: a trained model, or a blend of it and baselines, by the validation cases; and the same of all events.

Shapes: B cases of a batch, C cases, P parts, V items.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unveil.data.interactions import Sequences
from unveil.data.slots import histories
from unveil.data.splits import Split
from unveil.evaluation.evaluator import ValidationEvaluator
from unveil.evaluation.protocols import no_cells, seen_cells
from unveil.models.base import Model
from unveil.models.blend import Blend, fitted_shares
from unveil.settings import plain
from unveil.training.fit import BaselineFit, learner, prepare, validation_of
from unveil.training.recipe import Recipe, TrainerConfig
from unveil.training.trainer import Fitted, Trainer

#: What a baseline may cost beside a network; with more it is passed over. Pairs of items in histories, and events.
PAIRS, EVENTS, ITEMS = 2_000_000_000, 20_000_000, 100_000
CELLS = 2**27  # scores of all parts that shares are fitted on: half a GiB
ROWS = 256


@dataclass(frozen=True)
class Baselines:
    """Baselines fitted on a training part, and why others were passed over."""

    fits: Mapping[str, BaselineFit] = field(default_factory=dict)
    skipped: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        split: Split,
        recipe: Recipe,
        *,
        exclude_seen: bool = True,
        seed: int = 0,
        tell: Callable[[str], None] = lambda _: None,
    ) -> "Baselines":
        """All but the recipe's own model, with constants chosen by the validation cases. That users come back to items
        is looked at where these are recommended again."""
        skipped, fits = too_costly(split.train), dict[str, BaselineFit]()
        for name in ("ease", "item-knn", "markov", "popularity", *["frequency"] * (not exclude_seen)):
            if name in skipped or name == plain(recipe.model)["name"]:
                continue
            own = Recipe().changed({"model.name": name, "training.monitor": recipe.training.monitor})
            fit = learner(split.train, own)
            assert isinstance(fit, BaselineFit)
            fit.fit(validation_of(split, own, exclude_seen=exclude_seen, seed=seed))
            tell(f"baseline   {name}: {fit}")
            fits[name] = fit
        return cls(fits, skipped)


def too_costly(train: Sequences) -> dict[str, str]:
    """Baselines that would take minutes beside a network, and why."""
    pairs = float((train.length_U.astype(float) ** 2).sum())
    if train.n_items > ITEMS or len(train) > EVENTS:
        return dict.fromkeys(("ease", "item-knn", "markov"), "many items or events")
    return dict.fromkeys(("ease", "item-knn"), "long histories") if pairs > PAIRS else {}


@dataclass(frozen=True)
class Chosen:
    """The model that validation chose, of a trained one and baselines, and the metric of each."""

    model: Model
    learner: Trainer | BaselineFit
    baselines: Baselines
    values: Mapping[str, float] = field(default_factory=dict)  # empty: there was no choice

    def __str__(self) -> str:
        figures = ", ".join(f"{name} {value:.4f}" for name, value in self.values.items())
        if not isinstance(self.model, Blend):
            return f"{self.model.name} alone; validation: {figures}"
        return f"{' + '.join(f'{share:.2f} {name}' for share, name in self.model.shares)}; validation: {figures}"

    def again(self, events: Sequences, recipe: Recipe, fitted: Fitted, known: Mapping[str, Any], **how: Any) -> Model:
        """The same of other events, such as all of a log: constants and shares as chosen, a network trained as long as
        the best one was. `known` is what `prepare` is told, `how` what `Trainer.fit` is."""

        def part(model: Model) -> Model:
            if isinstance(self.learner, Trainer) and model is self.learner.model:
                trainer = prepare(events, recipe.changed({"training.minutes": None}), **known)
                trainer.fit(None, last=fitted.best.epoch if fitted.best else len(fitted.epochs), **how)
                return trainer.model
            return next(fit for fit in self._fits() if fit.model is model).again(events)

        if isinstance(self.model, Blend):
            return Blend.of([part(each) for each in self.model.models], self.model.share_P.double().numpy())
        return part(self.model)

    def _fits(self) -> list[BaselineFit]:
        return [*self.baselines.fits.values(), *([self.learner] if isinstance(self.learner, BaselineFit) else [])]


def choose(
    learnt: Trainer | BaselineFit,
    split: Split,
    recipe: Recipe,
    validation: Callable[[Any], Any],
    *,
    beside: bool = False,
    tell: Callable[[str], None] = lambda _: None,
    **cases: Any,
) -> Chosen:
    """The trained model, or, where the recipe asks for it, a blend with baselines, which are fitted if only to show."""
    blends = recipe.training.blend and isinstance(learnt, Trainer)
    if not isinstance(validation, ValidationEvaluator):  # labels, whose metric may be one of labels alone
        recipe = recipe.changed({"training.monitor": TrainerConfig.monitor})
    baselines = Baselines.of(split, recipe, tell=tell, **cases) if beside or blends else Baselines()
    if blends and isinstance(learnt, Trainer):
        if not learnt.estimator.name.startswith("naive"):
            tell("warning: baselines count the log as it is: a blend brings back the exposure bias of the log")
        own = validation if isinstance(validation, ValidationEvaluator) else validation_of(split, recipe, **cases)
        return blended(learnt, baselines, own, validation)
    return Chosen(learnt.model, learnt, baselines)


def blended(
    learner: Trainer, baselines: Baselines, interactions: ValidationEvaluator, validation: Callable[[Any], Any]
) -> Chosen:
    """The blend of a network and baselines, by validation interactions; or one of them, where `validation`, the same
    interactions or a labelled test, has the better metric for it alone."""
    parts = [learner.model, *(fit.model for fit in baselines.fits.values())]
    blend = Blend.of(parts, fitted_shares(*scores_of(parts, interactions)))
    values = {model.name: metric(model, validation) for model in (blend, *parts)}
    simplest_first = (*reversed(parts), blend)
    return Chosen(max(simplest_first, key=lambda model: values[model.name]), learner, baselines, values)


def metric(model: Model, validation: Callable[[Any], Any]) -> float:
    """The validation's metric, of histories as long as the model reads."""
    if isinstance(validation, ValidationEvaluator):
        validation = replace(validation, evaluator=replace(validation.evaluator, length=model.config.length))
    return float(validation(model))


def scores_of(parts: Sequence[Model], validation: ValidationEvaluator) -> tuple[Tensor, Tensor, Tensor]:
    """score_PCV of some of the cases, drawn evenly, the items that do not compete there, and the targets."""
    evaluator, n_items = validation.evaluator, parts[0].n_items
    most, whole = max(1, CELLS // (len(parts) * n_items)), evaluator.cases
    cases = whole.some(np.unique(np.linspace(0, len(whole) - 1, most).astype(np.int64)))
    compete = evaluator.candidates.exclude_seen
    case_N, item_N = seen_cells(evaluator.sequences, cases.user_C, cases.seen_C) if compete else no_cells()
    target_C = torch.from_numpy(cases.item_C.astype(np.int64))
    barred_CV = torch.zeros(len(cases), n_items, dtype=torch.bool)
    barred_CV[torch.from_numpy(case_N.astype(np.int64)), torch.from_numpy(item_N.astype(np.int64))] = True
    barred_CV[torch.arange(len(cases)), target_C] = False
    score_PCV = torch.empty(len(parts), len(cases), n_items)
    for start in range(0, len(cases), ROWS):
        some = slice(start, start + ROWS)
        for n, part in enumerate(parts):
            rows = histories(evaluator.sequences, cases.user_C[some], cases.seen_C[some], part.config.length)
            score_PCV[n, some] = part.scores(rows).cpu()
    return score_PCV, barred_CV, target_C
