"""Clips that are shares of the events, such as 5%: numbers only once a log is known.

A clip of 5% bounds the weights of the 5% of the training events least exposed.
"""

from collections.abc import Mapping
from typing import Any

from unveil.errors import UnveilError

CLIP = "clip"


def share_of(clip: object, where: str = f"estimator.{CLIP}") -> float | None:
    """The share that a clip such as 5% is; None where it is none, but a number, say. A share beyond all is refused."""
    if not isinstance(clip, str) or not clip.endswith("%"):
        return None
    try:
        share = float(clip.removesuffix("%")) / 100
    except ValueError:
        share = -1.0
    if not 0 < share < 1:
        expected = "a share of the events above 0% and below 100%, such as 5%"
        raise UnveilError("not a valid value", where=where, found=clip, expected=expected)
    return share


def settled(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of an estimator that no log is needed for: all but a clip that is a share."""
    return {name: value for name, value in options.items() if name != CLIP or share_of(value) is None}
