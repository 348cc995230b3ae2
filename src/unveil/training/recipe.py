"""Recipe: everything that decides what is learnt from a training part, and the presets that fill it in."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from unveil.errors import unknown
from unveil.estimators.base import ESTIMATORS
from unveil.models.bert4rec import BERT4RecConfig
from unveil.propensity.base import PROPENSITIES
from unveil.settings import changed
from unveil.training.config import TrainerConfig
from unveil.training.presets import PRESETS

#: The propensity of the kind that the estimator needs: the true one where there is a world, else popularity.
AUTO = "auto"


@dataclass(frozen=True)
class ClozeConfig:
    """Which items are hidden, and in what batches; see `data.batches.ClozeTask`."""

    batch_size: int = 128
    mask_probability: float = 0.2
    last_share: float = 0.1  # rows in which only the last item is hidden: the question asked when recommending
    always_mask: bool = True
    bucket: bool = True  # rows of similar length share a batch; batches hold `batch_size` rows on average


@dataclass(frozen=True)
class Recipe:
    """Model, task, estimator, propensity and training. `training.seed` seeds everything random in them."""

    model: BERT4RecConfig = field(default_factory=BERT4RecConfig)
    task: ClozeConfig = field(default_factory=ClozeConfig)
    estimator: dict[str, Any] = field(default_factory=lambda: {"name": "naive"})  # its name, then its options
    propensity: dict[str, Any] = field(default_factory=lambda: {"name": AUTO})  # auto: what the estimator needs
    training: TrainerConfig = field(default_factory=TrainerConfig)

    def __post_init__(self) -> None:
        """A name that nobody knows is refused here: before a log is read, not after."""
        for kind, known, choice in (
            ("estimator", list(ESTIMATORS), self.estimator),
            ("propensity", [AUTO, *PROPENSITIES], self.propensity),
        ):
            if choice.get("name") not in known:
                raise unknown(kind, str(choice.get("name")), known)

    @classmethod
    def preset(cls, name: str) -> Self:
        """One of the presets: quick, paper, converged."""
        return cls().changed(preset(name))

    def changed(self, changes: Mapping[str, Any], *, where: object = None) -> Self:
        """With some settings replaced, by dotted names."""
        return changed(self, changes, where=where)


def preset(name: str) -> Mapping[str, Any]:
    """The settings of a preset, by dotted names."""
    if name not in PRESETS:
        raise unknown("preset", name, PRESETS)
    return PRESETS[name]
