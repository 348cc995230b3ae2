"""A trial: several losses trained on one log of one world, and judged by the log and by the truth.

All arms of a trial share the log, the split, the negatives, the initial weights, the order of the batches and what is
masked: they differ in the loss alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from unveil.cores import threads
from unveil.data.interactions import Interactions
from unveil.data.sequences import Sequences
from unveil.data.splits import Split, leave_one_out
from unveil.estimators.base import estimator
from unveil.estimators.learning import weights_of
from unveil.evaluation.candidates import FULL
from unveil.evaluation.evaluator import Evaluator
from unveil.evaluation.result import Evaluation
from unveil.evaluation.scorer import Scorer
from unveil.evaluation.truth import judges
from unveil.evaluation.validation import ValidationEvaluator
from unveil.models.baselines import Popularity, Random
from unveil.propensity.base import PropensityModel
from unveil.propensity.weights import WeightDiagnostics
from unveil.simulation.truth import true_cases
from unveil.simulation.world import World
from unveil.training.fit import prepare, propensity_of, validation_of
from unveil.training.progress import Watcher
from unveil.training.recipe import Recipe
from unveil.training.trainer import Fitted

#: Places of the lists whose true relevance is looked at.
TOP = 10
#: Cases validated at a time: few enough for the activations of a small network to stay in the processor's cache.
VALIDATION_BATCH = 64
#: Arms that learn next to nothing: what a model must beat.
BASELINES = ("random", "popularity")


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

    Validation, too, is on true relevance, as in the paper, for all arms alike; or, if asked for `by_log`, on what was
    taken, as it is where nobody knows the truth.
    """

    validation: ValidationEvaluator
    truth: Evaluator
    standard: Evaluator

    @classmethod
    def of(
        cls,
        world: World,
        split: Split,
        recipe: Recipe,
        *,
        uniform: int,
        popular: int,
        validation: str = FULL,
        by_log: bool = False,
    ) -> Self:
        """Both sets of cases with their own negatives, drawn from the recipe's seed."""
        seed = recipe.training.seed
        true = replace(split, valid=true_cases(world, split.valid), test=true_cases(world, split.test))
        truth, standard = (
            Evaluator.of(
                cases,
                split.whole,
                split.train,
                length=recipe.model.length,
                uniform=uniform,
                popular=popular,
                exclude_seen=False,
                seed=seed,
            )
            for cases in (true.test, split.test)
        )
        truth = replace(truth, judges=judges(world, true.test, TOP))
        chosen = validation_of(split if by_log else true, recipe, protocol=validation, exclude_seen=False, seed=seed)
        chosen = replace(chosen, evaluator=replace(chosen.evaluator, batch_size=VALIDATION_BATCH), of_takes=by_log)
        return cls(chosen, truth, standard)

    def judged(self, name: str, scorer: Scorer) -> Arm:
        """The verdict on a scorer."""
        return Arm(name, self.truth.evaluate(scorer, top=TOP), self.standard.evaluate(scorer, top=TOP))


@dataclass(frozen=True, eq=False)
class Bench:
    """What the arms of a trial share: a world, a log of its own, the split of that log, and the jury."""

    world: World
    log: Interactions
    split: Split
    jury: Jury
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
        """The bench of a log. Of the recipe, only the seed, the length and what is monitored matter here."""
        split = leave_one_out(Sequences.of(log))
        drawn_by_popularity = negatives if popular else 0
        jury = Jury.of(
            world,
            split,
            recipe,
            uniform=negatives,
            popular=drawn_by_popularity,
            validation=validation,
            by_log=by_log,
        )
        return cls(world, log, split, jury)

    @property
    def unlearnable(self) -> float:
        """Share of the test cases whose true favourite nobody took in the training part."""
        count_V = np.bincount(self.split.train.item_N, minlength=self.world.n_items)
        return float((count_V[self.jury.truth.cases.item_C] == 0).mean())

    def propensity(self, recipe: Recipe) -> PropensityModel | None:
        """What the recipe's estimator is given, if anything; fitted once for all arms that ask for the same."""
        asked = repr((estimator(str(recipe.estimator["name"])).needs, recipe.propensity, recipe.model.length))
        if asked not in self._fitted:
            self._fitted[asked] = propensity_of(self.split.train, recipe, self.log, self.world)
        return self._fitted[asked]

    def arm(self, name: str, recipe: Recipe, watch: Watcher | None = None) -> Arm:
        """Train and judge one estimator, by the recipe but for its name; or judge a baseline."""
        with threads(recipe.training.threads):
            if name == "random":
                return self.jury.judged(name, Random(self.world.n_items, recipe.training.seed))
            if name == "popularity":
                return self.jury.judged(name, Popularity.fit(self.split.train))
            return self._trained(name, recipe, watch)

    def _trained(self, name: str, recipe: Recipe, watch: Watcher | None) -> Arm:
        named = recipe.changed({"estimator.name": name})
        propensity = self.propensity(named)
        ready = prepare(self.split.train, named, log=self.log, world=self.world, propensity=propensity)
        fitted = ready.fit(self.jury.validation, watch=watch)
        weights = None
        if ready.weights is not None:
            weights = Weights(ready.weights, weights_of(ready.estimator, ready.task.slots).numpy())
        return replace(self.jury.judged(name, ready.model), fitted=fitted, weights=weights)


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
    bench = Bench.of(world, log, recipe, negatives=negatives)
    arms = [bench.arm(name, recipe) for name in BASELINES]
    for name in estimators:
        if watch is not None:
            watch.next(name)
        arms.append(bench.arm(name, recipe, watch))
    return Trial(bench.split, bench.unlearnable, arms)
