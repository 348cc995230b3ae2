"""The weight of each training event as a column of the log: for libraries that have the models but not the estimators.
Shapes: N rows of the log, M training slots."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from unveil.data.interactions import Interactions
from unveil.data.splits import Split
from unveil.data.writers import write
from unveil.errors import UnveilError
from unveil.estimators.base import blocks, estimator
from unveil.files import check_new_file
from unveil.propensity.weights import WeightDiagnostics
from unveil.runs.run_folder import ABOUT, read_config, read_json
from unveil.runs.train import world_of
from unveil.settings import flattened
from unveil.simulation.world import World
from unveil.training.fit import prepare
from unveil.training.recipe import AUTO, Recipe
from unveil.training.trainer import Trainer

PARTS = ("left", "held-out", "older", "train")  # what the run did with a row; see `export_weights`


@dataclass(frozen=True)
class WeightedLog:
    """Where the log with its weights is, and what the weights are like."""

    path: Path
    estimator: str
    propensity: str
    by_proxy: bool
    diagnostics: WeightDiagnostics


def export_weights(
    run: Path, path: Path, changes: Mapping[str, Any] | None = None, *, overwrite: bool = False
) -> WeightedLog:
    """Write the log of a run with two columns more: `weight`, of mean 1, and `part`.

    A row has a weight where the run trained on it. Its part is `train`; or `older`, where it lies before the events
    that the model reads; or `held-out`; or `left`, where it was shown and not taken.
    """
    check_new_file(path, overwrite=overwrite)
    experiment = read_config(run)
    log = experiment.data.load()
    if read_json(run / ABOUT)["log"]["fingerprint"] != log.fingerprint():
        hint = f"Put the log of the run back to {experiment.data.log}, or train again."
        raise UnveilError("the log has changed since the run", where=run, hint=hint)
    split = experiment.data.parts(log)
    trainer = _weighting(split, experiment.recipe, flattened(changes or {}), log, world_of(experiment, log))
    assert trainer.propensity is not None
    assert trainer.weights is not None
    write(log, path, beside=_columns(log, split, trainer, trainer.weights.mean))
    return WeightedLog(path, trainer.estimator.name, trainer.propensity.name, trainer.by_proxy, trainer.weights)


def _weighting(
    split: Split, recipe: Recipe, changes: Mapping[str, Any], log: Interactions, world: World | None
) -> Trainer:
    """The run's own estimator, where it weights events by a propensity; else ITPS. Both with the changes."""
    if estimator(changes.get("estimator.name", recipe.estimator["name"])).needs in ("static", "temporal"):
        trainer = prepare(split.train, recipe.changed(changes), log=log, world=world)
        if trainer.weights is not None:
            return trainer
    others = {name: value for name, value in changes.items() if name != "estimator.name"}
    weighted = replace(recipe, estimator={"name": "itps"}, propensity={"name": AUTO}).changed(others)
    return prepare(split.train, weighted, log=log, world=world)


def _columns(log: Interactions, split: Split, trainer: Trainer, mean: float) -> dict[str, pl.Series]:
    """`weight` and `part` of every row of the log, gone through a block of slots or of users at a time."""
    part_N, weight_N = np.zeros(len(log), np.uint8), np.full(len(log), np.nan)
    for name, sequences in (("held-out", split.whole), ("older", split.train)):
        for block in sequences.blocks():
            part_N[block.event_N] = PARTS.index(name)
    for slots in blocks(trainer.task.slots):
        assert slots.event_M is not None
        row_M = slots.event_M.numpy()
        part_N[row_M] = PARTS.index("train")
        weight_N[row_M] = trainer.estimator(slots).weight_M.double().numpy()
    weight_N /= mean
    return {"weight": pl.Series(weight_N).fill_nan(None), "part": pl.Series(PARTS, dtype=pl.String).gather(part_N)}
