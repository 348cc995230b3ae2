"""A trial: several losses trained on one log of one world, and judged by the log and by the truth.

All arms of a trial share the log, the split, the negatives, the initial weights, the order of the batches and what is
masked: they differ in the loss alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from unveil.data.interactions import Interactions
from unveil.data.sequences import Sequences
from unveil.data.splits import Split, leave_one_out
from unveil.evaluation.evaluator import Evaluator
from unveil.evaluation.result import Evaluation
from unveil.evaluation.scorer import Scorer
from unveil.evaluation.validation import ValidationEvaluator
from unveil.models.baselines import Popularity, Random
from unveil.propensity.weights import WeightDiagnostics
from unveil.simulation.truth import judges, true_cases
from unveil.simulation.world import World
from unveil.training.device import threads
from unveil.training.fit import prepare, validation_of
from unveil.training.progress import Watcher
from unveil.training.recipe import Recipe
from unveil.training.trainer import Fitted

#: Places of the lists whose true relevance is looked at.
TOP = 10


class Announcer(Watcher, Protocol):
    """A watcher of several trainings, told which one comes next."""

    def next(self, name: str) -> None:
        """The training of this arm begins."""


@dataclass(frozen=True, eq=False)
class Weights:
    """What a loss makes of the training events: the weight of each, and the figures of all."""

    diagnostics: WeightDiagnostics
    weight_N: NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Arm:
    """One scorer, judged on what users would have liked best (`truth`) and on what they took (`standard`)."""

    name: str
    truth: Evaluation
    standard: Evaluation
    fitted: Fitted | None = None  # None: nothing was trained
    weights: Weights | None = None  # None: not weighted by a propensity


@dataclass(frozen=True, eq=False)
class Trial:
    """The arms of one trial, and what they were judged on."""

    split: Split
    unlearnable: float  # share of the test cases whose true favourite nobody took in the training part
    arms: Sequence[Arm]

    def arm(self, name: str) -> Arm:
        """The arm of that name."""
        return next(arm for arm in self.arms if arm.name == name)


@dataclass(frozen=True, eq=False)
class Jury:
    """The questions of a trial. Users may come back to an item, so what they have met competes like all else.

    Validation, too, is on true relevance, as in the paper, for all arms alike.
    """

    validation: ValidationEvaluator
    truth: Evaluator
    standard: Evaluator

    @classmethod
    def of(cls, world: World, split: Split, recipe: Recipe, negatives: int) -> Self:
        """Both sets of cases with their own negatives, drawn from the recipe's seed."""
        seed = recipe.training.seed
        true = replace(split, valid=true_cases(world, split.valid), test=true_cases(world, split.test))
        by_truth, by_log = (
            Evaluator.of(
                cases,
                split.whole,
                split.train,
                length=recipe.model.length,
                uniform=negatives,
                popular=negatives,
                exclude_seen=False,
                seed=seed,
            )
            for cases in (true.test, split.test)
        )
        by_truth = replace(by_truth, judges=judges(world, true.test, TOP))
        return cls(validation_of(true, recipe, exclude_seen=False, seed=seed), by_truth, by_log)

    def judged(self, name: str, scorer: Scorer) -> Arm:
        """The verdict on a scorer."""
        return Arm(name, self.truth.evaluate(scorer, top=TOP), self.standard.evaluate(scorer, top=TOP))


def run_trial(
    world: World,
    log: Interactions,
    recipe: Recipe,
    estimators: Sequence[str],
    *,
    negatives: int = 100,
    watch: Announcer | None = None,
) -> Trial:
    """Train and judge every estimator, and two baselines that learn next to nothing. The log is the world's own."""
    split = leave_one_out(Sequences.of(log))
    jury = Jury.of(world, split, recipe, negatives)
    with threads(recipe.training.threads):
        arms = [
            jury.judged("random", Random(world.n_items, recipe.training.seed)),
            jury.judged("popularity", Popularity.fit(split.train)),
        ]
        for name in estimators:
            if watch is not None:
                watch.next(name)
            arms.append(_trained(name, recipe, jury, split, log, world, watch))
    count_V = np.bincount(split.train.item_N, minlength=world.n_items)
    return Trial(split, float((count_V[jury.truth.cases.item_C] == 0).mean()), arms)


def _trained(
    name: str, recipe: Recipe, jury: Jury, split: Split, log: Interactions, world: World, watch: Watcher | None
) -> Arm:
    ready = prepare(split.train, recipe.changed({"estimator.name": name}), log=log, world=world)
    fitted = ready.fit(jury.validation, watch=watch)
    weights = None
    if ready.weights is not None:
        weights = Weights(ready.weights, ready.estimator(ready.task.slots).weight_M.numpy())
    return replace(jury.judged(name, ready.model), fitted=fitted, weights=weights)
