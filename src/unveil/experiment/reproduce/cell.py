"""A cell: one estimator trained on one replicate's log of one world at one severity, and judged."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from unveil.evaluation.result import Evaluation
from unveil.experiment.grid.job import Tell
from unveil.experiment.outcome import STANDARD, TRUE
from unveil.experiment.reproduce.study import Study
from unveil.experiment.reproduce.worlds import place
from unveil.experiment.trial import BASELINES, Arm, Bench
from unveil.simulation.truth import favourites_of
from unveil.simulation.world import World
from unveil.training.history import Epoch
from unveil.training.progress import Best, Plan
from unveil.training.trainer import Fitted


@dataclass(frozen=True)
class CellJob:
    """One training and its judgement. The world lies in the folder; the log is drawn again, always the same."""

    study: Study
    folder: Path
    world: int
    severity: float
    replicate: int
    arm: str

    @property
    def key(self) -> str:
        """w0-p1-r0-naive."""
        return f"w{self.world}-p{self.severity:g}-r{self.replicate}-{self.arm}"

    @property
    def cost(self) -> float:
        """About the seconds it takes on the log of ml-100k."""
        return 4.0 if self.arm in BASELINES else 6.0 + _training_cost(self.study, self.arm)

    def run(self, tell: Tell) -> Mapping[str, Any]:
        """Train, judge, and tell all that tables and plots need."""
        bench = _bench(self.study, self.folder, self.world, self.severity, self.replicate)
        recipe = self.study.recipe(self.arm, self.study.training_seed(self.world, self.replicate))
        arm = bench.arm(self.arm, recipe, _Share(tell))
        return {
            "world": self.world,
            "severity": self.severity,
            "replicate": self.replicate,
            "estimator": self.arm,
            "log": _log(bench),
            "ranks": {TRUE: _ranks(arm.truth), STANDARD: _ranks(arm.standard)},
            "lists": _lists(arm),
            "weights": None if arm.weights is None else asdict(arm.weights.diagnostics),
            "training": None if arm.fitted is None else _training(arm.fitted),
        }


def _training_cost(study: Study, arm: str) -> float:
    """Measured on one thread: an overhead for each batch, and work for each token and unit of width, in each block."""
    recipe = study.recipe(arm, 0)
    rows, tokens, model = 943, 943 * 98, recipe.model
    epoch = model.blocks * (0.0025 * rows / recipe.task.batch_size + 1.5e-7 * tokens * model.width)
    return recipe.training.epochs * epoch


@lru_cache(maxsize=1)
def _bench(study: Study, folder: Path, world: int, severity: float, replicate: int) -> Bench:
    """The estimators of a replicate, one after another in the same process, share its bench."""
    whole = World.load(place(folder, world)).with_severity(severity)
    log = whole.log(np.random.default_rng(study.log_seed(world, replicate)), study.choice)
    shown = log.compact() if study.catalogue == "observed" else log
    return Bench.of(
        whole.aligned_with(shown),
        shown,
        study.recipe("naive", study.training_seed(world, replicate)),
        negatives=study.negatives,
        popular=False,
        validation=study.validation,
    )


def _log(bench: Bench) -> dict[str, Any]:
    log = bench.log
    assert log.step is not None
    best_N = favourites_of(bench.world, log.user, log.step)
    return {
        "fingerprint": log.fingerprint(),
        "events": len(log),
        "users": len(log.users),
        "items": len(np.unique(log.item)),
        "catalogue": len(log.items),
        "favourite_taken": float((best_N == log.item).mean()),
        "unlearnable": bench.unlearnable,
    }


def _ranks(evaluation: Evaluation) -> dict[str, list[int]]:
    """The rank of every target under every protocol: all metrics follow from it."""
    return {
        name.removesuffix(":rank"): column.to_list()
        for name, column in evaluation.frame.to_dict(as_series=True).items()
        if name.endswith(":rank")
    }


def _lists(arm: Arm) -> dict[str, float]:
    """Of the recommended lists: what the world and the training counts say, on average."""
    summary = arm.truth.summary.iter_rows(named=True)
    means = {f"{row['protocol']}:{row['metric']}@{row['k']}": row["mean"] for row in summary}
    return {name: mean for name, mean in means.items() if name.startswith(("truth:", "lists:"))}


def _training(fitted: Fitted) -> dict[str, Any]:
    validated = [epoch for epoch in fitted.epochs if epoch.validation is not None]
    return {
        "epochs": len(fitted.epochs),
        "best": None if fitted.best is None else asdict(fitted.best),
        "validation": [[epoch.epoch, *(epoch.validation or {}).values()] for epoch in validated],
        "loss": [epoch.loss for epoch in fitted.epochs],
    }


class _Share:
    """Turns what a training tells into the share of it that is done."""

    def __init__(self, tell: Tell) -> None:
        self.tell, self.epochs = tell, 1

    def start(self, plan: Plan) -> None:
        self.epochs = plan.epochs

    def batch(self, loss: float) -> None:
        pass

    def epoch(self, epoch: Epoch, best: Best | None) -> None:
        self.tell(epoch.epoch / self.epochs)

    def stop(self) -> None:
        pass
