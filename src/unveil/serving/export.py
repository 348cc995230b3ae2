"""A trained model for other programs: an ONNX file, or vectors in Parquet."""

from dataclasses import dataclass, replace
from pathlib import Path

from unveil.files import atomic_file, refuse_existing, write_whole
from unveil.serving.embeddings import item_vectors, network_of, query_schema, query_vectors
from unveil.serving.recommender import Recommender
from unveil.serving.streaming import write_frames

ONNX, ITEM_VECTORS, QUERY_VECTORS = "model.onnx", "item_vectors.parquet", "query_vectors.parquet"


@dataclass(frozen=True)
class Written:
    """A file, and what is to be known of it."""

    path: Path
    about: str


def export_onnx(recommender: Recommender, path: Path, *, overwrite: bool = False) -> Written:
    """Write the network as ONNX, once it has said on real histories what the network in torch says."""
    refuse_existing(path, overwrite=overwrite)
    content, difference = checked_onnx(recommender)
    write_whole(path, content)
    return Written(path, f"tokens in, scores of {len(recommender.items):,} items out; parity {difference:.1e}")


def checked_onnx(recommender: Recommender) -> tuple[bytes, float]:
    """The network as ONNX, and how far it is from torch: the largest difference, in deviations of the scores."""
    from unveil.serving.onnx.model import as_bytes
    from unveil.serving.onnx.parity import refuse_difference
    from unveil.serving.onnx.scorer import OnnxScorer

    model = network_of(recommender)
    content = as_bytes(model, recommender.length)
    return content, refuse_difference(OnnxScorer.of(content), model, recommender.sequences, recommender.length)


def on_onnx(recommender: Recommender) -> Recommender:
    """The same recommender, run by ONNX Runtime; refused where it would answer otherwise."""
    from unveil.serving.onnx.scorer import OnnxScorer

    return replace(recommender, model=OnnxScorer.of(checked_onnx(recommender)[0]))


def servable(recommender: Recommender) -> Recommender:
    """On ONNX Runtime; in torch, as it is, where there is no such form of it: of another package, or too large."""
    from unveil.serving.onnx.model import has_form

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
