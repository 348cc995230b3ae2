"""Results of a study in one tidy long frame: means, intervals, paired tests and shares of a gap.

The frame has a row for each condition (severity, …), arm, unit and measure: `world`, `replicate` and, where there is
only one of each, `user` are the unit; `evaluation`, `protocol`, `metric`, `k` are the measure; `value` is the figure.
Every other column but `estimator` is a condition. Shapes: N units, W worlds, R replicates.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise, product
from math import isfinite
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unveil.evaluation.statistics import Paired, bootstrap, holm, paired, ratio_interval

Floats = NDArray[np.float64]
Point = tuple[tuple[str, Any], ...]  # conditions with their values
#: What the targets of an evaluation are: the item of highest γ, or the item of the interaction that was held out.
TRUE, STANDARD = "true relevance", "standard"
#: The two ends of a gap: the loss that takes every interaction at face value, and the one that knows the relevance.
BASE, BOUND = "naive", "ideal"
#: Arms without training: what a model must beat.
BASELINES = ("random", "popularity")
#: In the report of a real log: the naive model less λ · log popularity.
CONTROL = "control"
#: Below this a p-value is called significant.
ALPHA = 0.05

UNIT = ("world", "replicate", "user")
MEASURE = ("evaluation", "protocol", "metric", "k")
#: The columns that every frame has, and their types.
SCHEMA = {
    "estimator": pl.String,
    "world": pl.Int64,
    "replicate": pl.Int64,
    "user": pl.Int64,
    "evaluation": pl.String,
    "protocol": pl.String,
    "metric": pl.String,
    "k": pl.Int64,
    "value": pl.Float64,
}


class Measure(NamedTuple):
    """What is measured: what the targets are, what they are ranked against, and the metric of their ranks."""

    evaluation: str
    protocol: str
    metric: str
    k: int = 0

    @property
    def name(self) -> str:
        return f"{self.metric}@{self.k}" if self.k else self.metric


@dataclass(frozen=True)
class Estimate:
    """A mean over n units and its 95% interval; None where there is no interval."""

    mean: float
    low: float | None
    high: float | None
    n: int

    def as_json(self) -> dict[str, float | None]:
        return {"mean": self.mean, "low": self.low, "high": self.high}


class Known(NamedTuple):
    """The arms that have a measure somewhere along a condition, and the values at which all of them have it."""

    arms: list[str]
    values: list[Any]


@dataclass(frozen=True)
class Step:
    """An arm, the next best that differs from it in some unit, and their paired test; the last has nobody below it."""

    measure: Measure
    arm: str
    below: str | None
    test: Paired | None  # its p is corrected

    @property
    def significant(self) -> bool:
        """The paper's asterisk: higher than the next best, p < 0.05 after correction."""
        return self.test is not None and verdict(self.test) == "above"


def tests_json(steps: Iterable[Step]) -> list[dict[str, Any]]:
    """The tests, for results.json."""
    return [
        {**each.measure._asdict(), "better": each.arm, "next": each.below, **vars(each.test), "sure": each.significant}
        for each in steps
        if each.test is not None
    ]


def verdict(test: Paired) -> Literal["above", "below", "level"]:
    """What a test allows to say of one arm against another."""
    return "level" if not test.p < ALPHA else "above" if test.difference > 0 else "below"


def paired_json(test: Paired) -> dict[str, Any]:
    """For results.json; an effect without bounds (all differences equal) is none."""
    return {name: value if isfinite(value) else None for name, value in vars(test).items()}


@dataclass(frozen=True, eq=False)
class Results:
    """The figures of a study. Every arm has every world and replicate.

    The units are worlds, each with the mean of its replicates (a balanced two-stage design: the interval holds the
    variance of both); with one world its replicates; with one of each users, which says nothing of another draw.
    """

    values: Mapping[Point, Mapping[tuple[str, Measure], Floats]]  # by condition; units in the order world, replicate
    worlds: int
    replicates: int

    @classmethod
    def of(cls, frame: pl.DataFrame) -> Self:
        """From the long frame; conditions, arms and measures keep the order in which they come."""
        conditions = [name for name in frame.columns if name not in SCHEMA]
        keys = [*conditions, "estimator", *MEASURE]
        values: dict[Point, dict[tuple[str, Measure], Floats]] = {}
        for key, part in frame.group_by(keys, maintain_order=True):
            *at, arm, evaluation, protocol, metric, k = key
            measured = values.setdefault(tuple(zip(conditions, at, strict=True)), {})
            measure = Measure(str(evaluation), str(protocol), str(metric), int(str(k)))
            measured[str(arm), measure] = part.sort(*UNIT, maintain_order=True)["value"].to_numpy()
        return cls(values, frame["world"].n_unique(), frame["replicate"].n_unique())

    @property
    def points(self) -> list[dict[str, Any]]:
        return [dict(point) for point in self.values]

    def along(self, name: str) -> list[Any]:
        return list(dict.fromkeys(point[name] for point in self.points))

    def known_along(self, condition: str, measure: Measure) -> Known:
        """Where a measure is known in every unit: a figure may be missing at the first values, or of some arms."""
        least, having = self.worlds * self.replicates, dict[Any, list[str]]()
        for value in self.along(condition):
            here = self.at(**{condition: value})._only
            having[value] = [arm for arm in self.trained if len(here.get((arm, measure), ())) >= least]
        arms = [arm for arm in self.trained if any(arm in known for known in having.values())]
        return Known(arms, [value for value, known in having.items() if len(known) == len(arms)])

    def at(self, **condition: Any) -> Self:
        found = {p: values for p, values in self.values.items() if condition.items() <= dict(p).items()}
        if not found:
            raise KeyError(f"no results at {condition}")
        return replace(self, values=found)

    @cached_property
    def arms(self) -> list[str]:
        return list(dict.fromkeys(arm for values in self.values.values() for arm, _ in values))

    @property
    def trained(self) -> list[str]:
        return [arm for arm in self.arms if arm not in BASELINES]

    @property
    def candidates(self) -> list[str]:
        """The trained arms that need no ground truth and are not the baseline loss."""
        return [arm for arm in self.trained if arm not in (BASE, BOUND)]

    @property
    def units(self) -> Literal["worlds", "replicates", "users"]:
        return "worlds" if self.worlds > 1 else "replicates" if self.replicates > 1 else "users"

    @cached_property
    def measures(self) -> list[Measure]:
        return [measure for arm, measure in next(iter(self.values.values())) if arm == self.arms[0]]

    @property
    def ranked(self) -> list[Measure]:
        """The measures of the targets' ranks; others are of the recommendations themselves."""
        ranked_against = ("full", "uniform", "popular")
        return [measure for measure in self.measures if measure.protocol.partition("-")[0] in ranked_against]

    @cached_property
    def protocols(self) -> list[str]:
        return list(dict.fromkeys(measure.protocol for measure in self.ranked))

    def protocol(self, kind: str) -> str:
        return next(name for name in self.protocols if name.startswith(f"{kind}-"))

    @property
    def _only(self) -> Mapping[tuple[str, Measure], Floats]:
        (values,) = self.values.values()
        return values

    def sample(self, arm: str, measure: Measure) -> Floats:
        value_N = self._only[arm, measure]
        return value_N.reshape(self.worlds, self.replicates).mean(axis=1) if self.worlds > 1 else value_N

    def by_replicate(self, arm: str, measure: Measure) -> Floats:
        value_N = self._only[arm, measure]
        return (value_N.mean(keepdims=True) if self.units == "users" else value_N).reshape(self.worlds, self.replicates)

    def estimate(self, arm: str, measure: Measure, level: float = 0.95) -> Estimate:
        """Mean over the units and the interval of Student's t; no interval where there is but one unit."""
        found = paired(value := self.sample(arm, measure), np.zeros(len(value)), level=level)
        if len(value) < 2:
            return Estimate(found.difference, None, None, 1)
        return Estimate(found.difference, float(found.low), float(found.high), found.n)

    def mean(self, arm: str, measure: Measure) -> float:
        return self.estimate(arm, measure).mean

    def order(self, measure: Measure) -> list[str]:
        """The trained arms, best mean first."""
        return sorted(self.trained, key=lambda arm: -self.mean(arm, measure))

    def difference(self, one: str, other: str, measure: Measure) -> Paired:
        """How much higher one arm is than another, unit by unit; the p-value is not corrected."""
        return paired(self.sample(one, measure), self.sample(other, measure))

    def against(self, measure: Measure, base: str = BASE) -> dict[str, Paired]:
        """Every other trained arm less the base; p-values after Holm's correction over the arms."""
        if base not in self.trained:
            return {}
        others = [arm for arm in self.trained if arm != base]
        return dict(zip(others, corrected([self.difference(arm, base, measure) for arm in others]), strict=True))

    def against_next(self, measures: Sequence[Measure]) -> list[Step]:
        """Each trained arm against the next best, best first, by measure; Holm's correction is over all of them."""
        pairs = {(m, arm): (arm, below) for m in measures for arm, below in pairwise(self.order(m))}
        tests = corrected(self.difference(*pair, m) for (m, _), pair in pairs.items())
        test_of, steps = dict(zip(pairs, tests, strict=True)), list[Step]()
        for m in measures:
            *others, last = self.order(m)
            own = [Step(m, last, None, None)]
            for arm in reversed(others):
                below = own[-1].arm
                tied = np.array_equal(self.sample(arm, m), self.sample(below, m))
                own.append(replace(own[-1], arm=arm) if tied else Step(m, arm, below, test_of[m, arm]))
            steps += reversed(own)
        return steps

    def gap_closed(self, arm: str, measure: Measure) -> Estimate | None:
        """Σ (arm − naive) / Σ (ideal − naive) over conditions, with Fieller's interval if units are paired."""
        if not {BASE, BOUND} <= set(self.arms):
            return None
        base_N, bound_N, own_N = (self._sum(each, measure) for each in (BASE, BOUND, arm))
        return gap_share(own_N - base_N, bound_N - base_N)

    def gap_by_world(self, arm: str, measure: Measure) -> list[Estimate | None]:
        """The share in each world alone, with Fieller's interval over its replicates; None where there is no gap."""
        base_WR, bound_WR, own_WR = (self.by_replicate(each, measure) for each in (BASE, BOUND, arm))
        return [gap_share(*pair) for pair in zip(own_WR - base_WR, bound_WR - base_WR, strict=True)]

    def _sum(self, arm: str, measure: Measure) -> Floats:
        """Σ over the conditions, unit by unit. Users of two conditions are no pairs: a log may have lost some."""
        every = [self.at(**point).sample(arm, measure) for point in self.points]
        if self.units == "users" and len(every) > 1:
            every = [value_C.mean(keepdims=True) for value_C in every]
        return np.asarray(np.sum(every, axis=0))


@dataclass(frozen=True, eq=False)
class RealResults(Results):
    """Results of a real log: with one replicate, intervals are bootstraps over users. Shapes: U users, M measures."""

    @cached_property
    def arms(self) -> list[str]:
        return sorted(super().arms, key=lambda arm: arm == CONTROL)

    def estimate(self, arm: str, measure: Measure, level: float = 0.95) -> Estimate:
        """Mean and interval: Student's t over replicates; with one of them, percentile bootstrap over users."""
        if self.units == "users" and measure in self.ranked:
            return self._intervals[arm, measure]
        return super().estimate(arm, measure, level)

    @cached_property
    def _intervals(self) -> dict[tuple[str, Measure], Estimate]:
        """All measures of an arm come from the same resamples of its users."""
        found = {}
        for arm in self.arms:
            value_UM = np.stack([self.sample(arm, measure) for measure in self.ranked], axis=1)
            low_M, high_M = bootstrap(value_UM, np.random.default_rng(0))
            for measure, mean, low, high in zip(self.ranked, value_UM.mean(0), low_M, high_M, strict=True):
                found[arm, measure] = Estimate(float(mean), float(low), float(high), len(value_UM))
        return found


def gap_share(own_N: Floats, gap_N: Floats) -> Estimate | None:
    """mean(own) / mean(gap) with Fieller's interval; None where the gap is not above 0."""
    gap = float(np.mean(gap_N))
    if not gap > 0:
        return None
    low, high = ratio_interval(own_N, gap_N) or (None, None)
    return Estimate(float(np.mean(own_N)) / gap, low, high, len(own_N))


def corrected(tests: Iterable[Paired]) -> list[Paired]:
    """The tests with their p-values after Holm's correction over all of them."""
    found = list(tests)
    return [replace(test, p=p) for test, p in zip(found, holm(np.array([t.p for t in found])).tolist(), strict=True)]


def frame_of(rows: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """Rows as the long frame; missing columns of the unit and the measure are filled in."""
    defaults = {"estimator": "", "world": 0, "replicate": 0, "user": None, "evaluation": "", "protocol": "", "k": 0}
    whole = [{**defaults, **row} for row in rows]
    columns = {name: [row[name] for row in whole] for name in (whole[0] if whole else SCHEMA)}
    frame = pl.DataFrame(columns, schema_overrides=SCHEMA)
    conditions = [name for name in frame.columns if name not in SCHEMA]
    return frame.select([*conditions, *SCHEMA])


def means(results: Results) -> Iterator[dict[str, Any]]:
    """A row for each condition, arm and measure: mean, low, high and the number of worlds and replicates."""
    size = {"replicates": results.replicates, "worlds": results.worlds}
    for point in results.points:
        here = results.at(**point)
        for arm, measure in product(results.arms, results.measures):
            found = here.estimate(arm, measure).as_json()
            yield {**point, "estimator": arm, **measure._asdict(), **found, **size}
