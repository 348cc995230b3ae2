"""Who recommends in a loop: a network trained with an estimator, or a rule that learns next to nothing."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from unveil.data.sequences import Sequences
from unveil.errors import UnveilError
from unveil.estimators.base import estimator
from unveil.evaluation.ranking import Scorer
from unveil.models.baselines import Popularity, Random
from unveil.propensity.base import PROPENSITIES
from unveil.simulation.world import World
from unveil.training.fit import new_model, prepare
from unveil.training.progress import Watcher
from unveil.training.recipe import AUTO, Recipe

Weights = Mapping[str, Tensor]


@dataclass(frozen=True, eq=False)
class Learnt:
    """A scorer, and what its training says of itself."""

    scorer: Scorer
    figures: Mapping[str, float] = field(default_factory=dict)

    @property
    def weights(self) -> dict[str, Tensor]:
        """What a file must hold to have the scorer again; nothing for a rule that the log alone decides."""
        scorer = self.scorer
        if isinstance(scorer, Random):
            return {"seed": torch.tensor([scorer.seed])}
        return dict(scorer.state_dict()) if isinstance(scorer, nn.Module) else {}


class Learner(Protocol):
    """Histories in, a scorer out, round after round."""

    @property
    def length(self) -> int:
        """The number of tokens that the scorer is shown."""

    def learn(self, sequences: Sequences, seed: int, before: Learnt | None, epochs: int | None = None) -> Learnt:
        """Train on whole histories: from scratch, or for some epochs from what was learnt `before`."""

    def recall(self, weights: Weights, sequences: Sequences) -> Learnt:
        """What was learnt on these histories, given what `Learnt.weights` was."""


@dataclass(frozen=True, eq=False)
class Network:
    """Trains on every event for `training.epochs`: one held out for validation would reach training a round late.

    Popularity stands in for exposure, in a world too: in the loop the recommender decides what is shown.
    """

    recipe: Recipe
    world: World | None = None
    watch: Watcher | None = None

    def __post_init__(self) -> None:
        name = str(self.recipe.propensity["name"])
        if name != AUTO and PROPENSITIES[name].source != "nothing":
            raise UnveilError(
                "in a loop the recommender decides what is shown: this propensity does not know it",
                where="propensity.name",
                found=name,
                expected="auto or one that is counted, such as popularity-static",
            )

    @property
    def length(self) -> int:
        return self.recipe.model.length

    def learn(self, sequences: Sequences, seed: int, before: Learnt | None, epochs: int | None = None) -> Learnt:
        recipe = self.recipe.changed({"training.seed": seed} | ({} if before is None else self._further(epochs)))
        truth = self.world if estimator(str(recipe.estimator["name"])).needs == "truth" else None
        ready = prepare(sequences, recipe, world=truth)
        if before is not None:
            ready.model.load_state_dict(before.weights)
        fitted = ready.fit(None, watch=self.watch)
        share = 1.0 if ready.weights is None else ready.weights.ess_share
        return Learnt(ready.model, {"loss": fitted.epochs[-1].loss, "ess": share})

    def _further(self, epochs: int | None) -> dict[str, Any]:
        """A rate that was cut on the way stays cut; rates that fall to 0 rise once more, or nothing would be learnt."""
        training = self.recipe.training
        cut = training.schedule == "step" and training.epochs > training.step_epoch
        count = {} if epochs is None else {"training.epochs": epochs}
        return count | ({"training.step_epoch": 0} if cut else {})

    def recall(self, weights: Weights, sequences: Sequences) -> Learnt:
        model = new_model(self.recipe, sequences.n_items)
        model.load_state_dict(dict(weights))
        return Learnt(model.eval())


@dataclass(frozen=True)
class Rule:
    """Learns next to nothing: the histories and the seed of the round give the scorer."""

    scorer: Callable[[Sequences, int], Scorer]
    length: int

    def learn(self, sequences: Sequences, seed: int, before: Learnt | None, epochs: int | None = None) -> Learnt:
        return Learnt(self.scorer(sequences, seed))

    def recall(self, weights: Weights, sequences: Sequences) -> Learnt:
        return Learnt(self.scorer(sequences, int(weights["seed"]) if "seed" in weights else 0))


#: What most users chose, the loop at its narrowest; and any unseen item, the loop at its widest.
MOST_POPULAR = Rule(lambda sequences, _: Popularity.fit(sequences), length=2)
AT_RANDOM = Rule(lambda sequences, seed: Random(sequences.n_items, seed), length=100)
#: Rules by the name under which they stand beside estimators.
RULES: Mapping[str, Rule] = {"popularity": MOST_POPULAR, "random": AT_RANDOM}
