"""A tiny world, plans that take a second, and results made up figure by figure."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from unveil.experiment.outcome import STANDARD, TRUE
from unveil.experiment.reproduce.plan import Plan
from unveil.experiment.reproduce.results import Place, Results
from unveil.experiment.reproduce.study import Study
from unveil.simulation.builtin import WorldSpec
from unveil.simulation.world import World

SPEC = WorldSpec(users=40, items=30, steps=12, shortest=5, severity=1.5)
CHANGES = ("model.width=8", "model.length=12", "task.batch_size=16", "training.epochs=2", "training.validate_every=1")
NEGATIVES = 5


def tiny_world(folder: Path) -> Path:
    """A saved world."""
    World.builtin(SPEC).save(folder)
    return folder


def tiny_study(world: Path) -> Study:
    return Study(data=str(world), preset="quick", negatives=NEGATIVES, changes=CHANGES)


def tiny_plan(world: Path, severities: Sequence[float] = (1.0,), replicates: int = 2) -> Plan:
    return Plan(tiny_study(world), tuple(severities), replicates=replicates)


def cell(true: Sequence[int], standard: Sequence[int], relevance: float = 0.5) -> dict[str, Any]:
    """A cell with these ranks of its cases under both rankings."""
    return {
        "ranks": {
            TRUE: {"full": list(true), "uniform-100": list(true)},
            STANDARD: {"full": list(standard), "uniform-100": list(standard)},
        },
        "lists": {"truth:Relevance@10": relevance},
        "log": {"users": 4, "items": 9, "events": 40, "favourite_taken": 0.5, "unlearnable": 0.0},
        "weights": None,
        "training": {
            "epochs": 2,
            "best": {"epoch": 1, "value": 0.5},
            "validation": [[1, 0.5], [2, 0.4]],
            "loss": [1, 1],
        },
        "seconds": 1.0,
    }


Ranks = Mapping[str, Sequence[Sequence[int]]]


def made_up(true: Ranks, standard: Ranks | None = None, *, worlds: int = 1, severity: float = 1.0) -> Results:
    """For each arm the ranks of its cases, one list for each world and replicate, world by world."""
    replicates = len(next(iter(true.values()))) // worlds
    cells = {
        Place(n // replicates, severity, n % replicates, arm): cell(ranks, (standard or true)[arm][n])
        for arm, every in true.items()
        for n, ranks in enumerate(every)
    }
    return Results(cells, (severity,), worlds, replicates, list(true))
