"""Calibration on a slice without exposure bias: how much of popularity to add or take away, and each item's appeal.

A slice is a small `LabelledTest`: a few users who saw every candidate, or items that were shown at random. What it
learns is one number for the scores and one offset an item, so that recommending stays as it is:

    calibrated score of i after history h = scale · f(h, i) + offset_i

Shapes: T users of the slice, C candidates, K features, G folds.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import optimize, special

from unveil.data.vocabulary import Index
from unveil.evaluation.labelled import Block, metrics
from unveil.evaluation.statistics import Paired, paired

Floats = NDArray[np.float64]

FOLDS = 5
#: Standard deviation of the prior of every coefficient around "leave the scores as they are".
_PRIOR = 1.0


@dataclass(frozen=True, eq=False)
class Slice:
    """The scores of one model for the users and candidates of a slice, and what is known of the candidates."""

    user_T: Index
    item_C: Index
    score_TC: Floats
    positive_TC: NDArray[np.bool_]
    negative_TC: NDArray[np.bool_]
    log_popularity_C: Floats

    @classmethod
    def of(cls, blocks: Sequence[Block], log_popularity_V: NDArray[Any]) -> "Slice":
        """All blocks of a test in one; users without a positive or without a negative are left out."""

        def joined(name: str) -> NDArray[Any]:
            return np.concatenate([np.asarray(getattr(block, name)) for block in blocks])

        item_C = blocks[0].column_C
        log_popularity_C = np.asarray(log_popularity_V[item_C], float)
        positive_TC, negative_TC = joined("positive_BC"), joined("negative_BC")
        score_TC = joined("scores_BC").astype(float)
        whole = cls(joined("user_B"), item_C, score_TC, positive_TC, negative_TC, log_popularity_C)
        return whole.some(np.asarray(positive_TC.any(1) & negative_TC.any(1)))

    def some(self, chosen: NDArray[Any]) -> "Slice":
        """Some of the users."""
        names = ("user_T", "score_TC", "positive_TC", "negative_TC")
        return replace(self, **{name: getattr(self, name)[chosen] for name in names})

    def metric(self, name: str, calibration: "SliceCalibration | None" = None) -> Floats:
        """A metric of each user, with the scores as they are or calibrated."""
        score_TC = self.score_TC if calibration is None else calibration(self.score_TC)
        k = int(name.partition("@")[2] or 10)
        parts = (torch.from_numpy(part) for part in (score_TC.astype(np.float32), self.positive_TC, self.negative_TC))
        return metrics(Block(self.user_T, self.item_C, *parts), [k])[1][name]


@dataclass(frozen=True, eq=False)
class Appeal:
    """λ_i, the mean of each item's share of positives, by empirical Bayes: with n_i positives among m_i users,

    n_i ~ Poisson(m_i λ_i),   λ_i ~ Gamma(mean μ_i, shape κ),   log μ_i = a + b · log popularity_i,

    so that λ̂_i = (n_i + κ) / (m_i + κ / μ_i). a, b and κ are those of greatest likelihood (n_i is negative binomial).
    """

    log_mean_C: Floats
    intercept: float
    slope: float
    shape: float

    @classmethod
    def of(cls, part: Slice) -> "Appeal":
        """Of the users of a slice."""
        n_C = part.positive_TC.sum(0).astype(float)
        m_C = n_C + part.negative_TC.sum(0)
        x_C = part.log_popularity_C
        start = np.array([np.log((n_C.sum() + 0.5) / max(m_C.sum(), 1)), 0.0, 0.0])

        def loss(theta: Floats) -> float:
            mean_C, shape = m_C * np.exp(np.clip(theta[0] + theta[1] * x_C, -30, 30)), np.exp(theta[2])
            likelihood_C = (
                special.gammaln(n_C + shape)
                - special.gammaln(shape)
                + special.xlogy(n_C, mean_C / (mean_C + shape))
                - shape * np.log1p(mean_C / shape)
            )
            return float(-likelihood_C.sum() + 0.5 * theta[1] ** 2 + 0.05 * theta[2] ** 2)

        theta = optimize.minimize(loss, start, method="L-BFGS-B", bounds=[(-30, 5), (-3, 3), (-5, 8)]).x
        prior_C, shape = np.exp(theta[0] + theta[1] * x_C), float(np.exp(theta[2]))
        mean_C = (n_C + shape) / (m_C + shape / prior_C)
        return cls(np.log(mean_C), float(theta[0]), float(theta[1]), shape)


@dataclass(frozen=True, eq=False)
class SliceCalibration:
    """What a slice taught: the scale of the scores and the offset of each candidate."""

    scale: float
    popularity: float  # β of log popularity, relative to the scores
    appeal: float  # coefficient of log λ̂, relative to the scores
    offset_C: Floats

    def __call__(self, score_TC: Floats) -> Floats:
        """Calibrated scores."""
        calibrated_TC: Floats = self.scale * score_TC + self.offset_C
        return calibrated_TC


def calibrate(part: Slice, rng: np.random.Generator, *, appeal: bool = True) -> SliceCalibration:
    """Coefficients of the scores f, of log popularity and of log λ̂ by the conditional logit

    P(i | s) ∝ exp(α f_si + β log popularity_i + γ log λ̂_i)   over the candidates of s,

    each user's positives counting 1 together, with the prior α ~ N(1, 1), β, γ ~ N(0, 1). λ̂ of a user's fold is that
    of the other folds, so that γ is not learnt from what it is to predict.
    """
    feature_TC = np.zeros(part.score_TC.shape)
    if appeal:
        fold_T = _folds(len(part.user_T), rng)
        for fold in np.unique(fold_T):
            others = part.some(fold_T != fold) if (fold_T != fold).any() else part
            feature_TC[fold_T == fold] = Appeal.of(others).log_mean_C
    alpha, beta, gamma = _conditional_logit(part, feature_TC, free=3 if appeal else 2)
    offset_C = beta * part.log_popularity_C + (gamma * Appeal.of(part).log_mean_C if appeal else 0.0)
    return SliceCalibration(alpha, beta, gamma, offset_C)


def _conditional_logit(part: Slice, appeal_TC: Floats, free: int) -> tuple[float, float, float]:
    competes_TC = part.positive_TC | part.negative_TC
    weight_TC = part.positive_TC / part.positive_TC.sum(1, keepdims=True)
    centred = [_centred(value, competes_TC) for value in (part.score_TC, part.log_popularity_C[None], appeal_TC)]
    deviation = [max(float(value[competes_TC].std()), 1e-12) for value in centred]
    feature_KTC = [value / spread for value, spread in zip(centred, deviation, strict=True)][:free]
    prior_K = np.array([deviation[0], 0.0, 0.0])[:free]  # the scores as they are
    spread_K = np.maximum(prior_K, _PRIOR)

    def loss(theta_K: Floats) -> tuple[float, Floats]:
        logit_TC = sum(theta * feature for theta, feature in zip(theta_K, feature_KTC, strict=True))
        logit_TC = np.where(competes_TC, logit_TC, -np.inf)
        log_p_TC = logit_TC - special.logsumexp(logit_TC, axis=1, keepdims=True)
        error_TC = np.exp(log_p_TC) - weight_TC
        away_K = (theta_K - prior_K) / spread_K
        gradient_K = np.array([float((error_TC * feature).sum()) for feature in feature_KTC]) + away_K / spread_K
        return float(-(weight_TC * np.where(competes_TC, log_p_TC, 0.0)).sum() + 0.5 * (away_K**2).sum()), gradient_K

    bounds = [(0.0, None)] + [(None, None)] * (free - 1)
    theta_K = optimize.minimize(loss, prior_K, jac=True, method="L-BFGS-B", bounds=bounds).x
    scaled = [float(theta / spread) for theta, spread in zip(theta_K, deviation, strict=False)]
    return scaled[0], scaled[1], scaled[2] if free > 2 else 0.0


def _centred(value: Floats, competes_TC: NDArray[np.bool_]) -> Floats:
    """Less its mean over each user's candidates; 0 elsewhere."""
    value_TC = np.broadcast_to(value, competes_TC.shape)
    mean_T1 = np.where(competes_TC, value_TC, 0.0).sum(1, keepdims=True) / competes_TC.sum(1, keepdims=True)
    centred_TC: Floats = np.where(competes_TC, value_TC - mean_T1, 0.0)
    return centred_TC


@dataclass(frozen=True, eq=False)
class CrossFitted:
    """What calibration is worth for users that it was not learnt from."""

    before_T: Floats
    after_T: Floats
    gain: Paired

    @property
    def is_better(self) -> bool:
        """Significantly, at 5%."""
        return self.gain.low > 0


Calibrator = Callable[[Slice, np.random.Generator], SliceCalibration]


def cross_fit(
    part: Slice, rng: np.random.Generator, metric: str = "NDCG@10", calibrator: Calibrator = calibrate
) -> CrossFitted:
    """Learn on all folds of users but one, measure on that one, for each of them."""
    fold_T = _folds(len(part.user_T), rng)
    before_T, after_T = part.metric(metric), np.zeros(len(fold_T))
    for fold in np.unique(fold_T):
        learnt = calibrator(part.some(fold_T != fold), rng)
        after_T[fold_T == fold] = part.some(fold_T == fold).metric(metric, learnt)
    return CrossFitted(before_T, after_T, paired(after_T, before_T))


def _folds(users: int, rng: np.random.Generator, folds: int = FOLDS) -> NDArray[np.int64]:
    """A fold for each user, all of equal size up to one."""
    fold_T: NDArray[np.int64] = rng.permutation(np.arange(users) % min(folds, users))
    return fold_T
