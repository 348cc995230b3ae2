"""The axes along which assumptions are broken, one at a time, from one base point."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from unveil.errors import UnveilError
from unveil.estimators.base import estimator
from unveil.studies.arms import TRUE_THETA, with_propensity


@dataclass(frozen=True)
class Point:
    """How logs are drawn, and what estimators are told of exposure."""

    choice: str = "rational_exposed"
    foresight: float = 0.0
    severity: float = 1.0
    propensity: str = TRUE_THETA

    def arm(self, name: str) -> str | None:
        """The arm of an estimator here; None where there is no such propensity of the kind it needs."""
        if self.propensity == TRUE_THETA or estimator(name).needs not in ("static", "temporal"):
            return name
        return with_propensity(name, self.propensity)


@dataclass(frozen=True)
class Level:
    """A point of an axis, as it is called on it."""

    label: str
    point: Point


@dataclass(frozen=True)
class Axis:
    """What is varied, which assumption that breaks, and its levels; those of a scale are joined by a line."""

    name: str
    title: str
    breaks: str
    levels: tuple[Level, ...]
    scale: bool


_WORDS = {
    "severity": ("severity p", "exposure is not too rare", True),
    "foresight": ("foresight", "exposure does not depend on relevance", True),
    "choice": ("choice", "the user takes the best of what is exposed", False),
    "propensity": ("propensities", "propensities are known", False),
}


def axes(base: Point, values: Mapping[str, Sequence[Any]]) -> tuple[Axis, ...]:
    """An axis for each field of the base point with its values; the base's own value is always among them, first.

    On a scale the levels are in order; an axis with the base alone says nothing and is left out.
    """
    found = []
    for name, given in values.items():
        title, breaks, scale = _WORDS[name]
        every = list(dict.fromkeys([getattr(base, name), *given]))
        if scale:
            every.sort()
        levels = tuple(Level(_label(name, value), replace(base, **{name: value})) for value in every)
        if len(levels) > 1:
            found.append(Axis(name, title, breaks, levels, scale))
    if not found:
        raise UnveilError("no assumption is broken", expected="two levels or more of at least one axis")
    return tuple(found)


def _label(name: str, value: Any) -> str:
    if name == "choice":
        who, _, among = str(value).partition("_")
        return f"{who}\n({among})"
    return str(value).replace(":", " ") if name == "propensity" else f"{value:g}"
