"""A search space: which settings are tried, which values of each, and which combinations the trials have.

Which combination trial i has depends on its number and the seed alone: no matter who works on it, and in which order.
"""

import math
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from itertools import islice, product
from pathlib import Path
from typing import Any, Self

import numpy as np

from unveil.errors import UnveilError, unknown
from unveil.settings import read_toml
from unveil.training.recipe import WHEREABOUTS

Value = bool | int | float | str
Settings = dict[str, Value]
#: Whether a model can have these settings together, e.g. a width that is a multiple of the heads.
Valid = Callable[[Settings], bool]

#: Settings that a space may not hold, and why.
_BARRED = {
    "training.seed": "Replicates set it, the same in every trial; see --replicates and --seed.",
    "training.monitor": "It is what trials are compared by.",
} | {f"training.{name}": "It changes nothing that is learnt." for name in WHEREABOUTS}
_RANGE = {"low", "high", "log"}
#: Finite spaces up to this size are drawn from without repetition.
_LISTED = 100_000
#: Impossible combinations in a row, before we say that there are no others.
_TRIES = 1000


@dataclass(frozen=True)
class Choice:
    """One of several values."""

    values: tuple[Value, ...]

    def draw(self, rng: np.random.Generator) -> Value:
        """Each value is as likely as the others."""
        return self.values[int(rng.integers(len(self.values)))]

    def plain(self) -> object:
        """As in the TOML file."""
        return list(self.values)


@dataclass(frozen=True)
class Range:
    """Any number from `low` to `high`, both included; integers where both ends are; `log`: uniform in the logarithm."""

    low: float
    high: float
    log: bool = False

    @property
    def whole(self) -> bool:
        """Whether only integers are meant."""
        return isinstance(self.low, int) and isinstance(self.high, int)

    def draw(self, rng: np.random.Generator) -> Value:
        """Uniform, or uniform in the logarithm."""
        reach = 0.5 if self.whole else 0.0  # the end values of a range of integers are as likely as those between
        low, high = self.low - reach, self.high + reach
        drawn = math.exp(rng.uniform(math.log(low), math.log(high))) if self.log else float(rng.uniform(low, high))
        return min(max(round(drawn), int(self.low)), int(self.high)) if self.whole else drawn

    def plain(self) -> object:
        """As in the TOML file."""
        return {"low": self.low, "high": self.high, "log": self.log}


Dimension = Choice | Range


@dataclass(frozen=True)
class Space:
    """Dotted names of settings and what is tried of each."""

    name: str
    dimensions: Mapping[str, Dimension]

    @classmethod
    def read(cls, source: str) -> Self:
        """A TOML file, or one that ships with the package, by its name."""
        if source.endswith(".toml") or "/" in source:
            tree = read_toml(Path(source), "space", "a TOML file, or the name of a ready space")
            return cls(Path(source).stem, _dimensions(tree, source))
        shipped = {path.name.removesuffix(".toml"): path for path in (files("unveil.runs.tune") / "spaces").iterdir()}
        if source not in shipped:
            raise unknown("space", source, [*sorted(shipped), "a TOML file"], where="--space")
        return cls(source, _dimensions(tomllib.loads(shipped[source].read_text(encoding="utf-8")), source))

    @property
    def size(self) -> int | None:
        """The number of combinations, impossible ones included; None: there are ranges."""
        values = [len(each.values) for each in self.dimensions.values() if isinstance(each, Choice)]
        return math.prod(values) if len(values) == len(self.dimensions) else None

    def draw(self, rng: np.random.Generator) -> Settings:
        """One combination, each setting on its own."""
        return {name: each.draw(rng) for name, each in self.dimensions.items()}

    def combinations(self) -> Iterator[Settings]:
        """All of a finite space, the last setting changing fastest."""
        values = [each.values for each in self.dimensions.values() if isinstance(each, Choice)]
        return (dict(zip(self.dimensions, each, strict=True)) for each in product(*values))

    def plain(self) -> dict[str, Any]:
        """As in the TOML file."""
        return {name: each.plain() for name, each in self.dimensions.items()}

    def check(self, apply: Callable[[Settings], object]) -> None:
        """Every value must be possible in some combination; `apply` raises where one is not."""
        for name, each in self.dimensions.items():
            for value in each.values if isinstance(each, Choice) else (each.low, each.high):
                self._check(name, value, apply)

    def _check(self, name: str, value: Value, apply: Callable[[Settings], object], tries: int = 50) -> None:
        rng = np.random.default_rng(0)
        first: UnveilError | None = None
        for _ in range(tries):
            try:
                apply({**self.draw(rng), name: value} if first else {name: value})
                return
            except UnveilError as error:
                first = first or error
        assert first is not None
        where = f"space {self.name}, {name}"
        raise UnveilError(first.problem, where=where, found=first.found, expected=first.expected, hint=first.hint)


def random_settings(space: Space, count: int, seed: int, valid: Valid) -> list[Settings]:
    """So many combinations at random, impossible ones drawn again.

    No combination of a finite space is drawn twice; where it has fewer than `count`, all of them are given.
    """
    rng = np.random.default_rng([seed, 0])
    drawn: Iterable[Settings] = _endless(space, rng, valid)
    if space.size is not None and space.size <= _LISTED:
        cells = list(space.combinations())
        drawn = filter(valid, (cells[place] for place in rng.permutation(len(cells))))
    return _some(list(islice(drawn, count)), space)


def grid_settings(space: Space, count: int | None, valid: Valid) -> list[Settings]:
    """Every possible combination, in the order of the space."""
    if ranges := [name for name, each in space.dimensions.items() if isinstance(each, Range)]:
        hint, where = "List the values to try, or use --sampler random or tpe.", f"space {space.name}"
        raise UnveilError("a grid needs lists of values", where=where, found=", ".join(ranges), hint=hint)
    cells = _some([each for each in space.combinations() if valid(each)], space)
    if count is not None and count < len(cells):
        hint = f"Leave --trials out to try all; --sampler random tries {count} of them."
        raise UnveilError("the grid has more combinations than trials", found=f"{len(cells):,} combinations", hint=hint)
    return cells


def _endless(space: Space, rng: np.random.Generator, valid: Valid) -> Iterator[Settings]:
    missed = 0
    while missed < _TRIES:
        drawn = space.draw(rng)
        missed = 0 if valid(drawn) else missed + 1
        if not missed:
            yield drawn


def _some(found: list[Settings], space: Space) -> list[Settings]:
    if not found:
        raise UnveilError("no model can have any of these combinations", where=f"space {space.name}")
    return found


def _dimensions(tree: Mapping[str, Any], where: str) -> dict[str, Dimension]:
    found = dict(_each(tree, where))
    if not found:
        raise UnveilError("the space is empty", where=where, expected='settings, e.g. "model.width" = [16, 32]')
    for name in sorted(found.keys() & _BARRED.keys()):
        raise UnveilError("this setting cannot be tuned", where=where, found=name, hint=_BARRED[name])
    return found


def _each(tree: Mapping[str, Any], where: str, prefix: str = "") -> Iterator[tuple[str, Dimension]]:
    for key, value in tree.items():
        name = f"{prefix}{key}"
        if isinstance(value, list):
            yield name, _choice(value, f"{where}, {name}")
        elif isinstance(value, Mapping) and value.keys() & _RANGE:
            yield name, _range(value, f"{where}, {name}")
        elif isinstance(value, Mapping) and value:
            yield from _each(value, where, f"{name}.")
        else:
            expected = "a list of values, or {low = …, high = …, log = false}"
            raise UnveilError("nothing to choose from", where=f"{where}, {name}", found=value, expected=expected)


def _choice(values: list[Any], where: str) -> Choice:
    if not values:
        raise UnveilError("the list is empty", where=where, expected="one value at least")
    for value in values:
        if not isinstance(value, bool | int | float | str):
            raise UnveilError("not a plain value", where=where, found=value, expected="a number, a text, true or false")
    if len(set(values)) < len(values):
        raise UnveilError("a value is there twice", where=where, found=values)
    return Choice(tuple(values))


def _range(given: Mapping[str, Any], where: str) -> Range:
    low: Any = given.get("low")
    high: Any = given.get("high")
    log = given.get("log", False)
    numbers = all(isinstance(end, int | float) and not isinstance(end, bool) for end in (low, high))
    right = numbers and isinstance(log, bool) and not set(given) - _RANGE
    if not right or not -math.inf < low < high < math.inf or (log and low <= 0):
        expected = "low and high with low < high, and log = true only above 0"
        raise UnveilError("not a range", where=where, found=dict(given), expected=expected)
    return Range(low, high, log)
