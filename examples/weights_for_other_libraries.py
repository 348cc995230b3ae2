"""Train a model of another library with ITPS weights: a column of the log with a weight for each event.

The log is from the built-in world; use your own. `unveil export RUN --weights` does the same.

RecTools and RePlay are used if they are installed. They are not dependencies of this project: give each its own
environment, with rectools[torch] (it needs NumPy below 2) or replay-rec[torch] (it needs polars below 2).
This was run with RecTools 0.19.0, NumPy 1.26 and pandas 2.3, and with RePlay 0.22.0, Lightning 2.6 and polars 1.44;
both on torch 2.13. Any torch loss that is a sum over events can use the weights; that part needs nothing else.
"""

import importlib
import importlib.util
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from torch.nn import functional as F

from unveil import World
from unveil.data.writers import write
from unveil.runs.config import Experiment
from unveil.runs.train import export_weights, run


def with_rectools(events: pl.DataFrame) -> None:
    """RecTools reads user_id, item_id, weight and datetime; its transformers weight the loss of each event."""
    pandas, dataset, models = map(importlib.import_module, ("pandas", "rectools.dataset", "rectools.models"))
    times = events["timestamp"].dt.replace_time_zone(None)
    columns = events.select("user_id", "item_id", "weight").with_columns(datetime=times)
    data = dataset.Dataset.construct(pandas.DataFrame({each.name: each.to_numpy() for each in columns}))
    model = models.BERT4RecModel(session_max_len=20, n_factors=16, n_blocks=1, n_heads=2, epochs=1, deterministic=True)
    model.fit(data)
    lists = model.recommend(["u0001", "u0002"], data, k=3, filter_viewed=True)
    print("a BERT4Rec of RecTools, trained with the weights:")
    print(lists)


def with_replay(events: pl.DataFrame, rows: Path, length: int = 20) -> None:
    """RePlay's SasRec weights its loss by a feature of the sequence, where that loss is CEWeighted. Its CE has none."""
    names = ("lightning", "replay.data.nn", "replay.nn.lightning", "replay.nn.loss", "replay.nn.sequential")
    lightning, tensors, modules, losses, models = map(importlib.import_module, names)
    items = events["item_id"].unique().sort()
    histories = histories_for_replay(events, items)
    histories.select("item_id", "weight").write_parquet(rows)
    schema = schema_for_replay(len(items), width=16)
    shapes = {name: {"shape": length + 1, "padding": empty} for name, empty in (("item_id", len(items)), ("weight", 0))}
    transforms = importlib.import_module("replay.nn.transform.template").make_default_sasrec_transforms(schema)
    data = tensors.ParquetModule(64, {"train": shapes}, transforms, train_path=str(rows))

    sizes = {"embedding_dim": 16, "num_heads": 2, "num_blocks": 1, "max_sequence_length": length}
    usual = models.SasRec.from_params(schema, **sizes, excluded_features=["weight"])  # the weight is no input
    model = models.SasRec(usual.body, losses.CEWeighted("weight", ignore_index=len(items)))
    trainer = lightning.Trainer(max_epochs=1, limit_val_batches=0, logger=False, enable_checkpointing=False)
    trainer.fit(modules.LightningModule(model), data)

    user, history = histories.select("user_id", pl.col("item_id").list.tail(length)).row(0)
    token_BL = torch.tensor([history])
    scores_BV = model.eval()({"item_id": token_BL}, torch.ones_like(token_BL, dtype=torch.bool))["logits"]
    best = items[scores_BV[0].topk(3).indices.tolist()]
    print(f"a SASRec of RePlay, trained with the weights, recommends to {user}: {', '.join(best)}")


def histories_for_replay(events: pl.DataFrame, items: pl.Series) -> pl.DataFrame:
    """A row per user: items as numbers, each with the weight of the following event.

    SasRec predicts at each item the next one, and CEWeighted uses the weight at the input position.
    Without the shift each event would have the weight of the one before.
    """
    number = pl.col("item_id").replace_strict(items, range(len(items)), return_dtype=pl.Int64)
    following = pl.col("weight").shift(-1, fill_value=0).over("user_id").cast(pl.Float32)
    ordered = events.sort("timestamp", maintain_order=True).with_columns(item_id=number, weight=following)
    return ordered.group_by("user_id", maintain_order=True).agg("item_id", "weight")


def schema_for_replay(n_items: int, width: int) -> Any:
    """The features of RePlay's sequences: item and weight."""
    data, tensors = map(importlib.import_module, ("replay.data", "replay.data.nn"))
    kinds, feature = data.FeatureType, partial(tensors.TensorFeatureInfo, is_seq=True, embedding_dim=width)
    hint = data.FeatureHint.ITEM_ID
    item = feature("item_id", kinds.CATEGORICAL, feature_hint=hint, cardinality=n_items, padding_value=n_items)
    return tensors.TensorSchema([item, feature("weight", kinds.NUMERICAL, tensor_dim=1)])


def with_torch(events: pl.DataFrame) -> None:
    """Any loss that is a sum over events can weight them: here, item-to-item transitions."""
    pairs = (
        events.sort("timestamp", maintain_order=True)
        .with_columns(before=pl.col("item_id").shift(1).over("user_id"))
        .drop_nulls()
    )
    items = pairs["item_id"].append(pairs["before"]).unique().sort()
    place = dict(zip(items, range(len(items)), strict=True))
    before, after = (torch.tensor([place[item] for item in pairs[name]]) for name in ("before", "item_id"))
    weight = torch.tensor(pairs["weight"].to_numpy())
    model = torch.nn.Embedding(len(items), len(items))
    optimiser = torch.optim.Adam(model.parameters(), lr=0.1)
    for _ in range(20):
        loss = (weight * F.cross_entropy(model(before), after, reduction="none")).sum() / weight.sum()
        optimiser.zero_grad()
        torch.autograd.backward(loss)
        optimiser.step()
    print(f"transitions learnt from {len(pairs):,} weighted pairs; loss {loss.item():.3f}")


with tempfile.TemporaryDirectory() as folder:
    log, place, column = (Path(folder) / name for name in ("log.csv", "run", "weights.parquet"))
    world = World.builtin(seed=0)
    world.save(Path(folder) / "world")
    write(world.log(np.random.default_rng(0)), log)
    # The true propensities of the world. On a real log use those of its impressions: popularity is no substitute.
    settings: dict[str, Any] = {
        "data.log": str(log),
        "data.world": str(Path(folder) / "world"),
        "estimator.name": "itps",
    }
    settings |= {"propensity.name": "known-temporal", "training.epochs": 1, "model.width": 8}
    run(Experiment.of("quick", settings), place, tell=lambda _: None)

    exported = export_weights(place, column, {"estimator.clip": 0.05})  # a clip trades bias for variance
    print(f"weights of {exported.estimator} by {exported.propensity}: {exported.diagnostics}")
    events = pl.read_parquet(column).filter(pl.col("part") == "train").drop("part")
    print(events.head(3))

    if importlib.util.find_spec("rectools") is not None:
        with_rectools(events)
    if importlib.util.find_spec("replay") is not None:
        with_replay(events, Path(folder) / "rows.parquet")
    with_torch(events)
