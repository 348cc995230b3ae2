"""The results as files: theory.json with everything, theory.csv with one number a row."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl

from unveil.experiment.theory.finding import TOLERANCE
from unveil.experiment.theory.monte_carlo import LEVEL
from unveil.experiment.theory.run import Theory
from unveil.experiment.theory.words import SCALE, SCOPE, reading
from unveil.files import write_json, write_whole

_COLUMNS = ("part", "claim", "setting", "choice", "relevance", "estimator", "severity", "quantity", "value", "low",
            "high", "formula", "verdict")  # fmt: skip


def write_results(theory: Theory, folder: Path) -> None:
    """Both files."""
    write_json(folder / "theory.json", results(theory))
    write_whole(folder / "theory.csv", table(theory).write_csv())


def results(theory: Theory) -> dict[str, Any]:
    """All that was computed, as JSON can hold it. Nothing in it depends on the clock."""
    size = theory.settings
    return {
        "command": f"unveil theory --severity {size.severity:g} --seed {size.seed} --draws {size.draws}",
        "settings": asdict(size),
        "rules": {"tolerance": TOLERANCE, "level_of_all_intervals_together": LEVEL, "scale": SCALE, "scope": SCOPE},
        "findings": [
            {**asdict(each), "bias": each.bias, "found": each.found, "holds": each.holds, "verdict": each.verdict}
            for each in theory.findings
        ],
        "choices": [asdict(each) for each in theory.choosers],
        "monte_carlo": [{**asdict(row), "agrees": row.agrees, "found": row.found} for row in theory.estimated],
        "minimisers": [asdict(row) for row in theory.minimisers],
        "distances": {choice: dict(row) for choice, row in theory.distances.items()},
        "example": asdict(theory.example),
        "reading": reading(theory),
    }


def table(theory: Theory) -> pl.DataFrame:
    """Every number with what it is a number of."""
    rows = [*_claims(theory), *_choices(theory), *_drawn(theory), *_minima(theory)]
    schema = {
        name: pl.Float64 if name in ("severity", "value", "low", "high", "formula") else pl.String for name in _COLUMNS
    }
    return pl.DataFrame([{name: row.get(name) for name in _COLUMNS} for row in rows], schema=schema)


def _claims(theory: Theory) -> list[dict[str, Any]]:
    return [
        {
            "part": f"claim: {each.topic}",
            "claim": each.claim,
            "setting": each.setting,
            "severity": theory.settings.severity,
            "quantity": "relative bias",
            "value": each.bias,
            "formula": each.formula,
            "verdict": each.verdict,
        }
        for each in theory.findings
    ]


def _choices(theory: Theory) -> list[dict[str, Any]]:
    return [
        {
            "part": "choice",
            "choice": each.choice,
            "relevance": each.relevance,
            "estimator": estimator,
            "severity": theory.settings.severity,
            "quantity": "relative bias",
            "value": bias,
        }
        for each in theory.choosers
        for estimator, bias in each.bias.items()
    ]


def _drawn(theory: Theory) -> list[dict[str, Any]]:
    same = {"part": "drawn logs", "severity": theory.settings.severity, "quantity": "relative bias"}
    return [{**same, **asdict(row), "value": row.mean, "verdict": row.found} for row in theory.estimated]


def _minima(theory: Theory) -> list[dict[str, Any]]:
    parts = ("bias", "slot_distance", "slot_first", "user_distance", "user_first", "log_first")
    return [
        {
            "part": "minimiser",
            "estimator": row.estimator,
            "severity": row.severity,
            "quantity": quantity,
            "value": getattr(row, quantity),
            **({"low": row.low, "high": row.high} if quantity == "log_first" else {}),
        }
        for row in theory.minimisers
        for quantity in parts
        if getattr(row, quantity) is not None
    ]
