"""The vectors of a model with raw ids: items as answers, users as questions. Their product is the model's score.

score of item i for user u = query_u · vector_i + bias_i, so that any index of inner products gives the model's lists.
Shapes: B users of a batch, D width, V items.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import polars as pl
import torch

from unveil.data.tokens import histories
from unveil.errors import UnveilError
from unveil.evaluation.scorer import at_rest
from unveil.models.base import Backbone
from unveil.models.causal import Causal, begun
from unveil.serving.recommender import ROWS, Recommender


def item_vectors(recommender: Recommender) -> pl.DataFrame:
    """`item_id, vector, bias` of every item."""
    model = network_of(recommender)
    with at_rest(model):
        _, table_VD, bias_V = model.head(torch.zeros(1, model.config.width))
        columns = {"vector": table_VD.cpu().numpy(), "bias": bias_V.cpu().numpy()}
    schema: dict[str, Any] = {"item_id": pl.String, "vector": _vector(model), "bias": pl.Float32}
    return pl.DataFrame({"item_id": recommender.items.ids, **columns}, schema=schema)


def query_schema(recommender: Recommender) -> Mapping[str, Any]:
    """The columns of `query_vectors`."""
    return {"user_id": pl.String, "vector": _vector(network_of(recommender))}


def query_vectors(recommender: Recommender) -> Iterator[pl.DataFrame]:
    """`user_id, vector` of every user, a frame at a time: what the model makes of the whole history."""
    model, sequences = network_of(recommender), recommender.sequences
    for start in range(0, sequences.n_users, ROWS):
        user_B = np.arange(start, min(start + ROWS, sequences.n_users), dtype=np.int32)
        token_BL = histories(sequences, user_B, sequences.length_U[user_B], recommender.length)
        if isinstance(model, Causal):
            token_BL = begun(token_BL, model.n_items)
        last = torch.arange(len(user_B)), torch.full((len(user_B),), token_BL.shape[1] - 1)
        with at_rest(model):
            query_BD = model.head(model(token_BL, last)).h_MD.cpu().numpy()
        columns = {"user_id": recommender.users.raw(user_B), "vector": query_BD}
        yield pl.DataFrame(columns, schema=query_schema(recommender))


def network_of(recommender: Recommender) -> Backbone:
    """Its network; a scorer of another kind has no vectors and no graph."""
    if not isinstance(recommender.model, Backbone):
        raise UnveilError("only a network can be exported", found=type(recommender.model).__name__)
    return recommender.model


def _vector(model: Backbone) -> pl.DataType:
    return pl.Array(pl.Float32, model.config.width)
