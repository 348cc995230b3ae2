"""A recommender straight from a log: no config, no run folder."""

from collections.abc import Mapping
from typing import Any
from warnings import warn

from unveil.data.interactions import Interactions
from unveil.data.sequences import Sequences
from unveil.data.splits import leave_one_out
from unveil.errors import UnveilWarning
from unveil.serving.exposure import exposure_table
from unveil.serving.recommender import Recommender
from unveil.simulation.world import World
from unveil.training.fit import prepare, validation_of
from unveil.training.progress import Watcher
from unveil.training.recipe import Recipe, network_in


def fit(
    log: Interactions,
    preset: str,
    overrides: Mapping[str, Any],
    *,
    world: World | None = None,
    watch: Watcher | None = None,
) -> Recommender:
    """Train a recipe on the training part of leave-one-out, stopped by its validation part.

    What is doubtful about the weights or their source is warned of where `Recommender.fit` was called.
    """
    recipe = Recipe.preset(preset, network_in(overrides)).changed(overrides)
    split = leave_one_out(Sequences.of(log))
    truth = None if world is None else world.aligned_with(log)
    ready = prepare(split.train, recipe, log=log, world=truth)
    for doubt in ready.warnings():
        warn(doubt, UnveilWarning, stacklevel=3)
    ready.fit(validation_of(split, recipe), watch=watch)
    exposure = exposure_table(ready.propensity, split.whole, split.train)
    return Recommender(ready.model, log.items, log.users, split.whole, recipe.model.length, exposure)
