"""Train on a log, recommend, save and load. The log is from the built-in world; use your own."""

import tempfile
from pathlib import Path

import numpy as np

from unveil import Interactions, Recommender, World
from unveil.data.writers import write

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "log.csv"
    write(World.builtin(seed=0).log(np.random.default_rng(0)), path)

    log = Interactions.read(path)
    overrides = {"training.epochs": 3, "model.width": 16}  # any setting by its name; a real run needs more epochs
    recommender = Recommender.fit(log, overrides=overrides)

    print(recommender.recommend(["u0001", "u0002"], k=3).frame)
    after = recommender.recommend_for([["i0001", "i0002", "unknown item"]], k=3)
    print(after.frame["item_id"].to_list(), "unknown:", after.unknown_items)

    recommender.save(Path(folder) / "model")
    again = Recommender.load(Path(folder) / "model")
    assert again.recommend(["u0001"], k=3).frame.equals(recommender.recommend(["u0001"], k=3).frame)
