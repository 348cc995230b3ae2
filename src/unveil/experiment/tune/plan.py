"""What a study is: everything that must be the same for all who join it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from unveil.errors import UnveilError
from unveil.experiment.tune.draws import Valid, grid_settings, random_settings
from unveil.experiment.tune.space import Settings, Space
from unveil.experiment.tune.subjects.base import Bench, Subject

Sampler = Literal["random", "tpe", "grid"]

#: Trials where nobody says how many; the paper's number.
USUAL = 30


@dataclass(frozen=True)
class Plan:
    """The space, how it is searched, and how often each combination is trained."""

    space: Space
    trials: int | None = None  # None: 30, or the whole grid
    replicates: int = 3
    sampler: Sampler = "random"
    prune: bool = False  # stop trials early whose first replicate falls behind; the paper does not

    def __post_init__(self) -> None:
        for name in ("trials", "replicates"):
            found = getattr(self, name)
            if found is not None and found < 1:
                raise UnveilError("out of range", where=f"--{name}", found=found, expected="at least 1")

    def settings(self, seed: int, valid: Valid) -> list[Settings]:
        """The settings of every trial; those of `tpe` hold until it has seen enough to guess better."""
        if self.sampler == "grid":
            return grid_settings(self.space, self.trials, valid)
        return random_settings(self.space, self.trials or USUAL, seed, valid)

    def identity(self, subject: Subject, bench: Bench) -> dict[str, Any]:
        """What decides the figures of a study; the number of trials does not: a study may grow.

        The log is told by its fingerprint, the world by its origin.
        """
        how = {name: getattr(self, name) for name in ("replicates", "sampler", "prune")}
        data = {"log": bench.fingerprint, "world": bench.world}
        return {**data, **subject.identity(), "space": self.space.plain(), **how}


def is_valid(subject: Subject, settings: Mapping[str, Any]) -> bool:
    """Whether a subject can have these settings together, e.g. a width that is a multiple of the heads."""
    try:
        subject.changed(settings)
    except UnveilError:
        return False
    return True
