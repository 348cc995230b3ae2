"""A study: its space, its plan, and what came of its trials, whose configurations depend on number and seed alone."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from unveil.errors import UnveilError, check_ranges, unknown
from unveil.settings import read_toml
from unveil.training.recipe import WHEREABOUTS

if TYPE_CHECKING:
    from unveil.runs.tune.subjects import Subject

Settings = dict[str, Any]
#: Whether a model can have these settings together, e.g. a width that is a multiple of the heads.
Valid = Callable[[Settings], bool]
#: A list of values, or a range of numbers, both ends included; integers where both ends are.
Dimension = CategoricalDistribution | IntDistribution | FloatDistribution

#: Settings that a space may not hold, and why.
_BARRED = {
    "training.seed": "Replicates set it, the same in every trial; see --replicates and --seed.",
    "training.monitor": "It is what trials are compared by.",
} | {f"training.{name}": "It changes nothing that is learnt." for name in WHEREABOUTS}
_RANGE = ("low", "high", "log")
OVER = ("complete", "pruned", "failed")  # how trials end
_LISTED = 100_000  # finite spaces up to this size are drawn from without repetition


@dataclass(frozen=True)
class Space:
    """Dotted names of settings and what is tried of each."""

    name: str
    dimensions: Mapping[str, Dimension]

    @classmethod
    def read(cls, source: str) -> Self:
        path = Path(source)
        if not source.endswith(".toml") and "/" not in source:
            shipped = {each.stem: each for each in (Path(__file__).parent / "spaces").glob("*.toml")}
            if source not in shipped:
                raise unknown("space", source, [*sorted(shipped), "a TOML file"], where="--space")
            path = shipped[source]
        tree = read_toml(path, "space", "a TOML file, or the name of a built-in space")
        dimensions = {name: _dimension(value, f"{source}, {name}") for name, value in _leaves(tree)}
        if not dimensions:
            raise UnveilError("the space is empty", where=source, expected='settings, e.g. "model.width" = [16, 32]')
        for name in sorted(dimensions.keys() & _BARRED.keys()):
            raise UnveilError("this setting cannot be tuned", where=source, found=name, hint=_BARRED[name])
        return cls(path.stem, dimensions)

    @property
    def size(self) -> int | None:
        """The number of combinations, impossible ones included; None: there are ranges."""
        lists = [each.choices for each in self.dimensions.values() if isinstance(each, CategoricalDistribution)]
        return math.prod(map(len, lists)) if len(lists) == len(self.dimensions) else None

    def draw(self, rng: np.random.Generator) -> Settings:
        return {name: draw(each, rng) for name, each in self.dimensions.items()}

    def combinations(self) -> Iterator[Settings]:
        """All of a finite space, the last setting changing fastest."""
        every = product(*(values_of(each) for each in self.dimensions.values()))
        return (dict(zip(self.dimensions, each, strict=True)) for each in every)

    def plain(self) -> dict[str, Any]:
        return {
            name: list(each.choices)
            if isinstance(each, CategoricalDistribution)
            else {"low": each.low, "high": each.high, "log": each.log}
            for name, each in self.dimensions.items()
        }

    def check(self, apply: Callable[[Settings], object], tries: int = 50) -> None:
        """Every value must be possible, alone or in some combination; `apply` raises where one is not."""
        for name, value in [(name, value) for name, each in self.dimensions.items() for value in values_of(each)]:
            rng, first = np.random.default_rng(0), error_of(apply, {name: value})
            if first and all(error_of(apply, {**self.draw(rng), name: value}) for _ in range(tries)):
                where, found = f"space {self.name}, {name}", first.found
                raise UnveilError(first.problem, where=where, found=found, expected=first.expected, hint=first.hint)


def error_of(apply: Callable[[Settings], object], settings: Settings) -> UnveilError | None:
    """Why these settings cannot be had together; None: they can."""
    try:
        apply(settings)
    except UnveilError as error:
        return error
    return None


def values_of(dimension: Dimension) -> tuple[Any, ...]:
    """The values of a list, or the ends of a range."""
    if isinstance(dimension, CategoricalDistribution):
        return tuple(dimension.choices)
    return dimension.low, dimension.high


def draw(dimension: Dimension, rng: np.random.Generator) -> Any:
    """Each value of a list is as likely as the others; a range is uniform, or uniform in the logarithm."""
    if isinstance(dimension, CategoricalDistribution):
        return dimension.choices[int(rng.integers(len(dimension.choices)))]
    whole = isinstance(dimension, IntDistribution)
    reach = 0.5 if whole else 0.0  # the end values of a range of integers are as likely as those between
    low, high = dimension.low - reach, dimension.high + reach
    drawn = math.exp(rng.uniform(math.log(low), math.log(high))) if dimension.log else float(rng.uniform(low, high))
    return min(max(round(drawn) if whole else drawn, dimension.low), dimension.high)


@dataclass(frozen=True)
class Plan:
    """The space, how it is searched, and how often each combination is trained."""

    space: Space
    trials: int | None = None  # None: 30, or the whole grid
    replicates: int = 3
    sampler: Literal["random", "tpe", "grid"] = "random"
    prune: bool = False  # stop trials early whose first replicate falls behind; the paper does not

    def __post_init__(self) -> None:
        check_ranges(self, "plan", trials="at least 1", replicates="at least 1")

    def configurations(self, seed: int, valid: Valid) -> list[Settings]:
        """The settings of every trial; those of `tpe` hold until it has seen enough to guess better."""
        usual = self.trials or 30  # as in the paper
        by_grid = self.sampler == "grid"
        found = grid(self.space, self.trials, valid) if by_grid else random_search(self.space, usual, seed, valid)
        if not found:
            raise UnveilError("no model can have any of these combinations", where=f"space {self.space.name}")
        return found


def random_search(space: Space, count: int, seed: int, valid: Valid) -> list[Settings]:
    """So many possible combinations at random; of a finite space none twice, and all if there are fewer."""
    rng = np.random.default_rng([seed, 0])
    if space.size is not None and space.size <= _LISTED:
        cells = list(space.combinations())
        return list(islice(filter(valid, (cells[place] for place in rng.permutation(len(cells)))), count))
    found, missed = list[Settings](), 0
    while len(found) < count and missed < 1000:  # impossible ones in a row
        drawn = space.draw(rng)
        missed = 0 if valid(drawn) else missed + 1
        found += [] if missed else [drawn]
    return found


def grid(space: Space, count: int | None, valid: Valid) -> list[Settings]:
    """Every possible combination, in the order of the space."""
    if space.size is None:
        ranges = [name for name, each in space.plain().items() if not isinstance(each, list)]
        hint, where = "List the values to try, or use --sampler random or tpe.", f"space {space.name}"
        raise UnveilError("a grid needs lists of values", where=where, found=", ".join(ranges), hint=hint)
    cells = list(filter(valid, space.combinations()))
    if count is not None and count < len(cells):
        hint = f"Leave --trials out to try all; --sampler random tries {count} of them."
        raise UnveilError("the grid has more combinations than trials", found=f"{len(cells):,} combinations", hint=hint)
    return cells


def _leaves(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted names and what is to be tried of each: a range is no group of settings."""
    for name, value in tree.items():
        if isinstance(value, Mapping) and value and value.keys().isdisjoint(_RANGE):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _dimension(value: Any, where: str) -> Dimension:
    problem, expected = "nothing to choose from", "a list of values, or {low = …, high = …, log = false}"
    if isinstance(value, list):
        plain = all(isinstance(each, bool | int | float | str) for each in value)
        if value and plain and len(set(value)) == len(value):
            return CategoricalDistribution(value)
        problem = "the list is empty" if not value else "a value is there twice" if plain else "not a plain value"
        expected = "different numbers or texts, true or false"
    elif isinstance(value, Mapping) and value:
        given: dict[str, Any] = {"low": None, "high": None, "log": False, **value}
        low, high, log = (given[name] for name in _RANGE)
        kinds, right = {type(low), type(high)}, isinstance(log, bool) and len(given) == len(_RANGE)
        if right and kinds <= {int, float} and -math.inf < low < high < math.inf and (low > 0 or not log):
            return IntDistribution(low, high, log) if kinds == {int} else FloatDistribution(low, high, log)
        problem, expected = "not a range", "low and high with low < high, and log = true only above 0"
    raise UnveilError(problem, where=where, found=value, expected=expected)


def short(name: str) -> str:
    """A setting by its last name: model.width → width."""
    return name.rpartition(".")[2].replace("_", " ")


def value_text(value: object) -> str:
    """A value as short as it can be written and still differ from others."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def settings_text(settings: Mapping[str, Any]) -> str:
    """Settings in one line."""
    return ", ".join(f"{short(name)} {value_text(value)}" for name, value in settings.items())


@dataclass(frozen=True)
class Replicate:
    """One training of a trial: its best validation, and all of them by epoch; a factorisation has one, at its end."""

    value: float
    epoch: int | None
    seconds: float
    curve: Sequence[tuple[int, float]] = ()


@dataclass(frozen=True)
class Trial:
    """What came of one configuration. `attempts` counts how often it was begun."""

    index: int
    state: str  # waiting, running, complete, pruned or failed
    settings: Mapping[str, Any]
    value: float | None  # the mean over the replicates; None unless complete
    replicates: Sequence[Replicate] = ()
    attempts: int = 1
    why: str | None = None  # it failed

    @property
    def over(self) -> bool:
        return self.state in OVER

    @property
    def seconds(self) -> float:
        return sum(each.seconds for each in self.replicates)

    @property
    def spread(self) -> float | None:
        """Standard deviation over the replicates; None where there are fewer than two."""
        values = [each.value for each in self.replicates]
        return float(np.std(values, ddof=1)) if self.value is not None and len(values) > 1 else None

    def __str__(self) -> str:
        if self.value is None:
            return self.state if self.why is None else f"failed: {self.why}"
        return f"{self.value:.4f}" + ("" if self.spread is None else f" ±{self.spread:.4f}")


@dataclass(frozen=True, eq=False)
class Study:
    """The trials of a plan on a subject: fewer than `size` where it was stopped. `fingerprint` is the log's."""

    name: str
    plan: Plan
    subject: "Subject"
    fingerprint: str
    storage: str
    trials: Sequence[Trial]
    size: int

    @property
    def best(self) -> Trial:
        """The trial of the best mean over its replicates; the first of equals."""
        found = self.ranked()[0]
        if found.value is None:
            why = next((each.why for each in self.trials if each.why), None)
            raise UnveilError(f"all trials failed; the first: {why}", where=f"study {self.name}")
        return found

    def count(self, state: str) -> int:
        return sum(each.state == state for each in self.trials)

    def ranked(self) -> list[Trial]:
        """The best first; those without a value last, in order."""
        sign = 1 if self.subject.objective.lower else -1
        return sorted(self.trials, key=lambda each: (each.value is None, sign * (each.value or 0.0), each.index))
