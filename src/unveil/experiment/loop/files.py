"""A loop as files: loop.csv and results.json for programs, a page and a reading for people."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from unveil.experiment.loop.figures import FIGURES
from unveil.experiment.loop.made import rules
from unveil.experiment.loop.outcome import LoopOutcome
from unveil.experiment.loop.page import loop_page, table
from unveil.experiment.loop.run import Looped
from unveil.experiment.loop.words import caution, reading
from unveil.files import versions, write_json, write_whole
from unveil.report.page import Cell, write_page
from unveil.settings import plain

_FILES = (
    "`loop.csv` has a row for each replicate, model and round; `results.json` means and intervals over replicates; "
    "`index.html` the plots."
)


def write(looped: Looped, folder: Path, command: Sequence[str]) -> None:
    """Every file of a loop. The same rounds give the same bytes, but for about.json."""
    told = shlex.join(command)
    write_whole(folder / "loop.csv", looped.outcome.table().write_csv())
    write_page(loop_page(looped, told), folder / "index.html")
    write_whole(folder / "README.md", markdown(looped, told))
    write_json(folder / "about.json", _about(looped, told))
    write_json(folder / "results.json", results(looped, told))


def results(looped: Looped, command: str) -> dict[str, Any]:
    """All that was found. Nothing in it depends on the clock."""
    plan, outcome = looped.plan, looped.outcome
    return {
        "question": "loop" if plan.tuned_for is None else "rq5",
        "command": command,
        "preset": plan.preset,
        "tuned_for": plan.tuned_for,
        "replicates": outcome.replicates,
        "rounds": outcome.rounds,
        "estimators": outcome.models,
        "data": {"fingerprint": looped.log.fingerprint()},
        "loop": plain(plan.loop),
        "models": {name: recipe and plain(recipe) for name, recipe in plan.models.items()},
        "units": "replicates",
        "interval": "95%, Student's t over replicates; none for one replicate",
        "reading": reading(plan, outcome),
        "rows": rows(outcome, plan.preset, plan.loop.k, worlds=int(looped.world is not None)),
    }


def rows(outcome: LoopOutcome, preset: str, k: int, worlds: int) -> list[dict[str, Any]]:
    """A row for each model, figure and round."""
    return [
        {
            "estimator": model,
            "preset": preset,
            "severity": None,
            "protocol": "loop",
            "evaluation": FIGURES[key].group,
            "metric": key,
            "k": k,
            "round": round,
            "mean": found.mean,
            "low": found.low,
            "high": found.high,
            "replicates": found.n,
            "worlds": worlds,
            "paper": None,
        }
        for key in outcome.figures
        for model in outcome.models_of(key)
        for round in outcome.rounds_of(key)
        for found in [outcome.estimate(model, key, round)]
    ]


def markdown(looped: Looped, command: str) -> str:
    """The README of a loop."""
    plan, outcome = looped.plan, looped.outcome
    shown = table(looped)
    head = [column.title for column in shown.columns]
    body = [[cell.text if isinstance(cell, Cell) else cell for cell in row] for row in shown.rows]
    lines = [head, ["---"] * len(head), *body]
    figures = [
        f"- {FIGURES[key].named(plan.loop.k)} (`{key}`): {FIGURES[key].explained(plan.loop.k)}"
        for key in outcome.figures
    ]
    return "\n".join(
        [
            "# What feedback does to recommendations",
            "",
            *(f"{paragraph}\n" for paragraph in (*reading(plan, outcome), caution(plan, outcome))),
            f"{shown.caption}:",
            "",
            *(f"| {' | '.join(line)} |" for line in lines),
            "",
            "## How it was made",
            "",
            f"```\n{command}\n```",
            "",
            *(f"{paragraph}\n" for paragraph in rules(looped)),
            "## The figures",
            "",
            *figures,
            "",
            _FILES,
            "",
        ]
    )


def _about(looped: Looped, command: str) -> dict[str, Any]:
    return {
        "command": command,
        "versions": versions(),
        "seconds": round(looped.seconds, 1),
        "worker_seconds": round(looped.worker_seconds, 1),
    }
