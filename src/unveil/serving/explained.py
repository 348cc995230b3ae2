"""Lists with their reasons: what of the history moved each item, and how often the item is taken by anybody."""

from collections.abc import Mapping
from typing import Any

import polars as pl
from numpy.typing import NDArray

from unveil.serving.reasons import effects, factor
from unveil.serving.recommender import Recommender


def explained(
    recommender: Recommender, frame: pl.DataFrame, histories: Mapping[str, NDArray[Any]], count: int
) -> pl.DataFrame:
    """A frame of lists with the columns `popularity`, a proxy of exposure, and `reasons`, the strongest first.

    `histories` are those of the frame's users, as item indices.
    """
    item_N = recommender.items.index(frame["item_id"])
    count_V = recommender.count_V
    share_N = pl.Series("popularity", count_V[item_N] / max(1, int(count_V.sum())), pl.Float64)
    parts = frame.with_row_index("row").group_by("user_id", maintain_order=True).agg("row")
    reasons = [""] * len(frame)
    for user, rows in parts.iter_rows():
        for row, text in zip(rows, _texts(recommender, histories[user], item_N[rows], count), strict=True):
            reasons[row] = text
    return frame.with_columns(share_N, pl.Series("reasons", reasons, pl.String))


def explained_schema(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The columns of such a frame."""
    return {**schema, "popularity": pl.Float64, "reasons": pl.String}


def _texts(recommender: Recommender, history: NDArray[Any], item_K: NDArray[Any], count: int) -> list[str]:
    if not count or not len(history):
        return [""] * len(item_K)
    found = effects(recommender.model, history, item_K, len(recommender.items), recommender.length)
    return [
        "; ".join(f"{recommender.items[item]} {factor(effect)}" for item, effect in found.strongest(k, count))
        for k in range(len(item_K))
    ]
