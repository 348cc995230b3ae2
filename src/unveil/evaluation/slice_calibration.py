"""Calibration on a slice without exposure bias: how much of popularity to add or take away, and each item's appeal.

A slice is a small `LabelledTest`: a few users who saw every candidate, or clicks on items that were shown at random.
What is learnt is one factor for the scores and one offset an item, so that recommending stays as it is:

    calibrated score of i after history h = scale · f(h, i) + offset_i

Shapes: T users of the slice, C candidates, V items, P features of items, K features of a choice, D width of a
network, N candidates to choose from (a run and a recipe each).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import optimize, sparse, special
from scipy.sparse import linalg

from unveil.data.indexing import Index
from unveil.data.interactions import Sequences
from unveil.evaluation.labelled import Block, metrics
from unveil.evaluation.statistics import Paired, paired

Floats = NDArray[np.float64]

FOLDS = 5
#: What may go into the calibrated score. `as it is` is the order of the model alone, `same for all` leaves it out.
RECIPES: Mapping[str, tuple[str, ...]] = {
    "as it is": (),
    "popularity": ("score", "popularity"),
    "appeal": ("score", "popularity", "appeal"),
    "appeal of similar items": ("score", "popularity", "similar"),
    "same for all": ("popularity", "appeal"),
}
#: Standard deviation of the prior of every coefficient around "leave the scores as they are".
_PRIOR = 1.0
#: A user with n positives counts 1 / (n + 5) a positive: who likes everything does not outvote the others.
_COUNT = 5.0
#: Where the model is left out, its scores have this share of the offsets' deviation: they decide between near equals.
_TIES = 1e-3
#: Cells of users and candidates that coefficients are learnt from, about.
_CELLS = 2**19


def item_features(sequences: Sequences) -> Floats:
    """feature_VP: log popularity Σ_s c_si, and log balanced popularity Σ_s c_si / (n_s + 5)^1.5, standardised.

    c_si: how often s chose i; n_s: all that s chose. Active users are shown, and choose, more of everything; in the
    second sum they do not outvote the others. Both sums are smoothed by a hundredth of their mean.
    """
    weight_N = (sequences.length_U[sequences.user_N] + _COUNT) ** -1.5
    count_VP = np.stack([sequences.count_V, np.bincount(sequences.item_N, weight_N, sequences.n_items)], 1)
    feature_VP = np.log(count_VP + 0.01 * count_VP.mean(0))
    standard_VP: Floats = (feature_VP - feature_VP.mean(0)) / np.maximum(feature_VP.std(0), 1e-9)
    return standard_VP


def spectral_features(user_N: Index, item_N: Index, n_users: int, n_items: int, width: int = 32) -> Floats:
    """`vector_features` of the right singular vectors of x_si / √(n_s n_i): x_si = 1 where a row has both, n its sums.

    Items that were shown to, or chosen by, the same users are near each other, however popular they are.
    """
    x_UV = sparse.csr_matrix((np.ones(len(user_N)), (user_N, item_N)), shape=(n_users, n_items))
    x_UV.data[:] = 1
    by_U, by_V = (sparse.diags(np.maximum(np.asarray(x_UV.sum(axis)).ravel(), 1) ** -0.5) for axis in (1, 0))
    start = np.random.default_rng(0).normal(size=min(x_UV.shape))
    vector_DV = linalg.svds(by_U @ x_UV @ by_V, min(width, min(x_UV.shape) - 1), v0=start)[2]
    return vector_features(vector_DV.T)


def vector_features(vector_VD: NDArray[Any]) -> Floats:
    """Directions of the items' vectors, standardised; all columns together have variance 1."""
    unit_VD = vector_VD / np.maximum(np.linalg.norm(vector_VD, axis=1, keepdims=True), 1e-9)
    deviation_D = np.maximum(unit_VD.std(0), 1e-9) * np.sqrt(unit_VD.shape[1])
    standard_VD: Floats = (unit_VD - unit_VD.mean(0)) / deviation_D
    return standard_VD


@dataclass(frozen=True, eq=False)
class Slice:
    """The scores of one model for the users and candidates of a slice, and what the log says of all items."""

    user_T: Index
    item_C: Index
    score_TC: Floats
    positive_TC: NDArray[np.bool_]
    negative_TC: NDArray[np.bool_]
    feature_VP: Floats
    vector_VD: Floats | None = None  # `spectral_features`, of what was shown or of what was chosen

    @classmethod
    def of(cls, blocks: Sequence[Block], feature_VP: Floats, vector_VD: Floats | None = None) -> "Slice":
        """All blocks of a test in one; users without a positive or without a negative are left out."""

        def joined(name: str) -> NDArray[Any]:
            return np.concatenate([np.asarray(getattr(block, name)) for block in blocks])

        positive_TC, negative_TC = joined("positive_BC"), joined("negative_BC")
        score_TC = joined("scores_BC").astype(float)
        whole = cls(joined("user_B"), blocks[0].column_C, score_TC, positive_TC, negative_TC, feature_VP, vector_VD)
        return whole.some(np.asarray(positive_TC.any(1) & negative_TC.any(1)))

    def __len__(self) -> int:
        return len(self.user_T)

    def some(self, chosen: NDArray[Any]) -> "Slice":
        """Some of the users."""
        names = ("user_T", "score_TC", "positive_TC", "negative_TC")
        return replace(self, **{name: getattr(self, name)[chosen] for name in names})

    def metric(self, name: str, calibration: "SliceCalibration | None" = None) -> Floats:
        """A metric of each user, with the scores as they are or calibrated."""
        return self.metrics([name], calibration)[name]

    def metrics(self, names: Sequence[str], calibration: "SliceCalibration | None" = None) -> dict[str, Floats]:
        """The same of several metrics."""
        score_TC = self.score_TC if calibration is None else calibration(self.score_TC, self.item_C)
        parts = (torch.from_numpy(part) for part in (score_TC.astype(np.float32), self.positive_TC, self.negative_TC))
        ks = {int(name.partition("@")[2] or 10) for name in names}
        found = metrics(Block(self.user_T, self.item_C, *parts), sorted(ks))[1]
        return {name: found[name] for name in names}


@dataclass(frozen=True, eq=False)
class Appeal:
    """λ_i, each item's share of positives, by empirical Bayes: with n_i positives among m_i users,

    n_i ~ Poisson(m_i λ_i),   λ_i ~ Gamma(mean μ_i, shape κ),   log μ_i = b_0 + b · x_i   with its features x_i,

    so that λ̂_i = (n_i + κ) / (m_i + κ / μ_i). b and κ are those of greatest likelihood (n_i is negative binomial),
    with the prior b ~ N(0, 1), log κ ~ N(0, 10). Each user counts w_s ∝ 1 / (n_s + 5), and both counts are divided by
    Σ w² n / Σ w n, which makes their variance that of a Poisson count.
    """

    log_mean_V: Floats
    intercept: float
    slope_P: Floats
    shape: float

    @classmethod
    def of(cls, part: Slice, *, similar: bool = False) -> "Appeal":
        """Of the users of a slice; items that nobody of it saw have the mean that their features predict.

        Features are both kinds of popularity, and if `similar` the vectors of the items as well.
        """
        n_C, m_C = weighted_counts(part)
        vectors = [part.vector_VD] if similar and part.vector_VD is not None else []
        x_VP = np.hstack([part.feature_VP, *vectors])
        x_CP, width = x_VP[part.item_C], x_VP.shape[1]
        start = np.concatenate([[np.log((n_C.sum() + 0.5) / max(m_C.sum(), 1.0))], np.zeros(width + 1)])

        def loss(theta: Floats) -> tuple[float, Floats]:
            slope_P, shape = theta[1:-1], np.exp(theta[-1])
            mean_C = m_C * np.exp(np.clip(theta[0] + x_CP @ slope_P, -30, 30))
            likelihood_C = (
                special.gammaln(n_C + shape)
                - special.gammaln(shape)
                + special.xlogy(n_C, mean_C / (mean_C + shape))
                - shape * np.log1p(mean_C / shape)
            )
            by_mean_C = (n_C - mean_C) * shape / (mean_C + shape)
            by_shape_C = special.digamma(n_C + shape) - special.digamma(shape) - np.log1p(mean_C / shape)
            by_shape_C += (mean_C - n_C) / (mean_C + shape)
            gradient = [[-by_mean_C.sum()], slope_P - x_CP.T @ by_mean_C, [0.1 * theta[-1] - shape * by_shape_C.sum()]]
            penalty = 0.5 * slope_P @ slope_P + 0.05 * theta[-1] ** 2
            return float(penalty - likelihood_C.sum()), np.concatenate(gradient)

        bounds = [(-30.0, 5.0), *[(-3.0, 3.0)] * width, (-5.0, 8.0)]
        theta = optimize.minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x
        prior_V, shape = np.exp(theta[0] + x_VP @ theta[1:-1]), float(np.exp(theta[-1]))
        n_V, m_V = np.zeros(len(prior_V)), np.zeros(len(prior_V))
        n_V[part.item_C], m_V[part.item_C] = n_C, m_C
        mean_V = (n_V + shape) / (m_V + shape / prior_V)
        return cls(np.log(mean_V), float(theta[0]), theta[1:-1], shape)


def weighted_counts(part: Slice) -> tuple[Floats, Floats]:
    """n_C and m_C of `Appeal`."""
    weight_T = 1 / (part.positive_TC.sum(1) + _COUNT)
    n_C, m_C = weight_T @ part.positive_TC, weight_T @ (part.positive_TC | part.negative_TC)
    unit = float((weight_T**2 @ part.positive_TC).sum() / n_C.sum())
    return n_C / unit, m_C / unit


@dataclass(frozen=True, eq=False)
class SliceCalibration:
    """What a slice taught: the scale of the scores, and the offset of every item."""

    recipe: str
    scale: float
    popularity: Floats  # β of the features of items
    appeal: float  # γ of log λ̂
    offset_V: Floats
    personal: bool = True  # False: the model's scores only decide between near equals

    def __call__(self, score_TC: Floats, item_C: Index) -> Floats:
        """Calibrated scores of these items."""
        calibrated_TC: Floats = self.scale * score_TC + self.offset_V[item_C]
        return calibrated_TC

    @property
    def shift_V(self) -> Floats:
        """offset / scale: what, added to the scores, gives the calibrated order."""
        shift_V: Floats = self.offset_V / self.scale
        return shift_V


def calibrate(part: Slice, rng: np.random.Generator, recipe: str = "appeal") -> SliceCalibration:
    """Coefficients of the scores f, of log popularity and of log λ̂ by the conditional logit

    P(i | s) ∝ exp(α f_si + β · x_i + γ log λ̂_i)   over the candidates of s,

    each user's positives counting 1 together. In deviations of each value the prior is β, γ ~ N(0, 1); that of α has
    its mean at the scores as they are, and a deviation of 1 or as much as that, whichever is more. λ̂ of a user's fold
    is that of the other folds, so that γ is not learnt from what it is to predict. A recipe says which of the three
    there are; x are log popularity and log balanced popularity.
    """
    uses = RECIPES[recipe]
    alpha, beta_P, gamma, values = 1.0, np.zeros(part.feature_VP.shape[1]), 0.0, []
    if "score" in uses:
        values.append(part.score_TC)
    if "popularity" in uses:
        values += [column_V[part.item_C][None] for column_V in part.feature_VP.T]
    similar, has_appeal = "similar" in uses, "appeal" in uses or "similar" in uses
    if has_appeal:
        appeal_TC, fold_T = np.zeros(part.score_TC.shape), _folds(len(part), rng)
        for fold in np.unique(fold_T):
            others = part.some(fold_T != fold) if (fold_T != fold).any() else part
            appeal_TC[fold_T == fold] = Appeal.of(others, similar=similar).log_mean_V[part.item_C]
        values.append(appeal_TC)
    if uses:
        found = _conditional_logit(part, values, rng, prior="score" in uses)
        alpha = found.pop(0) if "score" in uses else 0.0
        beta_P, gamma = np.array(found[: len(beta_P)]), found[-1] if has_appeal else 0.0
    offset_V = part.feature_VP @ beta_P + (gamma * Appeal.of(part, similar=similar).log_mean_V if gamma else 0.0)
    personal = alpha > 0
    if not personal:
        alpha = _TIES * max(float(offset_V[part.item_C].std()), 1e-9) / max(float(part.score_TC.std()), 1e-9)
    return SliceCalibration(recipe, alpha, beta_P, gamma, offset_V, personal)


def _conditional_logit(part: Slice, values: Sequence[Floats], rng: np.random.Generator, *, prior: bool) -> list[float]:
    """The coefficients; the first is at least 0, and 1 a priori, where it is that of the scores.

    Where there are many cells, each user's softmax is over the positives and a sample of the negatives, each of which
    stands for as many as it was drawn from: log of that number is added to its logit.
    """
    rows = max(1, _CELLS // len(part))
    chance_T1 = np.minimum(1.0, rows / np.maximum(part.negative_TC.sum(1, keepdims=True), 1))
    drawn_TC = part.negative_TC & (rng.random(part.negative_TC.shape) < chance_T1)
    row_N, column_N = np.nonzero(part.positive_TC | drawn_TC)
    positive_N = part.positive_TC[row_N, column_N]
    first_T = np.searchsorted(row_N, np.arange(len(part)))
    offset_N = np.where(positive_N, 0.0, -np.log(chance_T1[row_N, 0]))
    weight_N = positive_N / np.add.reduceat(positive_N.astype(float), first_T)[row_N]
    mean_N = 1 / np.diff(np.append(first_T, len(row_N)))[row_N]

    def centred(value_TC: Floats) -> Floats:
        value_N = np.broadcast_to(value_TC, part.positive_TC.shape)[row_N, column_N]
        less_N: Floats = value_N - np.add.reduceat(value_N * mean_N, first_T)[row_N]
        return less_N

    feature_KN = np.stack([centred(value_TC) for value_TC in values])
    deviation_K = np.maximum(feature_KN.std(1), 1e-12)
    feature_KN /= deviation_K[:, None]
    prior_K = np.array([deviation_K[0] if prior else 0.0, *[0.0] * (len(values) - 1)])
    spread_K = np.maximum(prior_K, _PRIOR)

    def loss(theta_K: Floats) -> tuple[float, Floats]:
        logit_N = theta_K @ feature_KN + offset_N
        logit_N -= np.maximum.reduceat(logit_N, first_T)[row_N]
        log_p_N = logit_N - np.log(np.add.reduceat(np.exp(logit_N), first_T))[row_N]
        away_K = (theta_K - prior_K) / spread_K
        gradient_K = feature_KN @ (np.exp(log_p_N) - weight_N) + away_K / spread_K
        return float(0.5 * away_K @ away_K - weight_N @ log_p_N), gradient_K

    bounds = [(0.0 if prior else None, None), *[(None, None)] * (len(values) - 1)]
    theta_K = optimize.minimize(loss, prior_K, jac=True, method="L-BFGS-B", bounds=bounds).x
    return [float(theta / spread) for theta, spread in zip(theta_K, deviation_K, strict=True)]


@dataclass(frozen=True, eq=False)
class CrossFitted:
    """What calibration is worth for users that it was not learnt from: the metric of each user by run and recipe."""

    names: Sequence[tuple[int, str]]  # the place of the run, and the recipe; the first is run 0 as it is
    value_NT: Floats
    fold_T: NDArray[np.int64]

    @property
    def best(self) -> int:
        """The candidate with the highest mean."""
        return int(self.value_NT.mean(1).argmax())

    @property
    def gain(self) -> Paired:
        """Of choosing the best over run 0 as it is, with a 95% interval; 99% where several runs can be chosen.

        The choice for the users of a fold is made on the other folds, so that the gain is not that of the luckiest
        candidate. What was measured there was learnt from this fold too, so that choice and measurement are not quite
        independent; in simulations noise was called better in 1–2% of the cases, in 5% where run 0 is noise, too.
        """
        chosen_T = np.zeros(len(self.fold_T))
        for fold in np.unique(self.fold_T):
            here_T = self.fold_T == fold
            elsewhere = self.value_NT[:, ~here_T] if not here_T.all() else self.value_NT
            chosen_T[here_T] = self.value_NT[elsewhere.mean(1).argmax(), here_T]
        several = len({run for run, _ in self.names}) > 1
        return paired(chosen_T, self.value_NT[0], level=0.99 if several else 0.95)

    @property
    def is_better(self) -> bool:
        """Surely: the interval of the gain is above 0."""
        return self.best > 0 and bool(self.gain.low > 0)


def cross_fit(
    parts: Sequence[Slice], rng: np.random.Generator, metric: str = "NDCG@10", recipes: Sequence[str] = tuple(RECIPES)
) -> CrossFitted:
    """Learn on all folds of users but one, measure on that one, for each of them, of several runs on one slice."""
    fold_T = _folds(len(parts[0]), rng)
    pairs = [(run, recipe) for run in range(len(parts)) for recipe in recipes if not run or recipe != "same for all"]
    pairs = [pair for pair in pairs if parts[pair[0]].vector_VD is not None or "similar" not in RECIPES[pair[1]]]
    names = [(0, "as it is"), *[pair for pair in pairs if pair != (0, "as it is")]]
    value_NT = np.zeros((len(names), len(fold_T)))
    for fold in np.unique(fold_T):
        here_T = fold_T == fold
        for place, (run, recipe) in enumerate(names):
            learnt = calibrate(parts[run].some(~here_T if not here_T.all() else here_T), rng, recipe)
            value_NT[place, here_T] = parts[run].some(here_T).metric(metric, learnt)
    return CrossFitted(names, value_NT, fold_T)


@dataclass(frozen=True)
class CurvePoint:
    """What slices of one size are worth to users outside them: means over draws."""

    users: int
    before: float
    after: float  # with the best candidate, recommended or not
    applied: float  # with what was recommended; as it is where nothing was
    recommended: float  # share of the draws
    harmed: float  # … in which what was recommended was significantly worse there (one-sided, 5%)


def gain_curve(
    parts: Sequence[Slice], rng: np.random.Generator, metric: str, sizes: Sequence[int], *, draws: int = 5
) -> list[CurvePoint]:
    """Calibrate on slices of each size, drawn from the slice, and measure on the users that are left."""
    points = []
    for size in sizes:
        values = []
        for _ in range(draws):
            order_T = rng.permutation(len(parts[0]))
            inside = [part.some(order_T[:size]) for part in parts]
            found = cross_fit(inside, rng, metric)
            run, recipe = found.names[found.best]
            learnt = calibrate(inside[run], rng, recipe)
            before_T = parts[0].some(order_T[size:]).metric(metric)
            after_T = parts[run].some(order_T[size:]).metric(metric, learnt)
            better, test = found.is_better, paired(after_T, before_T)
            applied = (after_T if better else before_T).mean()
            harmed = better and test.difference < 0 and test.p < 0.1
            values.append([before_T.mean(), after_T.mean(), applied, float(better), float(harmed)])
        points.append(CurvePoint(size, *map(float, np.mean(values, 0))))
    return points


def _folds(users: int, rng: np.random.Generator, folds: int = FOLDS) -> NDArray[np.int64]:
    """A fold for each user, all of equal size up to one."""
    fold_T: NDArray[np.int64] = rng.permutation(np.arange(users) % min(folds, users))
    return fold_T
