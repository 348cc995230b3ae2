"""Evaluations side by side: what tables, dots and tests need, whether the models are at hand or not."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from unveil.evaluation.compare import Comparison
from unveil.evaluation.result import Evaluation


class Side(Protocol):
    """Names, an evaluation for each, and the tests between them; None: one alone."""

    @property
    def names(self) -> Sequence[str]:
        """What the runs are called."""

    @property
    def evaluations(self) -> Sequence[Evaluation]:
        """How each was judged."""

    @property
    def comparison(self) -> Comparison | None:
        """The tests between them."""


@dataclass(frozen=True, eq=False)
class Judgements:
    """Evaluations that were compared, and nothing else."""

    judged: Mapping[str, Evaluation]
    comparison: Comparison

    @property
    def names(self) -> list[str]:
        """What the runs are called."""
        return list(self.judged)

    @property
    def evaluations(self) -> list[Evaluation]:
        """How each was judged."""
        return list(self.judged.values())
