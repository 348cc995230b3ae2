"""Exposure probabilities of items, by the propensity that a model was trained with: a small table saved with it.

A propensity model needs the log, a world or a fit of minutes; a server has none of them. Shapes: S steps,
U users, B users of a batch, V items, K items requested, N events.
"""

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from unveil.data.interactions import Sequences
from unveil.data.slots import Slots
from unveil.errors import UnveilError
from unveil.propensity.base import PropensityModel

POPULARITY = "popularity"
#: Numbers that a table may hold: 16 MiB; and that the propensity model computes for it.
_CELLS, _COMPUTED = 1 << 22, 1 << 24
#: Users whose mean stands for all, where a propensity is personal.
_USERS = 64

Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class ExposureTable:
    """theta_SV[s, i]: the propensity of item i for a user whose next step is step_S[s]; NaN: unknown.

    `over` says what it is a mean of: of `users`, where they differ, or of `events`, where only these have propensities.
    """

    name: str
    over: str
    step_S: NDArray[np.int64]
    theta_SV: Floats

    @property
    def source(self) -> str:
        return f"{self.name}, mean over {self.over}" if self.over else self.name

    def at(self, step: int | None) -> Floats:
        """theta_V at the nearest step; None: at the last, for unknown users."""
        row = len(self.step_S) - 1 if step is None else int(np.abs(self.step_S - step).argmin())
        return np.asarray(self.theta_SV[row])

    def now(self) -> Self:
        """The last step alone, for a log that counts its steps differently."""
        return replace(self, step_S=self.step_S[-1:], theta_SV=self.theta_SV[-1:])


def next_steps(sequences: Sequences, user_B: NDArray[Any]) -> NDArray[np.int64]:
    """The step after each user's last event, at most the last there is; where there is no event, that one."""
    length_B, last = sequences.length_U[user_B], sequences.n_steps - 1
    at_B = (sequences.first_U[user_B] + length_B - 1).clip(0)
    step_B = sequences.storage.step_N[at_B].astype(np.int64) + 1 if len(sequences) else np.full(len(user_B), last)
    return np.where(length_B > 0, step_B.clip(max=last), last)


def exposure_table(propensity: PropensityModel | None, whole: Sequences, train: Sequences) -> ExposureTable | None:
    """What a propensity says of every item at the steps that come next in `whole`; or, where it is known for events
    alone, of those of `train`; or None: no training is to be lost for want of a table."""
    for ask, sequences in ((_of_steps, whole), (_of_events, train)):
        with suppress(UnveilError, NotImplementedError):
            return None if propensity is None else ask(propensity, sequences)
    return None


def _of_steps(propensity: PropensityModel, whole: Sequences) -> ExposureTable:
    user_U = np.flatnonzero(whole.length_U)
    step_U = next_steps(whole, user_U)
    step_S = np.unique(step_U) if propensity.kind == "temporal" else step_U[-1:]
    step_S = _spread(step_S, max(1, _CELLS // whole.n_items))
    near_U = np.searchsorted((step_S[1:] + step_S[:-1]) / 2, step_U)
    count = min(_USERS, max(2, _COMPUTED // (len(step_S) * whole.n_items)))
    rows = [_mean(propensity, whole, _spread(user_U[near_U == s], count), step) for s, step in enumerate(step_S)]
    personal = any(differs for _, differs in rows)
    return ExposureTable(propensity.name, "users" if personal else "", step_S, np.stack([row_V for row_V, _ in rows]))


def _mean(propensity: PropensityModel, whole: Sequences, user_B: NDArray[Any], step: int) -> tuple[Floats, bool]:
    """theta_V, the mean over these users after their last events, and whether they differ."""
    total_V, first_V, differ = np.zeros(whole.n_items), None, False
    for user in user_B.tolist():
        event = int(whole.storage.event_N[whole.first_U[user] + whole.length_U[user] - 1])
        slots = Slots(*(torch.tensor([value]) for value in (user, 0, int(step), event)))
        theta_V = propensity.of_all(slots)[0].cpu().double().numpy()
        total_V += theta_V
        first_V = theta_V if first_V is None else first_V
        differ = differ or not np.allclose(theta_V, first_V, rtol=1e-4, atol=0)
    return (total_V / len(user_B)).astype(np.float32), differ


def _of_events(propensity: PropensityModel, train: Sequences) -> ExposureTable:
    """The mean over each item's training events."""
    total_V, count_V, users = np.zeros(train.n_items), np.zeros(train.n_items), 0
    for part in train.blocks():
        columns = (part.user_N + users, part.item_N, part.step_N, part.event_N)
        theta_N = propensity(Slots(*(torch.from_numpy(np.array(column, np.int64)) for column in columns)))
        total_V += np.bincount(part.item_N, theta_N.cpu().double().numpy(), train.n_items)
        count_V += np.bincount(part.item_N, minlength=train.n_items)
        users += part.n_users
    theta_V = np.divide(total_V, count_V, out=np.full(train.n_items, np.nan), where=count_V > 0)
    return ExposureTable(propensity.name, "events", np.zeros(1, np.int64), theta_V.astype(np.float32)[None])


def _spread(values: NDArray[Any], count: int) -> NDArray[Any]:
    """At most `count` of them, evenly spaced, with the first and the last; of one, the last."""
    if len(values) <= count:
        return values
    return values[np.linspace(len(values) - 1, 0, count).round().astype(np.int64)[::-1]]
