"""Exposure that was learnt from impressions, in the place of counts. Shapes: M slots, V items."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unveil.data.interactions import Interactions
from unveil.data.sequences import Sequences
from unveil.data.slots import Slots
from unveil.errors import UnveilError
from unveil.propensity.base import Kind, Source, register
from unveil.propensity.impressions.model import ExposureModel
from unveil.propensity.impressions.shown import days_of, hours
from unveil.propensity.impressions.storage import load

Places = NDArray[np.int64]


@dataclass
class Learnt:
    """θ of a model that `unveil propensity fit` wrote to `path`, joined to the log by the raw ids.

    A user or an item of the log that the model has never met gets what popularity alone gives (see `ExposureModel`).
    It was fitted before the log was split: it knows what was shown of held-out events, and not what was taken.
    """

    log: Interactions
    path: str = ""

    name: ClassVar[str]
    source: ClassVar[Source] = "log"
    _model: ExposureModel = field(init=False, repr=False)
    _user_U: Places = field(init=False, repr=False)  # the model's index of each user of the log, −1 for strangers
    _item_V: Places = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not self.path:
            hint = "Fit one with `unveil propensity fit LOG -o FOLDER` and pass propensity.path=FOLDER."
            raise UnveilError(f"the propensity {self.name!r} needs the folder of a learnt exposure", hint=hint)
        self._model = load(Path(self.path))
        self._user_U = self._model.users.index(self.log.users.ids).astype(np.int64)
        self._item_V = self._model.items.index(self.log.items.ids).astype(np.int64)
        if (self._item_V < 0).all():
            raise UnveilError("the learnt exposure knows none of the log's items", where=self.path)

    @property
    def strangers(self) -> dict[str, float]:
        """The share of the log's users and of its items that the model has never met."""
        return {"users": float((self._user_U < 0).mean()), "items": float((self._item_V < 0).mean())}

    def fit(self, train: Sequences) -> Self:
        """Nothing is left to learn: impressions have told it."""
        return self

    def _places(self, slots: Slots) -> tuple[Places, Places]:
        user_M, item_M = (index.cpu().numpy() for index in (slots.user_M, slots.item_M))
        return self._user_U[user_M], self._item_V[item_M]


@register
@dataclass
class LearntTemporal(Learnt):
    """θ_sit at the moment of the slot's own event: its day and its hour."""

    name: ClassVar[str] = "learnt-temporal"
    kind: ClassVar[Kind] = "temporal"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.log.time is None:
            problem = "a temporal propensity was learnt along the days, and this log has no times"
            raise UnveilError(problem, hint="Use learnt-static, with an estimator that takes a static one.")

    def __call__(self, slots: Slots) -> Tensor:
        """θ of the slots' items."""
        return _tensor(self._model.theta(*self._places(slots), *self._moments(slots)), slots)

    def of_all(self, slots: Slots) -> Tensor:
        """θ of all items of the log."""
        user_M, _ = self._places(slots)
        theta_MV = self._model.theta_of_all(user_M, *self._moments(slots))
        return _tensor(theta_MV[:, self._item_V], slots)  # −1 is the last column: a stranger's

    def _moments(self, slots: Slots) -> tuple[Places, Places]:
        if slots.event_M is None:
            raise UnveilError("learnt propensities are of a moment, and these slots are no events of the log")
        assert self.log.time is not None
        time_M = self.log.time[slots.event_M.cpu().numpy()]
        return days_of(time_M, self._model.first_day), hours(time_M)


@register
@dataclass
class LearntStatic(Learnt):
    """θ_si: the mean of θ over the days that the model knows."""

    name: ClassVar[str] = "learnt-static"
    kind: ClassVar[Kind] = "static"

    def __call__(self, slots: Slots) -> Tensor:
        """θ of the slots' items."""
        return _tensor(self._model.theta_over_days(*self._places(slots)), slots)

    def of_all(self, slots: Slots) -> Tensor:
        """θ of all items of the log."""
        user_M, _ = self._places(slots)
        shape = (len(slots), len(self._item_V))
        user_MV, item_MV = (np.broadcast_to(each, shape).ravel() for each in (user_M[:, None], self._item_V))
        return _tensor(self._model.theta_over_days(user_MV, item_MV).reshape(shape), slots)


def _tensor(theta: NDArray[np.float32], slots: Slots) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(theta)).to(slots.item_M.device)
