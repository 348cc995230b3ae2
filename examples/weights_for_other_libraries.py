"""Train a model of another library with ITPS weights: they come as a column of the log, a weight for each event.

The log comes from the built-in world; put your own there. `unveil export RUN --weights` does the same.

RecTools is used where it is installed. This was run with RecTools 0.19.0, torch 2.13, NumPy 1.26 and pandas 2.3. It is
no dependency of this project: it needs NumPy below 2, so give it an environment of its own, with rectools[torch].
Any loss of torch that is a sum over events takes the weights as well; that part needs nothing.
"""

import importlib
import importlib.util
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
import torch
from torch.nn import functional as F

from unveil import World
from unveil.data.sinks import write
from unveil.experiment.config import Experiment
from unveil.experiment.run import run
from unveil.experiment.weights import export_weights


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


def with_torch(events: pl.DataFrame) -> None:
    """Any loss that is a sum over events takes a weight for each: here, which item follows which."""
    pairs = events.sort("timestamp").with_columns(before=pl.col("item_id").shift(1).over("user_id")).drop_nulls()
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
    print(f"which item follows which, learnt from {len(pairs):,} weighted pairs; loss {loss.item():.3f}")


with tempfile.TemporaryDirectory() as folder:
    log, place, column = (Path(folder) / name for name in ("log.csv", "run", "weights.parquet"))
    write(World.builtin(seed=0).log(np.random.default_rng(0)), log)
    settings = {"data.log": str(log), "estimator.name": "itps", "training.epochs": 1, "model.width": 8}
    run(Experiment.of("quick", settings), place, tell=lambda _: None)

    told = export_weights(place, column, {"estimator.clip": 0.0001})  # a clip trades bias for variance
    print(f"weights of {told.estimator} by {told.propensity}: {told.diagnostics}")
    events = pl.read_parquet(column).filter(pl.col("part") == "train").drop("part")
    print(events.head(3))

    if importlib.util.find_spec("rectools") is not None:
        with_rectools(events)
    with_torch(events)
