"""The figures of all loops: means over replicates, their intervals, and paired differences between models."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unveil.evaluation.statistics import Paired, paired
from unveil.simulation.feedback.figures import Record
from unveil.studies.results import Estimate, corrected

#: The figure that conclusions are drawn from.
HEADLINE = "efd"

Group = Literal["novelty", "diversity", "log", "truth", "training"]


@dataclass(frozen=True)
class Shown:
    """A figure as it is called, `{k}` standing for the places of a list; its explanation is in the template."""

    title: str
    group: Group
    digits: int = 3


FIGURES: Mapping[str, Shown] = {
    "efd": Shown("EFD@{k}", "novelty"),
    "efd_first": Shown("EFD@{k} by the first log", "novelty"),
    "arp": Shown("ARP@{k}", "novelty", 1),
    "gini": Shown("Gini@{k}", "diversity"),
    "coverage": Shown("Coverage@{k}", "diversity"),
    "collective": Shown("Collective diversity", "diversity", 1),
    "individual": Shown("Individual diversity", "diversity"),
    "overlap": Shown("Overlap", "diversity"),
    "log_gini": Shown("Gini of the log", "log", 4),
    "taken_efd": Shown("Novelty of the chosen items", "log"),
    "taken": Shown("Users who chose an item", "log"),
    "relevance": Shown("Relevance of the recommendations", "truth"),
    "taken_relevance": Shown("Relevance of the chosen items", "truth"),
    "standing": Shown("Rank of the recommendations", "truth"),
    "taken_standing": Shown("Rank of the chosen items", "truth"),
    "short": Shown("Short lists", "log"),
    "events": Shown("Events", "log", 0),
    "loss": Shown("Loss", "training"),
    "ess": Shown("Effective sample", "training"),
}

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LoopOutcome:
    """records[model][replicate][round]. A figure that there is not is None: no item is chosen in round 0."""

    records: Mapping[str, Sequence[Sequence[Record]]]
    rounds: int

    @property
    def models(self) -> list[str]:
        """In the order in which they were asked for."""
        return list(self.records)

    @property
    def replicates(self) -> int:
        """How often everything random was drawn."""
        return len(next(iter(self.records.values())))

    @cached_property
    def figures(self) -> list[str]:
        """The figures that are there, in the order of the page: some need a world."""
        return [key for key in FIGURES if self.models_of(key)]

    def models_of(self, key: str) -> list[str]:
        """The models that have a figure: a rule has no loss."""
        return [model for model in self.models if any(self._value(model, key, r) for r in range(self.rounds + 1))]

    def rounds_of(self, key: str) -> list[int]:
        """The rounds in which they all have it: no item is chosen in round 0, and training may be rarer."""
        every, models = range(self.rounds + 1), self.models_of(key)
        return [round for round in every if all(self._value(model, key, round) for model in models)]

    def sample(self, model: str, key: str, round: int) -> Floats:
        """A number for each replicate."""
        return np.array(self._value(model, key, round), float)

    def estimate(self, model: str, key: str, round: int | None = None) -> Estimate:
        """The mean over replicates and its 95% interval by Student's t; no interval for one replicate."""
        value = self.sample(model, key, self.rounds if round is None else round)
        found = paired(value, np.zeros(len(value)))
        alone = len(value) < 2
        return Estimate(found.difference, None if alone else found.low, None if alone else found.high, len(value))

    def change(self, model: str, key: str) -> float:
        """The mean of the last round less that of the first one that has the figure."""
        first, *_, last = self.rounds_of(key)
        return self.estimate(model, key, last).mean - self.estimate(model, key, first).mean

    def order(self, key: str, round: int | None = None) -> list[str]:
        """The models that have the figure, highest mean first."""
        return sorted(self.models_of(key), key=lambda model: -self.estimate(model, key, round).mean)

    def differences(self, key: str, base: str) -> dict[str, Paired]:
        """The other models less `base` in the last round, replicate by replicate; p after Holm's correction."""
        others = [model for model in self.models if model != base]
        found = [paired(*(self.sample(each, key, self.rounds) for each in (model, base))) for model in others]
        return dict(zip(others, corrected(found), strict=True))

    def above(self, one: str, other: str) -> int:
        """In how many rounds the mean EFD of one model is higher than another's."""
        every = range(self.rounds + 1)
        return sum(self.estimate(one, HEADLINE, r).mean > self.estimate(other, HEADLINE, r).mean for r in every)

    def table(self) -> pl.DataFrame:
        """A row for each replicate, model and round."""
        rows: list[dict[str, Any]] = [
            {"replicate": replicate, "model": model, "round": round, **{key: record.get(key) for key in FIGURES}}
            for model, loops in self.records.items()
            for replicate, loop in enumerate(loops)
            for round, record in enumerate(loop)
        ]
        schema = {"replicate": pl.Int64, "model": pl.String, "round": pl.Int64, **dict.fromkeys(FIGURES, pl.Float64)}
        return pl.DataFrame(rows, schema=schema).sort("replicate", maintain_order=True)

    def _value(self, model: str, key: str, round: int) -> list[float]:
        """Of every replicate, or nothing."""
        values = [loop[round].get(key) for loop in self.records[model]]
        return [value for value in values if value is not None] if None not in values else []
