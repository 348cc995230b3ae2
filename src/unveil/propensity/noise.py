"""Standard normal numbers that belong to places: the same whoever asks, in whatever order, with nothing stored.

A place (seed, user, step) is the seed of a splitmix64 generator, and the item counts its outputs. Shapes: M slots,
V items.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]
Normals = NDArray[np.float32]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_HALF = np.uint64(32)


def normals(seed: int, user_M: NDArray[Any], step_M: NDArray[Any], item: NDArray[Any]) -> Normals:
    """ε of (user, step, item): with item_M one number a slot, with item_1V one for every slot and item."""
    key_M = stream_keys(seed, user_M, step_M)
    key = key_M if item.ndim == 1 else key_M[:, None]
    return _normal(_mixed(key + _words(item) * _GOLDEN))


def stream_keys(seed: int, user_M: NDArray[Any], step_M: NDArray[Any]) -> Words:
    """The state of each slot's own generator. All arithmetic is modulo 2^64, on purpose."""
    key_M = np.full(len(user_M), seed, np.uint64)
    for index_M in (user_M, step_M):
        key_M = _mixed(key_M + _words(index_M) * _GOLDEN)
    return key_M


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
    u = ((word >> _HALF).astype(np.float32) + np.float32(0.5)) * scale
    v = word.astype(np.uint32).astype(np.float32) * scale
    normal: Normals = np.sqrt(np.float32(-2) * np.log(u)) * np.cos(np.float32(2 * np.pi) * v)
    return normal
