"""The preset `auto`: settings chosen by what the training part of a log looks like, each with its reason."""

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from unveil.data.interactions import Sequences
from unveil.models.base import BaselineConfig
from unveil.training.recipe import Recipe
from unveil.wording import quantity

R = TypeVar("R", bound=Recipe)


@dataclass(frozen=True)
class Choice:
    """A setting, and why it suits the log."""

    name: str
    value: Any
    reason: str

    def __str__(self) -> str:
        return f"{self.name} = {self.value}: {self.reason}"


def suited(recipe: R, train: Sequences) -> tuple[R, list[Choice]]:
    """The recipe with what it left to the log (`recipe.auto`) chosen; and those choices."""
    if not recipe.auto or isinstance(recipe.model, BaselineConfig):
        return recipe.changed({"auto": []}), []
    chosen = [choice for choice in choices(recipe, train) if choice.name in recipe.auto]
    values = {choice.name: choice.value for choice in chosen}
    return recipe.changed({"auto": []}).changed(values), chosen


def choices(recipe: Recipe, train: Sequences) -> list[Choice]:
    """All rules. Chosen by validation on some logs: docs/adr/0020."""
    length_U = train.length_U[train.length_U > 0]
    mean = float(length_U.mean()) if len(length_U) else 0.0
    short = mean < SHORT
    length = min(SHORT_ROW if short else LONG_ROW, int(length_U.max(initial=1)))
    histories = f"histories of {mean:.1f} events on average"
    length = recipe.model.length if "model.length" not in recipe.auto else length
    rows = int((-(-length_U // length)).sum())
    wanted = SHORT_STEP if short else float(np.clip(len(train) / 200, *LONG_STEP))
    batch = int(np.clip(2 ** round(np.log2(wanted * max(rows, 1) / max(len(train), 1))), 16, 256))
    batch = recipe.task.batch_size if "task.batch_size" not in recipe.auto else batch
    naive, pairs = recipe.estimator["name"] in ("naive", "naive-sampled"), len(train) * train.n_items
    steps = max(1, -(-rows // batch))
    every = max(1, round(STEPS / steps))
    dropout = 0.5 if short else 0.3 if len(train) < MANY else 0.2
    window = int(np.clip(steps, 100, 1000))
    catalogue = f"{quantity(train.n_items, 'item')}, {quantity(len(train), 'event')}"
    sampled = [
        Choice("estimator.name", "naive-sampled", f"{catalogue}: a softmax over all items would take long"),
        Choice("estimator.negatives", NEGATIVES, "items drawn for each batch"),
    ]
    return [
        *(sampled if naive and pairs > PAIRS and "estimator.name" in recipe.auto else []),
        Choice("model.length", length, f"{histories}, the longest {quantity(int(length_U.max(initial=0)), 'event')}"),
        Choice("model.dropout", dropout, f"{quantity(len(train), 'event')}; {histories}"),
        Choice("task.batch_size", batch, f"about {len(train) / steps:,.0f} events a step"),
        Choice("training.validate_every", every, f"every {quantity(every * steps, 'step')}"),
        Choice("training.average", round(1 - 1 / window, 4), f"over about {quantity(window, 'step')}"),
        Choice("training.blend", naive, _BLEND if naive else "baselines correct no exposure bias, the estimator may"),
    ]


_BLEND = "a network and baselines that score together, by validation"
SHORT, MANY = 20.0, 300_000  # mean events of a history that is short, events of a log that needs less dropout
SHORT_ROW, LONG_ROW = 50, 100  # most events of a row where histories are short, and of any row else
SHORT_STEP, LONG_STEP = 512, (2048, 6400)  # events of a step; where histories are long a 200th of all within these
PAIRS, NEGATIVES = 10**10, 1024  # of events and items, with more of which a softmax is over some items drawn
STEPS = 60  # at least, between validations
