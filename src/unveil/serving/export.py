"""A trained model for other programs: as an ONNX file, as vectors of items and users in Parquet, or as lists.

score of item i for user u = query_u · vector_i + bias_i, so that any inner-product index gives the model's ranking.
Shapes: B users of a batch, D width, V items.
"""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import polars as pl
import torch
from polars.io.plugins import register_io_source

from unveil.data.slots import histories
from unveil.errors import UnveilError
from unveil.evaluation.ranking import evaluating
from unveil.files import atomic_file, check_new_file, write_whole
from unveil.models.base import Causal, mask_first
from unveil.serving.recommender import ROWS, Recommender, network_of

_SINKS: Mapping[str, Callable[..., object]] = {
    ".csv": pl.LazyFrame.sink_csv,
    ".jsonl": pl.LazyFrame.sink_ndjson,
    ".parquet": pl.LazyFrame.sink_parquet,
}
#: Rows that are gathered before they are written: small frames would make small, slow files.
GATHERED = 1 << 16


def export_onnx(recommender: Recommender, path: Path, *, overwrite: bool = False) -> dict[Path, str]:
    """Write the network as ONNX, after comparing it with torch on real histories; the file and what is in it."""
    from unveil.serving.onnx_model import checked_onnx

    check_new_file(path, overwrite=overwrite)
    content, difference = checked_onnx(recommender)
    write_whole(path, content)
    scores = f"scores of {len(recommender.items):,} items out"
    return {path: f"tokens in, {scores}; difference from torch at most {difference:.1e}"}


def export_embeddings(recommender: Recommender, folder: Path, *, overwrite: bool = False) -> dict[Path, str]:
    """Write the vectors of items and the queries of users; the files and what is in them."""
    items, queries = folder / "item_vectors.parquet", folder / "query_vectors.parquet"
    for path in (items, queries):
        check_new_file(path, overwrite=overwrite)
    model = network_of(recommender)
    vector = pl.Array(pl.Float32, model.config.width)
    with evaluating(model):
        _, table_VD, bias_V = model.head(torch.zeros(1, model.config.width))
        columns = {"item_id": recommender.items.ids, "vector": table_VD.cpu().numpy(), "bias": bias_V.cpu().numpy()}
    frame = pl.DataFrame(columns, schema={"item_id": pl.String(), "vector": vector, "bias": pl.Float32()})
    with atomic_file(items) as draft:
        frame.write_parquet(draft)
    schema = {"user_id": pl.String(), "vector": vector}
    rows = write_frames(_query_vectors(recommender, schema), schema, queries)
    about = f"user_id, vector of {rows:,} users; score = query · vector + bias"
    return {items: f"item_id, vector, bias of {len(frame):,} items", queries: about}


def _query_vectors(recommender: Recommender, schema: Mapping[str, Any]) -> Iterator[pl.DataFrame]:
    """The output of the network for the whole history of every user, a frame at a time."""
    model, sequences = network_of(recommender), recommender.sequences
    for start in range(0, sequences.n_users, ROWS):
        user_B = np.arange(start, min(start + ROWS, sequences.n_users), dtype=np.int32)
        token_BL = histories(sequences, user_B, sequences.length_U[user_B], recommender.length)
        if isinstance(model, Causal):
            token_BL = mask_first(token_BL, model.n_items)
        last = torch.arange(len(user_B)), torch.full((len(user_B),), token_BL.shape[1] - 1)
        with evaluating(model):
            query_BD = model.head(model(token_BL, last)).h_MD.cpu().numpy()
        yield pl.DataFrame({"user_id": recommender.users.raw(user_B), "vector": query_BD}, schema=schema)


def check_kind(path: Path) -> None:
    """Check the ending of the file before any work is done."""
    if path.suffix not in _SINKS:
        raise UnveilError("unknown kind of file", where=path, found=path.suffix, expected=f"one of {', '.join(_SINKS)}")


def write_frames(frames: Iterator[pl.DataFrame], schema: Mapping[str, Any], path: Path) -> int:
    """Write them as they are made, so that memory does not grow, and whole or not at all; the number of rows."""
    check_kind(path)
    rows, stop = 0, Event()

    def source(columns: object, predicate: object, limit: object, size: object) -> Iterator[pl.DataFrame]:
        nonlocal rows
        held: list[pl.DataFrame] = []
        for frame in frames:
            if stop.is_set():
                raise RuntimeError("stopped")
            rows += len(frame)
            held.append(frame)
            if sum(map(len, held)) >= GATHERED:
                yield pl.concat(held)
                held = []
        if held:
            yield pl.concat(held)

    lazy = register_io_source(source, schema=dict(schema), validate_schema=True)
    # In another thread: inside Polars, this one would not receive SIGTERM until all is written.
    with atomic_file(path) as draft, ThreadPoolExecutor(1) as pool:
        written = pool.submit(_SINKS[path.suffix], lazy, draft)
        try:
            wait([written])
        except BaseException:
            stop.set()
            raise
        written.result()
    return rows
