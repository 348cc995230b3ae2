"""Propensities that are known: those of a simulated world, exact or with an error, and those that a log records.

Shapes: N rows of the log, M slots, B some users or slots, U users, V items.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unveil.data.interactions import Sequences, rows_in_words
from unveil.data.slots import Slots
from unveil.errors import NotNegative, UnveilError, check_range, check_ranges
from unveil.propensity.base import Kind, OfEvents, PropensityModel, Source, as_theta, both_kinds, indices, register

_BLOCK = 256  # Users whose steps are averaged at a time


class TrueWorld(Protocol):
    """A world whose exposure θ and relevance γ are known: of every item (…_BV) or, with `_of`, of one a slot (…_M)."""

    @property
    def n_users(self) -> int: ...
    @property
    def n_items(self) -> int: ...
    @property
    def n_steps(self) -> int: ...

    def exposure(self, user_B: NDArray[Any], step_B: NDArray[Any]) -> NDArray[np.float32]: ...
    def exposure_of(self, user_M: NDArray[Any], item_M: NDArray[Any], step_M: NDArray[Any]) -> NDArray[np.float32]: ...
    def relevance(self, user_B: NDArray[Any], step_B: NDArray[Any]) -> NDArray[np.float32]: ...
    def relevance_of(self, user_M: NDArray[Any], item_M: NDArray[Any], step_M: NDArray[Any]) -> NDArray[np.float32]: ...

    def static_exposure(self, user_B: NDArray[Any]) -> NDArray[np.float32]:
        """θ_BV averaged over all steps."""

    def ideal_target(self, user_B: NDArray[Any], step_B: NDArray[Any]) -> NDArray[np.int64]:
        """argmax_i γ_sit: the item of highest γ at each slot."""


@dataclass
class _OfWorld:
    world: TrueWorld

    source: ClassVar[Source] = "truth"

    def fit(self, train: Sequences) -> Self:
        return self


@register
@dataclass
class KnownTemporal(_OfWorld):
    """θ_sit itself. The users, items and steps of the log are those of the world."""

    name: ClassVar[str] = "known-temporal"
    kind: ClassVar[Kind] = "temporal"

    def __call__(self, slots: Slots) -> Tensor:
        return as_theta(self.world.exposure_of(*indices(slots)), slots)

    def of_all(self, slots: Slots) -> Tensor:
        user_M, _, step_M = indices(slots)
        return as_theta(self.world.exposure(user_M, step_M), slots)


@register
@dataclass
class KnownStatic(_OfWorld):
    """θ_si = (1/T) Σ_t θ_sit (the paper's section 5.1.3): averaged once, then kept."""

    name: ClassVar[str] = "known-static"
    kind: ClassVar[Kind] = "static"

    @cached_property
    def _theta_UV(self) -> NDArray[np.float32]:
        theta_UV = np.empty((self.world.n_users, self.world.n_items), np.float32)
        for user_B in np.array_split(np.arange(len(theta_UV)), -(-len(theta_UV) // _BLOCK)):
            theta_UV[user_B] = self.world.static_exposure(user_B)
        return theta_UV

    def __call__(self, slots: Slots) -> Tensor:
        user_M, item_M, _ = indices(slots)
        return as_theta(self._theta_UV[user_M, item_M], slots)

    def of_all(self, slots: Slots) -> Tensor:
        return as_theta(self._theta_UV[indices(slots)[0]], slots)


@register
@dataclass
class Logged(OfEvents):
    """θ of each event as its own row of the log gives it; the log does not record that of other items."""

    propensity_N: NDArray[Any]

    name: ClassVar[str] = "logged"
    kind: ClassVar[Kind] = "temporal"
    source: ClassVar[Source] = "logged"
    records: ClassVar[str] = "propensity"

    def fit(self, train: Sequences) -> Self:
        theta_N = self.propensity_N[train.event_N]
        bad_N = ~((theta_N > 0) & (theta_N <= 1))
        if bad_N.any():
            where, found = rows_in_words(train.event_N[bad_N], "training event"), float(theta_N[bad_N][0])
            problem, expected = "the log has propensities outside (0, 1]", "a number above 0, at most 1"
            raise UnveilError(problem, where=where, found=found, expected=expected)
        return self

    def __call__(self, slots: Slots) -> Tensor:
        return torch.from_numpy(self.propensity_N[self.rows(slots)].astype(np.float32)).to(slots.item_M.device)


Words = NDArray[np.uint64]
Normals = NDArray[np.float32]
Indices = NDArray[np.int64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
#: Cells whose noise is drawn at once, to stay in the cache; logits beyond which a propensity is as good as 0 or 1.
_CELLS, _FAR = 1 << 17, 700.0


def normals(seed: int, user_M: NDArray[Any], step_M: NDArray[Any], item: NDArray[Any]) -> Normals:
    """ε of (user, step, item), standard normal and always the same: with item_M one a slot, with item_1V one an item.

    Nothing is stored: (seed, user, step) is the state of a splitmix64 generator, and the item counts its outputs.
    """
    key_M = np.full(len(user_M), seed, np.uint64)  # the state of each slot's generator, modulo 2^64
    for index_M in (user_M, step_M):
        key_M = _mixed(key_M + _words(index_M) * _GOLDEN)
    key = key_M if item.ndim == 1 else key_M[:, None]
    word, scale = _mixed(key + _words(item) * _GOLDEN), np.float32(2.0**-32)
    # Box and Muller: √(−2 ln u) · cos 2πv, with u in (0, 1] from the upper half of the word and v from the lower.
    u = ((word >> np.uint64(32)).astype(np.float32) + np.float32(0.5)) * scale
    v = word.astype(np.uint32).astype(np.float32) * scale
    normal: Normals = np.sqrt(np.float32(-2) * np.log(u)) * np.cos(np.float32(2 * np.pi) * v)
    return normal


def _words(index: NDArray[Any]) -> Words:
    """Counted from one, so that the first does not leave the state as it is."""
    return index.astype(np.uint64) + np.uint64(1)


def splitmix(word: Words) -> Words:
    """The first output of splitmix64 from these states: every bit of it depends on every bit of the state."""
    return _mixed(word + _GOLDEN)


def _mixed(word: Words) -> Words:
    word = (word ^ (word >> np.uint64(30))) * _FIRST
    word = (word ^ (word >> np.uint64(27))) * _SECOND
    return word ^ (word >> np.uint64(31))


@dataclass
class Noisy(_OfWorld):
    """logit θ̂ = logit θ + bias + sd · ε, with ε standard normal, fixed by `seed`, user, item and (if temporal) step.

    An error that averages out (`sd`) and one that does not (`bias`): 1 logit is a factor of e in the odds.
    """

    sd: NotNegative = 0.5
    bias: float = 0.0
    seed: int = 0

    name: ClassVar[str]
    kind: ClassVar[Kind]
    _true: PropensityModel = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_ranges(self, self.name)
        check_range(bool(np.isfinite(self.bias)), f"{self.name}.bias", self.bias, "a number")
        check_range(0 <= self.seed < 2**63, f"{self.name}.seed", self.seed, "a whole number, 0 or more")
        self._true = (KnownStatic if self.kind == "static" else KnownTemporal)(self.world)

    def __call__(self, slots: Slots) -> Tensor:
        return self._with_error(self._true(slots), normals(self.seed, *self._keys(slots), slots.item_M.cpu().numpy()))

    def of_all(self, slots: Slots) -> Tensor:
        theta_MV = self._true.of_all(slots).clone()
        item_1V = np.arange(theta_MV.shape[1])[None]
        rows = max(1, _CELLS // theta_MV.shape[1])
        for start in range(0, len(slots), rows):
            noise_BV = normals(self.seed, *self._keys(slots.part(start, start + rows)), item_1V)
            theta_MV[start : start + rows] = self._with_error(theta_MV[start : start + rows], noise_BV)
        return theta_MV

    def _keys(self, slots: Slots) -> tuple[Indices, Indices]:
        user_M, _, step_M = indices(slots)
        return user_M, np.zeros_like(step_M) if self.kind == "static" else step_M

    def _with_error(self, theta: Tensor, noise: Normals) -> Tensor:
        """θ̂ = 1 / (1 + (1 − θ)/θ · exp −(bias + sd · ε)); a θ of 1 stays 1."""
        shift = (torch.from_numpy(noise).to(theta.device, torch.float64) * self.sd + self.bias).clamp(-_FAR, _FAR)
        true = theta.double()
        return (1 / (1 + (1 - true) / true * torch.exp(-shift))).float().clamp_min(torch.finfo(torch.float32).tiny)


NoisyStatic, NoisyTemporal = both_kinds("noisy", Noisy)
