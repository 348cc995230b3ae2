"""How many negatives: a hundred where the catalogue has them, and no more than every case can be given.

Shapes: V items.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from unveil.data.splits import Split
from unveil.errors import UnveilError
from unveil.evaluation.candidates import most_negatives
from unveil.experiment.config import EvaluationConfig, Experiment
from unveil.wording import quantity

USUAL = 100
#: Places of the longest list that is judged.
PLACES = 10


def with_negatives(experiment: Experiment, split: Split, tell: Callable[[str], None]) -> Experiment:
    """The experiment with numbers in place of None; fewer than usual are told. A number that was asked for stays."""
    if split.whole.n_items < PLACES:
        expected = f"at least {PLACES} items: lists of {PLACES} are judged"
        raise UnveilError("the catalogue is too small", found=quantity(split.whole.n_items, "item"), expected=expected)
    asked = experiment.evaluation
    if asked.uniform is not None and asked.popular is not None:
        return experiment
    most = _count(asked, split)
    for name, left in most.items():
        if getattr(asked, name) is None and left < USUAL:
            found = quantity(left, f"{name} one")
            tell(f"negatives  {found} instead of {USUAL}: not every case has more items to draw from")
    uniform = most["uniform"] if asked.uniform is None else asked.uniform
    popular = most["popular"] if asked.popular is None else asked.popular
    return replace(experiment, evaluation=replace(asked, uniform=uniform, popular=popular))


def _count(asked: EvaluationConfig, split: Split) -> dict[str, int]:
    """The usual number, or the largest that there is; the exact count is made only where it can matter."""
    count_V = np.bincount(split.train.item_N, minlength=split.train.n_items)
    barred = int(split.test.seen_C.max(initial=0)) + 1
    if int((count_V > 0).sum()) - barred >= USUAL:
        return {"uniform": USUAL, "popular": USUAL}
    most = most_negatives(split.test, split.whole, count_V, exclude_seen=asked.exclude_seen)
    return {name: min(USUAL, left) for name, left in most.items()}
