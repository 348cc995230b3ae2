"""What a run says of itself before it trains: the data, the estimator and its weights, and what to beware of."""

from collections.abc import Callable

from unveil.data.interactions import Interactions
from unveil.data.splits import Split
from unveil.training.device import pick_device
from unveil.training.fit import Ready

Tell = Callable[[str], None]

_PROXY = "popularity stands in for exposure: gains are under that proxy."


def tell_data(log: Interactions, split: Split, tell: Tell) -> None:
    """How much there is, and how it is split."""
    tell(f"log        {len(split.whole):,} events, {len(log.users):,} users, {len(log.items):,} items")
    tell(f"split      {split.rule}; {split.train_only:,} users for training only")
    sizes = ((split.train, "train on"), (split.valid, "validate on"), (split.test, "test on"))
    tell(f"           {', '.join(f'{len(part):,} events to {use}' for part, use in sizes)}")


def tell_training(ready: Ready, tell: Tell) -> None:
    """What is to be trained, and where; the weights, and warnings where they or their source are doubtful."""
    by = "" if ready.propensity is None else f", weighted by {ready.propensity.name}"
    tell(f"estimator  {ready.estimator.name}{by}")
    if ready.weights is not None:
        tell(f"weights    {ready.weights}")
        for warning in ready.weights.warnings():
            tell(f"warning: {warning}")
    if ready.by_proxy:
        tell(f"warning: {_PROXY}")
    device = pick_device(ready.recipe.training.device)
    tell(f"model      {ready.model.name}, {ready.model.n_parameters():,} parameters, on {device}")
