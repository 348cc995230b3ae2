"""What a run prints before it trains: the data, the estimator and its weights, and warnings."""

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
    """The size of the log and its split. Impressions without a click are in no history, and are counted apart."""
    if log.clicked is None:
        tell(f"log        {log}")
    else:
        tell(f"clicked    {_sizes(log.interacted(), 'click')}")
        tell(f"shown      {_sizes(log, 'impression')}; all items shown can be recommended")
    tell(f"split      {split.rule}; {quantity(split.train_only, 'user')} for training only")
    tell(f"           {split}")


def tell_training(ready: Ready, tell: Tell) -> None:
    """What is trained, on how much and where; the weights, and warnings where they or their source are doubtful."""
    how = "with" if ready.weights is None else "weighted by"
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
    tell(f"reads      {_reads(ready)}")


def _reads(ready: Ready) -> str:
    """How many of the training events the network reads: of long histories only the end."""
    events, read = len(ready.task.train.item_N), int(ready.task.rows.length_R.sum())
    kept = f"the last {ready.recipe.model.length} of each user" if read < events else "all of them"
    return f"{quantity(events, 'event')} to train on, of which the network reads {read:,}: {kept}"


def _kept(propensity: Recorded) -> str:
    """The share of impressions that the log is assumed to hold: a wrong one would go unnoticed."""
    if propensity.rate < 1:
        return f"learned from impressions, of which the log holds {propensity.rate:g} (propensity.rate)"
    return "learned from impressions; if the log holds only a share of them, set it: --set propensity.rate=0.1"


def _sizes(log: Interactions, noun: str) -> str:
    """Rows, and how many users and items have any."""
    users, items = len(np.unique(log.user)), len(np.unique(log.item))
    return f"{quantity(len(log), noun)}, {quantity(users, 'user')}, {quantity(items, 'item')}"
