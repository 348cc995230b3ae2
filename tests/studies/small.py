"""A tiny world, studies that take a second, and answers made up rank by rank."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from unveil.simulation.builtin import WorldSpec
from unveil.simulation.world import World
from unveil.studies.engine import Answer, Report, Source
from unveil.studies.results import STANDARD, TRUE
from unveil.studies.rq1 import RQ1
from unveil.studies.semisynthetic import SemiSynthetic

SPEC = WorldSpec(users=40, items=30, steps=12, shortest=5, severity=1.5)
CHANGES = ("model.width=8", "model.length=12", "task.batch_size=16", "training.epochs=2", "training.validate_every=1")
NEGATIVES = 5
WORLD = {
    "world": 0,
    "description": {
        "users": 4,
        "items": 9,
        "steps": 10,
        "favourites": 3,
        "commonest_favourite": 0.5,
        "relevance": {"mean": 0.5, "over_items": 0.1},
        "exposure": {"mean": 0.5},
    },
    "seconds": 1.0,
}


def tiny_world(folder: Path) -> Path:
    """A saved world."""
    World.builtin(SPEC).save(folder)
    return folder


def tiny(kind: type[SemiSynthetic], world: Path, **fields: Any) -> Any:
    """A study on it, of two replicates."""
    usual = {"data": str(world), "preset": "quick", "negatives": NEGATIVES, "changes": CHANGES, "replicates": 2}
    return kind(**{**usual, **fields})


def record(true: Sequence[int], standard: Sequence[int], relevance: float = 0.5) -> dict[str, Any]:
    """Of a cell with these ranks of its cases under both rankings."""
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


def answer_of(study: SemiSynthetic, records: Mapping[str, Mapping[str, Any]]) -> Answer:
    """An answer with these records by key; arms without any are left out."""
    cells = [cell for cell in study.cells() if cell.key in records]
    worlds = {f"w{number}": {**WORLD, "world": number} for number in range(study.worlds)}
    return Answer(study, Source("made up", "0" * 64, "made up"), cells, {**worlds, **records})


Ranks = Mapping[str, Sequence[Sequence[int]]]


def made_up(
    true: Ranks,
    standard: Ranks | None = None,
    *,
    kind: type[SemiSynthetic] = RQ1,
    worlds: int = 1,
    severity: float = 1.0,
    **fields: Any,
) -> Answer:
    """For each arm the ranks of its cases, one list for each world and replicate, world by world."""
    replicates = len(next(iter(true.values()))) // worlds
    grid = {"severities": (severity,), "worlds": worlds, "replicates": replicates, "estimators": tuple(true)}
    study = kind(**{"data": "builtin", "preset": "quick", **grid, **fields})
    records = {
        f"w{n // replicates}-p{severity:g}-r{n % replicates}-{arm}": record(ranks, (standard or true)[arm][n])
        for arm, every in true.items()
        for n, ranks in enumerate(every)
    }
    return answer_of(study, records)


def said(answer: Answer) -> str:
    """What an answer says, in one line."""
    return " ".join(Report(answer, "unveil").paragraphs)
