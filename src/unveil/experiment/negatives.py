"""How many negatives: a hundred where the catalogue has them, and no more than every case can be given.

Shapes: V items.
"""

from collections.abc import Callable
from dataclasses import replace

from unveil.data.splits import Split
from unveil.errors import UnveilError
from unveil.evaluation.candidates import USUAL, usual_negatives
from unveil.runs.config import Experiment
from unveil.wording import quantity

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
    count_V = split.train.count_V
    most = usual_negatives(split.test, split.whole, count_V, exclude_seen=asked.exclude_seen)
    for name, left in most.items():
        if getattr(asked, name) is None and left < USUAL:
            found = quantity(left, f"{name} one")
            tell(f"negatives  {found} instead of {USUAL}: not every case has more items to draw from")
    uniform = most["uniform"] if asked.uniform is None else asked.uniform
    popular = most["popular"] if asked.popular is None else asked.popular
    return replace(experiment, evaluation=replace(asked, uniform=uniform, popular=popular))
