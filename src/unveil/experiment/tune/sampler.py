"""Settings for Optuna's trials: by entry where the search is random or a grid, by what was learnt where it is TPE."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from unveil.experiment.tune.draws import Valid
from unveil.experiment.tune.entries import entry_of
from unveil.experiment.tune.library import optuna
from unveil.experiment.tune.space import Choice, Dimension, Settings, Space

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial

#: Trials that TPE leaves to chance before it learns from them.
STARTUP = 10
#: Guesses in a row that no model can have, before chance decides.
_TRIES = 20

Guess = Callable[["optuna.Study", "FrozenTrial", dict[str, "BaseDistribution"]], Settings]


@dataclass
class ByEntry(optuna.samplers.BaseSampler):
    """Entry i has the i-th of the settings, whoever asks and whenever; unless `guess` knows better."""

    settings: Sequence[Settings]
    distributions: Mapping[str, "BaseDistribution"]
    guess: Guess | None = None

    def infer_relative_search_space(self, study: "optuna.Study", trial: "FrozenTrial") -> dict[str, "BaseDistribution"]:
        """All settings at once: which of them go together matters."""
        return {name: each for name, each in self.distributions.items() if not each.single()}

    def sample_relative(
        self, study: "optuna.Study", trial: "FrozenTrial", search_space: dict[str, "BaseDistribution"]
    ) -> dict[str, Any]:
        """The settings of the trial's entry."""
        guessed = self.guess(study, trial, search_space) if self.guess else {}
        entry = entry_of(trial, study.get_trials(deepcopy=False))
        chosen = guessed or self.settings[entry % len(self.settings)]
        return {name: chosen[name] for name in search_space}

    def sample_independent(
        self, study: "optuna.Study", trial: "FrozenTrial", param_name: str, param_distribution: "BaseDistribution"
    ) -> Any:
        """Never asked: every setting belongs to the space."""
        raise AssertionError(param_name)


@dataclass(frozen=True)
class TPE:
    """Guesses by tree-structured Parzen estimators. They depend on what was finished when they were made.

    Chance is seeded by entry, so that one process alone gives the same study again; several do not.
    """

    seed: int
    valid: Valid

    def __call__(
        self, study: "optuna.Study", trial: "FrozenTrial", search_space: dict[str, "BaseDistribution"]
    ) -> Settings:
        """A guess that a model can have, or nothing while too little is known."""
        entry = entry_of(trial, study.get_trials(deepcopy=False))
        seed = int(np.random.SeedSequence([self.seed, 1, entry]).generate_state(1)[0])
        tpe = optuna.samplers.TPESampler(n_startup_trials=STARTUP, seed=seed, multivariate=True, constant_liar=True)
        guesses = (tpe.sample_relative(study, trial, search_space) for _ in range(_TRIES))
        return next((guess for guess in guesses if guess and self.valid(guess)), {})


def distribution(dimension: Dimension) -> "BaseDistribution":
    """The same in Optuna's terms."""
    if isinstance(dimension, Choice):
        return optuna.distributions.CategoricalDistribution(dimension.values)
    if dimension.whole:
        return optuna.distributions.IntDistribution(int(dimension.low), int(dimension.high), log=dimension.log)
    return optuna.distributions.FloatDistribution(dimension.low, dimension.high, log=dimension.log)


def distributions(space: Space) -> dict[str, "BaseDistribution"]:
    """The space in Optuna's terms."""
    return {name: distribution(each) for name, each in space.dimensions.items()}
