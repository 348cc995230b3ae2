"""Exposure by user, item, day and hour, learnt from impressions: the model, its folder, and propensities by it.

The folder: `exposure.json` (what it is and how good), `ids.json`, `factors.safetensors`.
Shapes: U users, V items, H hours of the day, D days, K factors, B points of the calibration, M slots.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as from_bytes
from safetensors.numpy import save as as_bytes
from scipy.special import expit
from torch import Tensor

from unveil.checksums import check_file, check_seal, sealed
from unveil.data.indexing import Vocabulary
from unveil.data.interactions import Interactions, Sequences
from unveil.data.slots import Slots
from unveil.errors import UnveilError
from unveil.files import write_json
from unveil.propensity.base import Kind, Source, as_theta, indices, register
from unveil.propensity.impression_pairs import day_and_hour

Floats = NDArray[np.float32]
Indices = NDArray[Any]

UNKNOWN = -1  # A user or an item that the model does not have
FORMAT = "unveil exposure 1"
ABOUT, IDS, FACTORS = "exposure.json", "ids.json", "factors.safetensors"
_TABLES = ("P_UK", "Q_VK", "W_HK", "recent_DV", "steady_DV", "curve_B2")
_HINT = "Name a folder that `unveil propensity fit` wrote."


@dataclass(frozen=True, eq=False)
class ExposureModel:
    """θ_sid = σ(curve(ψ)), the probability that item i is what user s is shown at an impression on day d:

    ψ = centre + slope · log recent_di + slope' · log steady_di + Σ_k P_sk Q_ik W_hk

    with the item's shares of the impressions before that day, recent and over a longer time, and h the hour. (A user
    needs no bias: every impression shows one item.) An unknown user has P = 0, an unknown item the smallest shares and
    Q = 0: what remains is popularity. A day outside the table is read at the nearest one in it.
    """

    users: Vocabulary
    items: Vocabulary
    P_UK: Floats
    Q_VK: Floats
    W_HK: Floats
    recent_DV: Floats  # log shares
    steady_DV: Floats  # log shares
    line: tuple[float, float, float]  # centre, slope, slope'
    curve_B2: Floats  # the calibration: points (ψ, calibrated ψ), straight lines between them
    first_day: int

    def theta(self, user_M: Indices, item_M: Indices, day_M: Indices, hour_M: Indices) -> Floats:
        return self._probability(self.psi(user_M, item_M, day_M, hour_M))

    def psi(self, user_M: Indices, item_M: Indices, day_M: Indices, hour_M: Indices) -> Floats:
        product_M = np.einsum("mk,mk,mk->m", _rows(self.P_UK, user_M), _rows(self.Q_VK, item_M), self.W_HK[hour_M])
        return np.asarray(self.popularity(item_M, day_M) + product_M, np.float32)

    def theta_of_all(self, user_M: Indices, day_M: Indices, hour_M: Indices) -> Floats:
        """θ_MV of all the model's items, then of an unknown item in the last column."""
        Q_VK = np.concatenate([self.Q_VK, np.zeros((1, self.Q_VK.shape[1]), np.float32)])
        product_MV = (_rows(self.P_UK, user_M) * self.W_HK[hour_M]) @ Q_VK.T
        item_V = np.append(np.arange(len(self.items)), UNKNOWN)
        day, nth_M = np.unique(self._day(day_M), return_inverse=True)
        row_DV = np.stack([self.popularity(item_V, np.full(len(item_V), each)) for each in day])
        return self._probability(row_DV[nth_M] + product_MV)

    def theta_over_days(self, user_M: Indices, item_M: Indices) -> Floats:
        """The mean of θ over all days, at the hours' mean factor: the static propensity of a user and an item."""
        product_M = np.einsum("mk,mk,k->m", _rows(self.P_UK, user_M), _rows(self.Q_VK, item_M), self.W_HK.mean(0))
        total_M = np.zeros(len(user_M), np.float64)
        for day in range(len(self.recent_DV)):
            total_M += self._probability(self.popularity(item_M, np.full(len(item_M), day)) + product_M)
        return np.asarray(total_M / len(self.recent_DV), np.float32)

    def popularity(self, item_M: Indices, day_M: Indices) -> Floats:
        """The part of ψ that is the same for all users."""
        centre, slope, other = self.line
        recent_DV, steady_DV = self._with_unknown
        at = self._day(day_M), item_M
        return np.asarray(centre + slope * recent_DV[at] + other * steady_DV[at], np.float32)

    @cached_property
    def _with_unknown(self) -> tuple[Floats, Floats]:
        """Both tables with a last column, which −1 finds: the smallest share of each day."""
        recent_DV, steady_DV = (np.hstack([x, x.min(1, keepdims=True)]) for x in (self.recent_DV, self.steady_DV))
        return recent_DV, steady_DV

    def _day(self, day_M: Indices) -> Indices:
        return np.clip(day_M, 0, len(self.recent_DV) - 1)

    def _probability(self, psi: NDArray[Any]) -> Floats:
        """σ(curve(ψ)); beyond its ends the curve has slope 1."""
        at_B, to_B = self.curve_B2.T.astype(np.float64)
        inside = np.clip(psi, at_B[0], at_B[-1])
        theta: Floats = np.asarray(expit(np.interp(inside, at_B, to_B) + (psi - inside)), np.float32)
        return np.maximum(theta, np.finfo(np.float32).tiny)


def _rows(table_RK: Floats, index_M: Indices) -> Floats:
    """The rows of a table; zeros where unknown."""
    return np.asarray(np.where((index_M != UNKNOWN)[:, None], table_RK[index_M], 0), np.float32)


def write(model: ExposureModel, folder: Path, about: Mapping[str, Any]) -> dict[str, Any]:
    """Into an existing folder; `about` is added to `exposure.json`, whose content is returned."""
    ids = {"users": model.users.ids.to_list(), "items": model.items.ids.to_list()}
    parts = {
        IDS: json.dumps(ids, ensure_ascii=False).encode(),
        FACTORS: as_bytes({name: getattr(model, name) for name in _TABLES}),
    }
    content = {
        "format": FORMAT,
        "line": list(model.line),
        "first_day": model.first_day,
        "parts": {name: sha256(part).hexdigest() for name, part in parts.items()},
        **about,
    }
    for name, part in parts.items():
        (folder / name).write_bytes(part)
    write_json(folder / ABOUT, sealed(content))
    return content


def about(folder: Path) -> dict[str, Any]:
    """The content of `exposure.json`."""
    try:
        content = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        expected = f"a folder with {ABOUT}"
        raise UnveilError("not a learnt exposure", where=folder, expected=expected, hint=_HINT) from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise UnveilError("not a learnt exposure of this version", where=folder, expected=FORMAT, hint=_HINT)
    check_seal(content, folder / ABOUT, _HINT)
    return content


def load(folder: Path) -> ExposureModel:
    """Read what `write` wrote; an error if a part was changed or damaged."""
    content = about(folder)
    try:
        for name in (IDS, FACTORS):
            check_file(folder / name, content["parts"][name], _HINT)
        parts = {name: (folder / name).read_bytes() for name in (IDS, FACTORS)}
        ids, tables = json.loads(parts[IDS]), from_bytes(parts[FACTORS])
        return ExposureModel(
            Vocabulary(ids["users"]),
            Vocabulary(ids["items"]),
            **{name: tables[name] for name in _TABLES},
            line=(content["line"][0], content["line"][1], content["line"][2]),
            first_day=int(content["first_day"]),
        )
    except (OSError, ValueError, KeyError, TypeError, IndexError, SafetensorError) as error:
        raise UnveilError(f"a damaged exposure ({error})", where=folder, hint=_HINT) from None


@dataclass
class TimeOfDay:
    """θ of a model that `unveil propensity fit` wrote to `path`, joined to the log by the raw ids.

    It was fitted before the log was split: it knows the impressions of held-out events, and not the clicks.
    """

    log: Interactions
    path: str = ""

    name: ClassVar[str]
    source: ClassVar[Source] = "log"
    _model: ExposureModel = field(init=False, repr=False)
    _user_U: Indices = field(init=False, repr=False)  # the model's index of each user of the log, −1 if unknown
    _item_V: Indices = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not self.path:
            hint = "Fit one with `unveil propensity fit LOG -o FOLDER` and pass propensity.path=FOLDER."
            raise UnveilError(f"the propensity {self.name!r} needs the folder of a learnt exposure", hint=hint)
        self._model = load(Path(self.path))
        self._user_U = self._model.users.index(self.log.users.ids).astype(np.int64)
        self._item_V = self._model.items.index(self.log.items.ids).astype(np.int64)
        if (self._item_V < 0).all():
            raise UnveilError("the learnt exposure knows none of the log's items", where=self.path)

    def fit(self, train: Sequences) -> Self:
        return self

    def _places(self, slots: Slots) -> tuple[Indices, Indices]:
        user_M, item_M, _ = indices(slots)
        return self._user_U[user_M], self._item_V[item_M]


@register
@dataclass
class LearntTemporal(TimeOfDay):
    """θ_sit on the day and at the hour of the slot's own event."""

    name: ClassVar[str] = "learnt-temporal"
    kind: ClassVar[Kind] = "temporal"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.log.time is None:
            problem = "a temporal propensity was learnt by day and hour, and this log has no times"
            raise UnveilError(problem, hint="Use learnt-static, with an estimator that takes a static one.")

    def __call__(self, slots: Slots) -> Tensor:
        return as_theta(self._model.theta(*self._places(slots), *self._times(slots)), slots)

    def of_all(self, slots: Slots) -> Tensor:
        theta_MV = self._model.theta_of_all(self._places(slots)[0], *self._times(slots))
        return as_theta(theta_MV[:, self._item_V], slots)  # −1 is the last column: that of an unknown item

    def _times(self, slots: Slots) -> tuple[Indices, Indices]:
        if slots.event_M is None:
            raise UnveilError("learnt propensities need the time of an event, and these slots are no events of the log")
        assert self.log.time is not None
        return day_and_hour(self.log.time[slots.event_M.cpu().numpy()], self._model.first_day)


@register
@dataclass
class LearntStatic(TimeOfDay):
    """θ_si: the mean of θ over the days that the model knows."""

    name: ClassVar[str] = "learnt-static"
    kind: ClassVar[Kind] = "static"

    def __call__(self, slots: Slots) -> Tensor:
        return as_theta(self._model.theta_over_days(*self._places(slots)), slots)

    def of_all(self, slots: Slots) -> Tensor:
        user_M, _ = self._places(slots)
        user_MV, item_MV = np.broadcast_arrays(user_M[:, None], self._item_V)
        return as_theta(self._model.theta_over_days(user_MV.ravel(), item_MV.ravel()).reshape(user_MV.shape), slots)
