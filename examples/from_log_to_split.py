"""From a file to train, validation and test. The log is from the built-in world; use your own."""

import tempfile
from pathlib import Path

import numpy as np

from unveil import Filters, Interactions, Sequences, World, describe, leave_one_out
from unveil.data.writers import write

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "log.csv"
    write(World.builtin(seed=0).log(np.random.default_rng(0)), path)

    log = Interactions.read(path)  # any supported format, detected by content
    log = Filters(min_item=5, min_user=5)(log)
    figures = describe(log)
    print(f"{figures.users:,} users, {figures.items:,} items, {figures.interactions:,} interactions")

    split = leave_one_out(Sequences.of(log))
    print(
        f"{len(split.train):,} events to train on, {len(split.valid):,} to validate on, {len(split.test):,} to test on"
    )
    print(f"rule: {split.rule}; {split.train_only} users for training only")
