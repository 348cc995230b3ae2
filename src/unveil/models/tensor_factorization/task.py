"""Observed (user, item, step, value) tuples, and their parts. Shapes: N tuples, U users, V items, T steps."""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from unveil.errors import UnveilError
from unveil.propensity.impression_pairs import auc as weighted_auc

Index = NDArray[np.int64]
Values = NDArray[np.float64]

FEWEST = 10  # tuples that can be split 80/10/10


@dataclass(frozen=True, eq=False)
class Tuples:
    """Observed values, and the size of the cube."""

    user_N: Index
    item_N: Index
    step_N: Index
    value_N: Values
    shape: tuple[int, int, int]  # users, items, steps

    def __len__(self) -> int:
        return len(self.user_N)

    @property
    def sides(self) -> tuple[Index, Index, Index]:
        return self.user_N, self.item_N, self.step_N

    @property
    def key_N(self) -> Index:
        """The flat index of each tuple in the cube."""
        _, items, steps = self.shape
        return (self.user_N * items + self.item_N) * steps + self.step_N

    def where(self, rows: NDArray[Any]) -> Self:
        user_N, item_N, step_N = (side_N[rows] for side_N in self.sides)
        return type(self)(user_N, item_N, step_N, self.value_N[rows], self.shape)

    def with_values(self, value: float) -> Self:
        return replace(self, value_N=np.full(len(self), value))

    def and_also(self, other: "Tuples") -> Self:
        user_N, item_N, step_N = map(np.concatenate, zip(self.sides, other.sides, strict=True))
        return type(self)(user_N, item_N, step_N, np.concatenate([self.value_N, other.value_N]), self.shape)


class Parts(NamedTuple):
    """Tuples to learn from, to choose by, and to report on."""

    train: Tuples
    valid: Tuples
    test: Tuples


def split(tuples: Tuples, rng: np.random.Generator) -> Parts:
    """80 / 10 / 10 at random, as in the paper."""
    if len(tuples) < FEWEST:
        raise UnveilError(
            "too few ratings to split 80/10/10",
            found=len(tuples),
            expected=f"at least {FEWEST}",
            hint="Use a longer log, or lower --min-item, --min-user and --min-rating.",
        )
    tenth = len(tuples) // 10
    shuffled = rng.permutation(len(tuples))
    return Parts(*(tuples.where(np.sort(rows)) for rows in np.split(shuffled, [-2 * tenth, -tenth])))


Where = Literal["slots", "anywhere"]  # negatives: at the users and steps of the positives, or anywhere in the cube
_PATIENCE = 50  # rounds until negatives leave a slot whose items may all be interactions


@dataclass(frozen=True, eq=False)
class Negatives:
    """Draws `each` negatives for every positive; none is ever a tuple of `interacted`."""

    interacted: Tuples
    each: int = 3
    where: Where = "slots"

    def __post_init__(self) -> None:
        others = self.interacted.shape[1] - 1
        if not 0 < self.each <= others:
            raise UnveilError(
                "more negatives than items",
                found=self.each,
                expected=f"1 to {others} for each positive: the items less the positive",
                hint="Pass a smaller --negatives, or use a log with more items.",
            )
        if len(self._observed) == np.prod(self.interacted.shape):
            raise UnveilError("every user met every item at every step: there is nothing that was not exposed")

    def beside(self, positives: Tuples, rng: np.random.Generator) -> Tuples:
        return positives.with_values(1).and_also(self.draw(positives, rng))

    def draw(self, positives: Tuples, rng: np.random.Generator) -> Tuples:
        """Negatives of value 0; those that hit an interaction are drawn again."""
        slots = positives.where(np.repeat(np.arange(len(positives)), self.each))
        drawn = self._moved(slots, np.ones(len(slots), bool), self.where, rng)
        for nth in count():
            place_M = np.searchsorted(self._observed, drawn.key_N).clip(max=len(self._observed) - 1)
            if not (hit_M := self._observed[place_M] == drawn.key_N).any():
                break
            drawn = self._moved(drawn, hit_M, self.where if nth < _PATIENCE else "anywhere", rng)
        return drawn.with_values(0)

    @staticmethod
    def _moved(tuples: Tuples, move_M: NDArray[np.bool_], where: Where, rng: np.random.Generator) -> Tuples:
        moved = [side.copy() for side in tuples.sides]
        for side in (1,) if where == "slots" else (0, 1, 2):
            moved[side][move_M] = rng.integers(0, tuples.shape[side], int(move_M.sum()))
        return Tuples(moved[0], moved[1], moved[2], tuples.value_N, tuples.shape)

    @cached_property
    def _observed(self) -> Index:
        return np.unique(self.interacted.key_N)


def mse(predicted_N: NDArray[Any], value_N: NDArray[Any]) -> float:
    """Mean squared error: (1/N) Σ_n (ŷ_n − y_n)²."""
    return float(np.mean((np.asarray(predicted_N, np.float64) - value_N) ** 2))


def auc(predicted_N: NDArray[Any], value_N: NDArray[Any]) -> float:
    """P(a positive is ranked above a negative), ties counting half: the area under the ROC curve."""
    return weighted_auc(np.asarray(predicted_N), np.asarray(value_N) > 0, np.ones(len(predicted_N)))


_TERMS = 16  # drawn; the others enter by their mean, without 0.2% of the standard deviation
_BLOCK = 1 << 14  # within the processor's cache


def polya_gamma(tilt_N: Values, rng: np.random.Generator) -> Values:
    """ω_n ~ PG(1, c_n) = (1/2π²) Σ_j E_j / ((j − ½)² + c_n²/4π²), with E_j exponential of mean one."""
    blocks = (_drawn(tilt_N[at : at + _BLOCK], rng) for at in range(0, len(tilt_N), _BLOCK))
    return np.concatenate([np.zeros(0), *blocks])


def mean(tilt_N: Values) -> Values:
    """E[ω] = tanh(c/2) / 2c, and ¼ at c = 0."""
    small_N = np.abs(tilt_N) < 1e-4
    safe_N = np.where(small_N, 1.0, tilt_N)
    return np.asarray(np.where(small_N, 0.25, np.tanh(safe_N / 2) / (2 * safe_N)))


def _drawn(tilt_N: Values, rng: np.random.Generator) -> Values:
    """The mean, and each drawn term's deviation from its own."""
    square_N = ((tilt_N / (2 * np.pi)) ** 2).astype(np.float32)
    apart_N = np.zeros(len(tilt_N), np.float32)
    for term in range(_TERMS):
        apart_N += (rng.standard_exponential(len(tilt_N), np.float32) - 1) / (square_N + np.float32((term + 0.5) ** 2))
    return np.asarray(mean(tilt_N) + apart_N / (2 * np.pi**2))


@dataclass(frozen=True)
class Normal:
    """y ~ N(ψ, 1/α); the precision α ~ Gamma(1, 1) is drawn anew given the residuals."""

    def centre(self, value_N: Values) -> float:
        return float(value_N.mean())

    def gaussian(self, value_N: Values, logit_N: Values, rng: np.random.Generator) -> tuple[Values, Values]:
        """α | rest ~ Gamma(1 + N/2, 1 + ½ Σ (y − ψ)²); the values are themselves."""
        residual = float(((value_N - logit_N) ** 2).sum())
        precision = rng.gamma(1 + len(value_N) / 2, 1 / (1 + residual / 2))
        return value_N, np.full(len(value_N), precision)

    def predicted(self, logit_N: Values) -> Values:
        return logit_N


@dataclass(frozen=True)
class Bernoulli:
    """y ~ Ber(σ(ψ)), made Gaussian by Pólya–Gamma variables."""

    def centre(self, value_N: Values) -> float:
        """log(ȳ / (1 − ȳ))."""
        share = float(value_N.mean())
        return float(np.log(share / (1 - share)))

    def gaussian(self, value_N: Values, logit_N: Values, rng: np.random.Generator) -> tuple[Values, Values]:
        """ω | rest ~ PG(1, ψ); y weighs like (y − ½)/ω observed with precision ω."""
        precision_N = polya_gamma(logit_N, rng)
        return (value_N - 0.5) / precision_N, precision_N

    def predicted(self, logit_N: Values) -> Values:
        return np.asarray(expit(logit_N))


#: P(y | ψ): the best constant ψ (`centre`), E[y | ψ] (`predicted`), and values and precisions of the Gaussian
#: observations of ψ that the conditionals of the factors need (`gaussian`).
Likelihood = Normal | Bernoulli
Metric = Literal["MSE", "AUC"]


@dataclass(frozen=True, eq=False)
class Task:
    """Parts of the tuples, their likelihood, and the metric.

    `negatives` are drawn with the positives of each epoch; those of the validation and test parts are fixed.
    """

    name: Literal["relevance", "exposure"]
    parts: Parts
    likelihood: Likelihood
    metric: Metric
    negatives: Negatives | None = None
    redraw: bool = True

    @classmethod
    def of_ratings(cls, parts: Parts) -> "Task":
        return cls("relevance", parts, Normal(), "MSE")

    @classmethod
    def of_exposure(
        cls, parts: Parts, negatives: Negatives, rng: np.random.Generator, *, redraw: bool = True
    ) -> "Task":
        """Interactions against sampled negatives, which are drawn once in the training part too unless `redraw`."""
        train, valid, test = (negatives.beside(part, rng) for part in parts)
        kept = Parts(parts.train.with_values(1) if redraw else train, valid, test)
        return cls("exposure", kept, Bernoulli(), "AUC", negatives, redraw)

    def epoch(self, rng: np.random.Generator) -> Tuples:
        if self.negatives is None or not self.redraw:
            return self.parts.train
        return self.negatives.beside(self.parts.train, rng)

    @property
    def size(self) -> int:
        each = self.negatives.each if self.negatives is not None and self.redraw else 0
        return (1 + each) * len(self.parts.train)

    def score(self, predicted_N: NDArray[np.float64], tuples: Tuples) -> float:
        return (mse if self.metric == "MSE" else auc)(predicted_N, tuples.value_N)

    def loss(self, predicted_N: NDArray[np.float64], tuples: Tuples) -> float:
        score = self.score(predicted_N, tuples)
        return score if self.metric == "MSE" else 1 - score
