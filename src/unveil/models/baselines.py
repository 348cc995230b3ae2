"""Models that are fitted by counting, in seconds: what a network must beat; and controls for what a metric rewards.

Shapes: B histories, L tokens, V items, K weights that an item keeps, R rows, S items that a regression is on.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import lapack
from torch import Tensor
from torch.nn import functional as F

from unveil.data.interactions import Sequences
from unveil.data.slots import n_tokens, pad_token
from unveil.errors import AtLeastOne, NotNegative, Positive, UpToOne
from unveil.models.base import BACKBONES, Baseline, BaselineConfig, register
from unveil.propensity.known import splitmix

Matrix = Any  # of scipy.sparse, which has no types
CELLS = 2**22  # numbers held at once, beside the weights


def fitted(name: str, train: Sequences, **constants: Any) -> Baseline:
    """The baseline of that name, with these constants, fitted."""
    kind = BACKBONES[name]
    model = kind(kind.Config(**constants), train.n_items)
    assert isinstance(model, Baseline)
    return model.fit(train)


def recency(token_BL: Tensor, n_items: int, decay: float, *, each_once: bool = True) -> Tensor:
    """x_BL: decay^age at events, the last of which has age 0, and 0 at other tokens; of an item that occurs more than
    once the last event alone, unless each counts."""
    event_BL = token_BL < n_items
    age_BL = event_BL.flip(1).cumsum(1).flip(1) - 1
    if each_once:
        column_BL = torch.arange(token_BL.shape[1], device=token_BL.device).expand_as(token_BL)
        last_BT = column_BL.new_zeros(len(token_BL), n_tokens(n_items)).scatter_reduce(1, token_BL, column_BL, "amax")
        event_BL = event_BL & (last_BT.gather(1, token_BL) == column_BL)
    return torch.where(event_BL, decay**age_BL, 0.0)


@dataclass(frozen=True)
class PopularityConfig(BaselineConfig):
    """With balance above 0 active users, who choose more of everything, count for less."""

    balance: NotNegative = 0.0
    name: Literal["popularity"] = "popularity"


@register
class Popularity(Baseline):
    """What most users chose: score_i = log q_i + b_i, q_i = (c_i + 1) / Σ_j (c_j + 1).

    c_i = Σ_s c_si / (n_s + 5)^balance, c_si how often s chose i, n_s all that s chose.
    """

    name = "popularity"
    Config = PopularityConfig
    config: PopularityConfig

    def fit(self, train: Sequences) -> Self:
        weight_N = (train.length_U[train.user_N] + 5.0) ** -self.config.balance
        self.share.copy_(log_share(torch.from_numpy(np.bincount(train.item_N, weight_N, train.n_items))).exp())
        return self

    def scores(self, token_BL: Tensor) -> Tensor:
        return (self.share.log() + self.bias).to(token_BL.device).expand(len(token_BL), -1)


@dataclass(frozen=True)
class FrequencyConfig(BaselineConfig):
    """How much popularity counts."""

    smoothing: Positive = 1.0
    name: Literal["frequency"] = "frequency"


@register
class Frequency(Baseline):
    """What the user chose most, where users come back to items: score_i = log(Σ_{events of i} decay^age + μ q_i) + b_i.

    q is the share of `Popularity`, μ the smoothing.
    """

    name = "frequency"
    Config = FrequencyConfig
    config: FrequencyConfig
    decays = (0.9, 0.7, 0.98, 1.0)

    def fit(self, train: Sequences) -> Self:
        self.share.copy_(fitted("popularity", train).share)
        return self

    def scores(self, token_BL: Tensor) -> Tensor:
        token_BL = token_BL.to(self.device)
        x_BL = recency(token_BL, self.n_items, self.decay, each_once=False)
        own_BT = x_BL.new_zeros(len(token_BL), n_tokens(self.n_items)).scatter_add_(1, token_BL, x_BL)
        return (own_BT[:, : self.n_items] + self.config.smoothing * self.share).log() + self.bias


class ItemToItem(Baseline):
    """score_i = a (Σ_{j in the history, each once} decay^age_j · w_ji + ε q_i) + b_i; the last event has age 0.

    ε = 0.001 ranks by popularity where nothing else does. a, learnt on validation cases, puts scores on the scale of
    logits; rankings stay. Weights are all V² numbers, or the K largest of each item j and whose they are.
    """

    weight: Tensor
    scale: Tensor  # a
    neighbour: Tensor | None

    def __init__(self, config: Any, n_items: int, *, seed: int = 0) -> None:
        super().__init__(config, n_items)
        kept = n_items if n_items <= getattr(config, "exact", 0) else min(config.neighbours, n_items)
        self.register_buffer("weight", torch.zeros(n_items, kept))
        self.register_buffer("scale", torch.ones(()))
        self.register_buffer("neighbour", None if kept == n_items else torch.zeros(n_items, kept, dtype=torch.int32))

    def scores(self, token_BL: Tensor) -> Tensor:
        token_BL = token_BL.to(self.device)
        sum_BV = self.sums(token_BL, recency(token_BL, self.n_items, self.decay))
        return self.scale * (sum_BV + EPSILON * self.share) + self.bias

    def sums(self, token_BL: Tensor, x_BL: Tensor) -> Tensor:
        """Σ_l x_bl · w_{token_bl, i}, without columns of events that count less than a millionth."""
        first = int((x_BL.amax(0) > 1e-6).int().argmax()) if len(x_BL) else 0
        token_BL, x_BL = token_BL[:, first:], x_BL[:, first:]
        item_BL = token_BL.clamp_max(self.n_items - 1)  # of other tokens x is 0
        if self.neighbour is None:
            return F.embedding_bag(item_BL, self.weight, per_sample_weights=x_BL, mode="sum")
        sum_BV = x_BL.new_zeros(len(token_BL), self.n_items)
        width = max(1, CELLS // (max(1, len(token_BL)) * self.weight.shape[1]))
        for start in range(0, token_BL.shape[1], width):
            item_Bl, x_Bl = item_BL[:, start : start + width], x_BL[:, start : start + width]
            weight_BlK = self.weight[item_Bl] * x_Bl[..., None]
            sum_BV.scatter_add_(1, self.neighbour[item_Bl].flatten(1).long(), weight_BlK.flatten(1))
        return sum_BV

    def dense(self) -> Tensor:
        """w_VV, a row for each item of the history."""
        if self.neighbour is None:
            return self.weight
        return torch.zeros(self.n_items, self.n_items).scatter_add_(1, self.neighbour.long(), self.weight)

    def keep(self, rows: slice, weight_RV: Matrix) -> None:
        """The largest cells of these rows of a sparse matrix."""
        if self.neighbour is None:
            self.weight[rows] = torch.from_numpy(weight_RV.toarray()).float()
            return
        item_RK, value_RK = map(torch.from_numpy, _largest(weight_RV, self.weight.shape[1]))
        self.weight[rows, : item_RK.shape[1]] = value_RK
        self.neighbour[rows, : item_RK.shape[1]] = (item_RK % self.n_items).int()


EPSILON = 1e-3


@dataclass(frozen=True)
class EASEConfig(BaselineConfig):
    """All pairs of items are weighed up to `exact` items; beyond, the `neighbours` largest weights of each are kept."""

    penalty: Positive | None = None  # λ; None: 100 + 3 · the mean interactions of an item
    exact: int = 12_000
    neighbours: AtLeastOne = 200
    name: Literal["ease"] = "ease"


@register
class EASE(ItemToItem):
    """H. Steck, Embarrassingly shallow autoencoders for sparse data, WWW 2019: there with decay 1, all events alike.

    P = (G + λI)⁻¹, w_ji = −P_ji / P_ii, w_ii = 0: the ridge regression of each item on all others; G = XᵀX is how many
    users chose both. With more items than `exact`, on the S with which it most often occurs,
    w_Si = (G_SS + λI)⁻¹ g_Si: the same where these are all others.
    """

    name = "ease"
    Config = EASEConfig
    config: EASEConfig
    decays = (0.8, 0.5, 0.9, 1.0)

    def fit(self, train: Sequences) -> Self:
        self.share.copy_(fitted("popularity", train).share)
        penalty, x_UV = self.config.penalty or 100 + 3 * len(train) / self.n_items, _chosen(train)
        if self.n_items <= self.config.exact:
            self.weight.copy_(torch.from_numpy(_ease((x_UV.T @ x_UV).toarray(), penalty)))
        else:
            for rows, weight_RV in _row_blocks(_sparse_ease(x_UV.T @ x_UV, penalty, 50)):
                self.keep(rows, weight_RV)
        return self


def _ease(g_VV: NDArray[np.float32], penalty: float) -> NDArray[np.float32]:
    """By the Cholesky factor, in place: half the work of an inverse, and no second matrix."""
    np.fill_diagonal(g_VV, np.diag(g_VV) + penalty)
    p_VV = lapack.spotri(lapack.spotrf(g_VV.T, lower=0, overwrite_a=1)[0], lower=0, overwrite_c=1)[0]
    np.copyto(p_VV, p_VV.T, where=np.tri(len(p_VV), k=-1, dtype=bool))
    weight_VV = np.ascontiguousarray(p_VV / -np.diag(p_VV))
    np.fill_diagonal(weight_VV, 0)
    return weight_VV


def _sparse_ease(g: Matrix, penalty: float, most: int) -> Matrix:
    """A regression of each item i on at most so many others, solved in batches; a row for each j, as in `ItemToItem`.

    Of the pairs within S only those count that are among the 4 · `most` most frequent of either: the others are few,
    and costly to find.
    """
    n_items, sums_V = g.shape[0], g.diagonal()
    item_VM, g_VM = _largest((g - sparse.diags(sums_V)).tocsr(), 4 * most)
    other_VS, right_VS = item_VM[:, :most], g_VM[:, :most]
    n, weight_VS, place_V1 = other_VS.shape[1], np.zeros_like(right_VS), np.full(n_items + 1, -1)
    size = max(1, CELLS // n**2)
    for part in (slice(start, start + size) for start in range(0, n_items, size)):
        left_BSS = np.zeros((len(other_VS[part]), n, n), np.float32)
        for left_SS, other_S in zip(left_BSS, other_VS[part], strict=True):
            there = other_S[other_S < n_items]
            place_V1[there] = np.arange(len(there))
            place_SM = place_V1[item_VM[there]]
            row_N, column_N = np.nonzero(place_SM >= 0)
            left_SS[row_N, place_SM[row_N, column_N]] = g_VM[there][row_N, column_N]
            place_V1[there] = -1
        diagonal_BS = (np.append(sums_V, 0)[other_VS[part]] + penalty).astype(np.float32)
        left_BSS = np.maximum(left_BSS, left_BSS.swapaxes(1, 2))
        left_BSS[:, np.arange(n), np.arange(n)] = diagonal_BS
        weight_VS[part] = np.linalg.solve(left_BSS, right_VS[part][..., None])[..., 0]
    i_N, s_N = np.nonzero(other_VS < n_items)
    return sparse.csr_matrix((weight_VS[i_N, s_N], (other_VS[i_N, s_N], i_N)), shape=g.shape)


@dataclass(frozen=True)
class KNNConfig(BaselineConfig):
    """How many neighbours an item has, and how much similarities of rare items are shrunk."""

    neighbours: AtLeastOne = 200
    shrink: NotNegative = 20.0
    name: Literal["item-knn"] = "item-knn"


@register
class ItemKNN(ItemToItem):
    """w_ji = g_ji / (√(g_jj g_ii) + shrink) of the nearest neighbours i of each j, by cosine; G = XᵀX, w_jj = 0."""

    name = "item-knn"
    Config = KNNConfig
    config: KNNConfig
    decays = (0.5, 0.7, 0.9)

    def fit(self, train: Sequences) -> Self:
        self.share.copy_(fitted("popularity", train).share)
        x_UV = _chosen(train)
        norm_V = np.sqrt(np.asarray(x_UV.sum(axis=0)).ravel())
        for rows, x_RU in _row_blocks(x_UV.T.tocsr()):
            g_RV = (x_RU @ x_UV).tocsr()
            row_N = np.repeat(np.arange(rows.start, rows.stop), np.diff(g_RV.indptr))
            g_RV.data /= np.maximum(norm_V[row_N] * norm_V[g_RV.indices] + self.config.shrink, 1e-9)
            g_RV.data[row_N == g_RV.indices] = 0
            self.keep(rows, g_RV)
        return self


@dataclass(frozen=True)
class MarkovConfig(BaselineConfig):
    """Transitions to any of the next `window` events count, the farther the less, and `neighbours` are kept."""

    window: AtLeastOne = 10
    fade: UpToOne = 0.8
    smoothing: Positive = 50.0
    neighbours: AtLeastOne = 500
    name: Literal["markov"] = "markov"


@register
class Markov(ItemToItem):
    """A Markov chain: score_i = a · log Σ_j x_j p(i | j) + b_i, x_j ∝ decay^age_j over the history, each item once.

    p(i | j) = (n_ji + μ q_i) / (n_j + μ), with n_ji = Σ_{d ≤ window} fade^(d−1) · (how often i comes d events after j),
    n_j their sum, q the share of `Popularity`. With window 1 and decay → 0 it is the first-order chain.
    """

    name = "markov"
    Config = MarkovConfig
    config: MarkovConfig
    decays = (0.7, 0.5, 0.8, 0.9)

    def fit(self, train: Sequences) -> Self:
        self.share.copy_(fitted("popularity", train).share)
        user_N, item_N, shape = train.user_N, train.item_N, (train.n_items, train.n_items)
        n = sparse.csr_matrix(shape, dtype=np.float32)
        for distance in range(1, min(self.config.window, len(item_N) - 1) + 1):
            same_N = user_N[distance:] == user_N[:-distance]
            weight_N = np.full(int(same_N.sum()), self.config.fade ** (distance - 1), np.float32)
            n += sparse.csr_matrix((weight_N, (item_N[:-distance][same_N], item_N[distance:][same_N])), shape=shape)
        divisor_V = np.asarray(n.sum(axis=1)).ravel() + self.config.smoothing
        for rows, p_RV in _row_blocks((sparse.diags(1 / divisor_V) @ n).tocsr()):
            self.keep(rows, p_RV)
        return self

    def scores(self, token_BL: Tensor) -> Tensor:
        token_BL = token_BL.to(self.device)
        x_BL = recency(token_BL, self.n_items, self.decay)
        sum_BV = self.sums(token_BL, x_BL / x_BL.sum(1, keepdim=True).clamp_min(torch.finfo(x_BL.dtype).tiny))
        rest_B1 = (1 - sum_BV.sum(1, keepdim=True)).clamp_min(1e-6)  # also what was not kept
        return self.scale * (sum_BV + rest_B1 * self.share).log() + self.bias


def _chosen(train: Sequences) -> Matrix:
    """x_UV: 1 where a user chose an item."""
    cells = (np.ones(len(train), np.float32), (train.user_N, train.item_N))
    x_UV = sparse.csr_matrix(cells, shape=(train.n_users, train.n_items))
    x_UV.data[:] = 1
    return x_UV


def _row_blocks(matrix: Matrix) -> Iterator[tuple[slice, Matrix]]:
    """Rows of a sparse matrix, so few at a time that they could be dense."""
    size = max(1, CELLS // max(matrix.shape))
    for start in range(0, matrix.shape[0], size):
        rows = slice(start, min(start + size, matrix.shape[0]))
        yield rows, matrix[rows]


def _largest(matrix: Matrix, kept: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """item_RK and value_RK: the K cells of each row farthest from 0, in order; V and 0 where there are fewer."""
    matrix.eliminate_zeros()
    (n_rows, n_items), count_R = matrix.shape, np.diff(matrix.indptr)
    width = max(1, min(kept, int(count_R.max(initial=1))))
    if 20 * matrix.nnz > n_rows * n_items:  # then this is faster
        cell_RV = torch.from_numpy(matrix.toarray())
        item = cell_RV.abs().topk(width).indices
        value = cell_RV.gather(1, item)
        return item.masked_fill_(value == 0, n_items).numpy(), value.numpy()
    row_N = np.repeat(np.arange(n_rows), count_R)
    order_N = np.lexsort((-np.abs(matrix.data), row_N))
    rank_N = np.arange(len(row_N)) - matrix.indptr[row_N]  # rows stay where they are
    item_RK, value_RK = np.full((n_rows, width), n_items), np.zeros((n_rows, width), np.float32)
    at, order_N = (row_N[rank_N < width], rank_N[rank_N < width]), order_N[rank_N < width]
    item_RK[at], value_RK[at] = matrix.indices[order_N], matrix.data[order_N]
    return item_RK, value_RK


@dataclass(frozen=True)
class Random:
    """Uniform scores in [0, 1): a hash of seed, history and item, whatever the batch and the padding."""

    n_items: int
    seed: int = 0

    def scores(self, token_BL: Tensor) -> Tensor:
        word_BL = token_BL.cpu().numpy().astype(np.uint64)
        place_L = np.arange(word_BL.shape[1], 0, -1).astype(np.uint64)
        key_BL = splitmix(word_BL + splitmix(place_L + splitmix(np.array([self.seed]).astype(np.uint64))))
        history_B = (key_BL * (word_BL != pad_token(self.n_items))).sum(axis=1, dtype=np.uint64)
        bits_BV = splitmix(history_B[:, None] + splitmix(np.arange(self.n_items, dtype=np.uint64)))
        scores_BV = (bits_BV >> np.uint64(40)).astype(np.float32) / np.float32(2**24)
        return torch.from_numpy(scores_BV).to(token_BL.device)


@dataclass(frozen=True, eq=False)
class LessPopular:
    """The control arm: score_i − λ · log((count_i + 1) / (Σ_j count_j + V)), λ = `strength`.

    A metric that rewards whatever penalises popularity rewards this too.
    """

    scorer: Callable[[Tensor], Tensor]  # the `scores` of a model, on the scale of logits
    count_V: Tensor
    strength: float

    def scores(self, token_BL: Tensor) -> Tensor:
        return self.scorer(token_BL) - self.strength * log_share(self.count_V).to(token_BL.device)


def log_share(count_V: Tensor) -> Tensor:
    """log((count_i + 1) / (Σ_j count_j + V)): popularity, smoothed so that no item has none."""
    return ((count_V + 1) / (count_V.sum() + len(count_V))).log()
