"""Lists with their reasons: what of the history moved each item, and how likely the item is to be shown at all."""

from collections.abc import Mapping
from typing import Any

import polars as pl
from numpy.typing import NDArray

from unveil.serving.exposure import Exposed, exposed
from unveil.serving.reasons import effects, factor
from unveil.serving.recommender import Recommender

#: Popularity is the share of all interactions; the propensity is that of training, or popularity, as its source says.
COLUMNS: Mapping[str, Any] = {
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
    """A frame of lists with the columns of `COLUMNS`; of the reasons, the strongest first.

    `histories` are those of the frame's users, as item indices; `steps` those that come next for them, where they are
    users of the log.
    """
    item_N = recommender.items.index(frame["item_id"])
    parts = frame.with_row_index("row").group_by("user_id", maintain_order=True).agg("row")
    reasons, shown = [""] * len(frame), [Exposed(0.0, "")] * len(frame)
    for user, rows in parts.iter_rows():
        item_K = item_N[rows]
        texts = _texts(recommender, histories[user], item_K, count)
        found = exposed(recommender.exposure, recommender.share_V, item_K, (steps or {}).get(user))
        for row, text, exposure in zip(rows, texts, found, strict=True):
            reasons[row], shown[row] = text, exposure
    values: tuple[Any, ...] = (
        recommender.share_V[item_N],
        [exposure.propensity for exposure in shown],
        [exposure.source for exposure in shown],
        reasons,
    )
    columns = zip(COLUMNS.items(), values, strict=True)
    return frame.with_columns(pl.Series(name, column, kind) for (name, kind), column in columns)


def explained_schema(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The columns of such a frame."""
    return {**schema, **COLUMNS}


def _texts(recommender: Recommender, history: NDArray[Any], item_K: NDArray[Any], count: int) -> list[str]:
    if not count or not len(history):
        return [""] * len(item_K)
    found = effects(recommender.model, history, item_K, len(recommender.items), recommender.length)
    return [
        "; ".join(f"{recommender.items[item]} {factor(effect)}" for item, effect in found.strongest(k, count))
        for k in range(len(item_K))
    ]
