"""Reasons of a recommendation: the effect of each history item on it, by scoring again without that item.

Shapes: J items of the history that are left out in turn, K items that are explained, Q histories, V items.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray

from unveil.data.slots import tokens_of
from unveil.evaluation.ranking import Scorer, at_rest
from unveil.serving.exposure import ItemExposure, item_exposures
from unveil.serving.recommender import CELLS, Recommender


@dataclass(frozen=True, eq=False)
class Effects:
    """effect_JK[j, k] = log p(item k | history) − log p(item k | history without item j).

    Above 0: the item of the history makes it exp(effect) times as likely; below 0: less likely.
    """

    item_J: NDArray[np.int64]
    effect_JK: NDArray[np.float32]

    def strongest(self, k: int, count: int) -> list[tuple[int, float]]:
        """The items of the history with the largest effects on item k: (item, effect)."""
        effect_J = self.effect_JK[:, k]
        order_J = np.argsort(-np.abs(effect_J), kind="stable")[:count]
        return [(int(self.item_J[j]), float(effect_J[j])) for j in order_J]


def effects(scorer: Scorer, history: NDArray[Any], item_K: NDArray[Any], n_items: int, length: int) -> Effects:
    """Score again without each item of the history that the model reads, all its occurrences at once.

    If the history is longer than the model reads, an older event takes the free place.
    """
    item_J = np.unique(np.asarray(history, np.int64)[-(length - 1) :] if length > 1 else np.zeros(0, np.int64))
    variants = [np.asarray(history), *(history[history != item] for item in item_J)]
    index_K = torch.from_numpy(np.asarray(item_K, np.int64))
    size, parts = max(1, CELLS // n_items), []
    for start in range(0, len(variants), size):
        with at_rest(scorer):
            scores_QV = scorer.scores(tokens_of(variants[start : start + size], n_items, length)).cpu()
        parts.append(scores_QV[:, index_K] - scores_QV.logsumexp(dim=1, keepdim=True))  # log softmax at these items
    share_QK = torch.cat(parts)
    return Effects(item_J, (share_QK[:1] - share_QK[1:]).numpy())


def reasons(
    recommender: Recommender, history: NDArray[Any], item_K: NDArray[Any], count: int
) -> list[list[tuple[int, float]]]:
    """The strongest effects on each item: (item of the history, effect)."""
    if not count or not len(history) or not len(item_K):
        return [[] for _ in item_K]
    found = effects(recommender.model, history, item_K, len(recommender.items), recommender.length)
    return [found.strongest(k, count) for k in range(len(item_K))]


def factor(effect: float) -> str:
    """An effect as text: × 1.50, that many times as likely as without the item; ÷ 1.50, that many times less."""
    size, sign = np.exp(min(abs(effect), 700.0)), "×" if effect >= 0 else "÷"
    return f"{sign} {size:.2f}" if size < 1000 else f"{sign} > 1000"


#: Popularity is the share of all interactions; the propensity is that of training, or popularity, as its source says.
COLUMNS: dict[str, type[pl.DataType]] = {
    "popularity": pl.Float64,
    "propensity": pl.Float64,
    "propensity_source": pl.String,
    "reasons": pl.String,
}


def explained(
    recommender: Recommender,
    frame: pl.DataFrame,
    histories: Mapping[str, NDArray[Any]],
    count: int,
    steps: Mapping[str, int] | None = None,
) -> pl.DataFrame:
    """The recommendations with the columns of `COLUMNS`; the strongest reasons first.

    `histories` are those of the frame's users, as item indices; `steps` those that come next for them, where they are
    users of the log.
    """
    item_N = recommender.items.index(frame["item_id"])
    texts, shown = [""] * len(frame), [ItemExposure(0.0, "")] * len(frame)
    for user, rows in frame.with_row_index("row").group_by("user_id", maintain_order=True).agg("row").iter_rows():
        item_K = item_N[rows]
        found = reasons(recommender, histories[user], item_K, count)
        exposures = item_exposures(recommender.exposure, recommender.share_V, item_K, (steps or {}).get(user))
        for row, strongest, exposure in zip(rows, found, exposures, strict=True):
            texts[row] = "; ".join(f"{recommender.items[item]} {factor(effect)}" for item, effect in strongest)
            shown[row] = exposure
    propensities, sources = [each.propensity for each in shown], [each.source for each in shown]
    values: tuple[Any, ...] = (recommender.share_V[item_N], propensities, sources, texts)
    columns = zip(COLUMNS.items(), values, strict=True)
    return frame.with_columns(pl.Series(name, column, kind) for (name, kind), column in columns)
