"""What a run says of itself before it trains: the data, the estimator and its weights, and what to beware of."""

from collections.abc import Callable

import numpy as np

from unveil.data.interactions import Interactions
from unveil.data.splits import Split
from unveil.propensity.impressions import Recorded
from unveil.training.device import pick_device
from unveil.training.fit import Ready
from unveil.wording import quantity

Tell = Callable[[str], None]


def tell_data(log: Interactions, split: Split, tell: Tell) -> None:
    """How much there is, and how it is split. What was shown and left is told apart: it is in no history."""
    if log.clicked is None:
        tell(f"log        {log}")
    else:
        tell(f"taken      {_sizes(log.interacted())}")
        tell(f"shown      {_sizes(log)}; every item that was shown can be recommended")
    tell(f"split      {split.rule}; {quantity(split.train_only, 'user')} for training only")
    tell(f"           {split}")


def tell_training(ready: Ready, tell: Tell) -> None:
    """What is to be trained, and where; the weights, and warnings where they or their source are doubtful."""
    how = "told" if ready.weights is None else "weighted by"
    by = "" if ready.propensity is None else f", {how} {ready.propensity.name}"
    tell(f"estimator  {ready.estimator.name}{by}")
    if isinstance(ready.propensity, Recorded):
        tell(f"exposure   {_kept(ready.propensity)}")
    if ready.weights is not None:
        tell(f"weights    {ready.weights}")
    for warning in ready.warnings():
        tell(f"warning: {warning}")
    device = pick_device(ready.recipe.training.device)
    tell(f"model      {ready.model.name}, {quantity(ready.model.n_parameters(), 'parameter')}, on {device}")


def _kept(propensity: Recorded) -> str:
    """What the log is taken to keep: a share that is wrong would be found nowhere."""
    if propensity.rate < 1:
        return f"learnt from impressions, of which the log keeps {propensity.rate:g} (propensity.rate)"
    return "learnt from impressions; where the log keeps only a share of them, say which: --set propensity.rate=0.1"


def _sizes(log: Interactions) -> str:
    """Events, and how many users and items have any."""
    users, items = len(np.unique(log.user)), len(np.unique(log.item))
    return f"{quantity(len(log), 'event')}, {quantity(users, 'user')}, {quantity(items, 'item')}"
