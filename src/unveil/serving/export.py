"""A trained model for other programs: as an ONNX file, or as vectors of items and users in Parquet.

score of item i for user u = query_u · vector_i + bias_i, so that any inner-product index gives the model's ranking.
Shapes: B users of a batch, D width, V items.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch

from unveil.data.slots import histories
from unveil.errors import UnveilError
from unveil.evaluation.ranking import at_rest
from unveil.files import atomic_file, refuse_existing, write_whole
from unveil.models.base import Backbone, Causal, mask_first
from unveil.serving.recommender import ROWS, Recommender
from unveil.serving.streaming import write_frames


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
    """`user_id, vector` of every user, a frame at a time: the output of the network for the whole history."""
    model, sequences = network_of(recommender), recommender.sequences
    for start in range(0, sequences.n_users, ROWS):
        user_B = np.arange(start, min(start + ROWS, sequences.n_users), dtype=np.int32)
        token_BL = histories(sequences, user_B, sequences.length_U[user_B], recommender.length)
        if isinstance(model, Causal):
            token_BL = mask_first(token_BL, model.n_items)
        last = torch.arange(len(user_B)), torch.full((len(user_B),), token_BL.shape[1] - 1)
        with at_rest(model):
            query_BD = model.head(model(token_BL, last)).h_MD.cpu().numpy()
        columns = {"user_id": recommender.users.raw(user_B), "vector": query_BD}
        yield pl.DataFrame(columns, schema=query_schema(recommender))


def network_of(recommender: Recommender) -> Backbone:
    """Its network; other scorers have no vectors and no graph."""
    if not isinstance(recommender.model, Backbone):
        raise UnveilError("only a network can be exported", found=type(recommender.model).__name__)
    return recommender.model


def _vector(model: Backbone) -> pl.DataType:
    return pl.Array(pl.Float32, model.config.width)


ONNX, ITEM_VECTORS, QUERY_VECTORS = "model.onnx", "item_vectors.parquet", "query_vectors.parquet"


@dataclass(frozen=True)
class Written:
    """A file and its description."""

    path: Path
    about: str


def export_onnx(recommender: Recommender, path: Path, *, overwrite: bool = False) -> Written:
    """Write the network as ONNX, after comparing it with torch on real histories."""
    refuse_existing(path, overwrite=overwrite)
    content, difference = checked_onnx(recommender)
    write_whole(path, content)
    return Written(path, f"tokens in, scores of {len(recommender.items):,} items out; parity {difference:.1e}")


def checked_onnx(recommender: Recommender) -> tuple[bytes, float]:
    """The network as ONNX, and how far it is from torch: the largest difference, in deviations of the scores."""
    from unveil.serving.onnx_model import OnnxScorer, as_bytes, check_parity

    model = network_of(recommender)
    content = as_bytes(model, recommender.length)
    return content, check_parity(OnnxScorer.of(content), model, recommender.sequences, recommender.length)


def on_onnx(recommender: Recommender) -> Recommender:
    """The same recommender on ONNX Runtime; an error if it differs."""
    from unveil.serving.onnx_model import OnnxScorer

    return replace(recommender, model=OnnxScorer.of(checked_onnx(recommender)[0]))


def servable(recommender: Recommender) -> Recommender:
    """On ONNX Runtime; or in torch, if the network has no ONNX form: of another package, or too large."""
    from unveil.serving.onnx_model import has_form

    return on_onnx(recommender) if has_form(network_of(recommender)) else recommender


def export_embeddings(recommender: Recommender, folder: Path, *, overwrite: bool = False) -> list[Written]:
    """Write the vectors of items and the queries of users."""
    items, queries = folder / ITEM_VECTORS, folder / QUERY_VECTORS
    for path in (items, queries):
        refuse_existing(path, overwrite=overwrite)
    frame = item_vectors(recommender)
    with atomic_file(items) as draft:
        frame.write_parquet(draft)
    rows = write_frames(query_vectors(recommender), query_schema(recommender), queries)
    return [
        Written(items, f"item_id, vector, bias of {len(frame):,} items"),
        Written(queries, f"user_id, vector of {rows:,} users; score = query · vector + bias"),
    ]
