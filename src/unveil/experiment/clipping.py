"""Clips that are shares of the events, made numbers on a log.

Propensities that were estimated have scales of their own; a share means the same on each of them.
"""

from collections.abc import Callable

import numpy as np
import torch

from unveil.data.interactions import Interactions
from unveil.data.sequences import Sequences
from unveil.estimators.clips import CLIP, share_of
from unveil.estimators.learning import blocks, events
from unveil.experiment.trial import Bench
from unveil.propensity.base import PropensityModel
from unveil.training.fit import propensity_of
from unveil.training.recipe import Recipe


def clipped(recipe: Recipe, bench: Bench) -> Recipe:
    """The recipe with its clip as a number, on the training part of a bench."""
    return _numbered(recipe, bench.split.train, lambda: bench.propensity(recipe))


def resolved(recipe: Recipe, train: Sequences, log: Interactions) -> Recipe:
    """The recipe with a clip such as 5% as the quantile of θ̂ over the training events; others stay as they are."""
    return _numbered(recipe, train, lambda: propensity_of(train, recipe, log, None))


def _numbered(recipe: Recipe, train: Sequences, fitted: Callable[[], PropensityModel | None]) -> Recipe:
    share = share_of(recipe.estimator.get(CLIP))
    propensity = None if share is None else fitted()
    if share is None or propensity is None:
        return recipe
    return recipe.changed({f"estimator.{CLIP}": quantile(propensity, train, share)})


def quantile(propensity: PropensityModel, train: Sequences, share: float) -> float:
    """The θ̂ that this share of the training events lies below, to six digits: the same on every machine."""
    theta_N = torch.cat([propensity(part) for part in blocks(events(train))]).double().numpy()
    return float(f"{np.quantile(theta_N, share):.6g}")
