"""True propensities of a world with an error of a stated size: standard normal noise with nothing stored.

The noise of (user, step, item) is always the same: (seed, user, step) is the state of a splitmix64 generator, and the
item counts its outputs. Shapes: M slots, V items.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unveil.data.sequences import Sequences
from unveil.data.slots import Slots
from unveil.errors import NotNegative, check_ranges, refuse_unless
from unveil.propensity.base import Kind, PropensityModel, Source, indices, register
from unveil.propensity.known import Exposure, KnownStatic, KnownTemporal

Words = NDArray[np.uint64]
Normals = NDArray[np.float32]
Indices = NDArray[np.int64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
#: Cells whose noise is drawn at once, to stay in the cache; logits beyond which a propensity is as good as 0 or 1.
_CELLS, _FAR = 1 << 17, 700.0


def normals(seed: int, user_M: NDArray[Any], step_M: NDArray[Any], item: NDArray[Any]) -> Normals:
    """ε of (user, step, item): with item_M one number a slot, with item_1V one for every slot and item."""
    key_M = np.full(len(user_M), seed, np.uint64)  # the state of each slot's generator, modulo 2^64
    for index_M in (user_M, step_M):
        key_M = _mixed(key_M + _words(index_M) * _GOLDEN)
    key = key_M if item.ndim == 1 else key_M[:, None]
    return _normal(_mixed(key + _words(item) * _GOLDEN))


def _words(index: NDArray[Any]) -> Words:
    """Counted from one, so that the first does not leave the state as it is."""
    return index.astype(np.uint64) + np.uint64(1)


def _mixed(word: Words) -> Words:
    """The finaliser of splitmix64: every bit of the result depends on every bit of the word."""
    word = (word ^ (word >> np.uint64(30))) * _FIRST
    word = (word ^ (word >> np.uint64(27))) * _SECOND
    return word ^ (word >> np.uint64(31))


def _normal(word: Words) -> Normals:
    """Box and Muller: √(−2 ln u) · cos 2πv, with u in (0, 1] from the upper half of the word and v from the lower."""
    scale = np.float32(2.0**-32)
    u = ((word >> np.uint64(32)).astype(np.float32) + np.float32(0.5)) * scale
    v = word.astype(np.uint32).astype(np.float32) * scale
    normal: Normals = np.sqrt(np.float32(-2) * np.log(u)) * np.cos(np.float32(2 * np.pi) * v)
    return normal


@dataclass
class Noisy:
    """logit θ̂ = logit θ + bias + sd · ε, with ε standard normal, fixed by `seed`, user, item and step.

    An error that averages out (`sd`) and one that does not (`bias`): 1 logit is a factor of e in the odds. It is the
    same at each call, as that of a propensity model that was fitted once would be.
    """

    world: Exposure
    sd: NotNegative = 0.5
    bias: float = 0.0
    seed: int = 0

    name: ClassVar[str]
    kind: ClassVar[Kind]
    source: ClassVar[Source] = "truth"
    _true: PropensityModel = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_ranges(self, self.name)
        refuse_unless(bool(np.isfinite(self.bias)), f"{self.name}.bias", self.bias, "a number")
        refuse_unless(0 <= self.seed < 2**63, f"{self.name}.seed", self.seed, "a whole number, 0 or more")
        self._true = (KnownStatic if self.kind == "static" else KnownTemporal)(self.world)

    def fit(self, train: Sequences) -> Self:
        """Fit the true propensities; the noise needs no training."""
        self._true.fit(train)
        return self

    def __call__(self, slots: Slots) -> Tensor:
        """θ̂ of the slots' items."""
        item_M = slots.item_M.cpu().numpy()
        return self._with_error(self._true(slots), normals(self.seed, *self._keys(slots), item_M))

    def of_all(self, slots: Slots) -> Tensor:
        """θ̂ of all items, row by row of the true ones."""
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
        noisy = 1 / (1 + (1 - true) / true * torch.exp(-shift))
        return noisy.float().clamp_min(torch.finfo(torch.float32).tiny)


@register
@dataclass
class NoisyTemporal(Noisy):
    """θ_sit with an error of its own at every user, item and step."""

    name: ClassVar[str] = "noisy-temporal"
    kind: ClassVar[Kind] = "temporal"


@register
@dataclass
class NoisyStatic(Noisy):
    """θ_si, the mean over the steps, with an error of its own for every user and item."""

    name: ClassVar[str] = "noisy-static"
    kind: ClassVar[Kind] = "static"
