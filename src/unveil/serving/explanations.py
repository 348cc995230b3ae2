"""Reasons of a recommendation: the effect of each history item on it, by scoring again without that item.

Shapes: J items of the history that are left out in turn, K items that are explained, Q histories, V items.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray

from unveil.serving.exposure import item_exposures, next_steps
from unveil.serving.recommender import Recommender

#: Popularity is the share of all interactions; the propensity is that of training, or popularity, as its source says.
COLUMNS: dict[str, type[pl.DataType]] = {
    "popularity": pl.Float64,
    "propensity": pl.Float64,
    "propensity_source": pl.String,
    "reasons": pl.String,
}


def effects(
    recommender: Recommender, history: NDArray[Any], item_K: NDArray[Any]
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """item_J and effect_JK[j, k] = log p(item k | history) − log p(item k | history without item j).

    Above 0, item j makes item k exp(effect) times as likely; below 0, less likely. An item that the model reads is left
    out with all its occurrences; if the history is longer than the model reads, an older event takes the free place.
    """
    item_J = np.unique(history[1 - recommender.length :] if recommender.length > 1 else history[:0])
    variants = [history, *(history[history != item] for item in item_J)]
    index_K, parts = torch.from_numpy(np.asarray(item_K, np.int64)), []
    for part in recommender.parts(len(variants)):
        scores_QV = recommender.scores(variants[part])
        parts.append(scores_QV[:, index_K] - scores_QV.logsumexp(dim=1, keepdim=True))  # log softmax at these items
    share_QK = torch.cat(parts)
    return item_J, (share_QK[:1] - share_QK[1:]).numpy()


def reasons(
    recommender: Recommender, history: NDArray[Any], item_K: NDArray[Any], count: int
) -> list[list[tuple[int, float]]]:
    """The strongest effects on each item: (item of the history, effect)."""
    if not count or not len(history) or not len(item_K):
        return [[] for _ in item_K]
    item_J, effect_JK = effects(recommender, history, item_K)
    order_JK = np.argsort(-np.abs(effect_JK), axis=0, kind="stable")[:count]
    return [[(int(item_J[j]), float(effect_JK[j, k])) for j in order_JK[:, k]] for k in range(len(item_K))]


def factor(effect: float) -> str:
    """An effect as text: × 1.50, that many times as likely as without the item; ÷ 1.50, that many times less."""
    size, sign = np.exp(min(abs(effect), 700.0)), "×" if effect >= 0 else "÷"
    return f"{sign} {size:.2f}" if size < 1000 else f"{sign} > 1000"


def explained(
    recommender: Recommender, frame: pl.DataFrame, count: int, histories: Mapping[str, NDArray[Any]] | None = None
) -> pl.DataFrame:
    """The recommendations with the columns of `COLUMNS`, if reasons are asked for; the strongest ones first.

    `histories` are those of users that the recommender does not know, as item indices; without any they are empty.
    """
    if not count:
        return frame
    items, sequences = recommender.items, recommender.sequences
    item_N, values = items.index(frame["item_id"]), [(0.0, 0.0, "", "")] * len(frame)
    for user, rows in frame.with_row_index("row").group_by("user_id", maintain_order=True).agg("row").iter_rows():
        if histories is None:
            place = recommender.users.find(user)
            history, step = sequences.history(place), int(next_steps(sequences, np.array([place]))[0])
        else:
            history, step = histories.get(user, np.zeros(0, np.int32)), None
        item_K = item_N[rows]
        exposures = item_exposures(recommender.exposure, recommender.share_V, item_K, step)
        found = reasons(recommender, history, item_K, count)
        for row, item, exposure, strongest in zip(rows, item_K, exposures, found, strict=True):
            text = "; ".join(f"{items[other]} {factor(effect)}" for other, effect in strongest)
            values[row] = (float(recommender.share_V[item]), *exposure, text)
    return frame.hstack(pl.DataFrame(values, COLUMNS, orient="row"))
