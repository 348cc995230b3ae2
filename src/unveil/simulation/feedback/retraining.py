"""When a model is trained again, and from where."""

import re
from dataclasses import dataclass
from typing import Self

from unveil.errors import UnveilError


@dataclass(frozen=True)
class Retraining:
    """Every `every` rounds: from scratch (the paper's), or `warm` from the weights at hand, for `epochs` if given."""

    every: int = 1
    warm: bool = False
    epochs: int | None = None  # of a warm start; None: as many as from scratch

    @classmethod
    def parse(cls, text: str) -> Self:
        """`scratch`, `warm`, `warm:EPOCHS` or `every:ROUNDS`."""
        found = re.fullmatch(r"scratch|(warm)(?::([1-9]\d*))?|every:([1-9]\d*)", text)
        if found is None:
            expected = "scratch, warm, warm:EPOCHS or every:ROUNDS"
            raise UnveilError("no such way to retrain", where="retrain", found=text, expected=expected)
        warm, epochs, every = found.groups()
        return cls(int(every or 1), warm is not None, int(epochs) if epochs else None)

    def due(self, round: int) -> bool:
        """Whether the model is trained in this round; it always is in round 0."""
        return round % self.every == 0

    def last_due(self, round: int) -> int:
        """The last round up to this one in which the model was trained."""
        return round - round % self.every
