"""Scores of propensities as a folder: a page and every figure."""

import shlex
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from unveil.data.interactions import Interactions
from unveil.experiment.propensities.page import page
from unveil.experiment.propensities.run import Scores
from unveil.files import atomic_folder
from unveil.propensity.base import PROPENSITIES
from unveil.report.page import write_page
from unveil.runs.folder import versions, write_json

SCORES = "scores.json"


def write(
    found: Scores, log: Interactions, folder: Path, command: Sequence[str], *, overwrite: bool = False
) -> dict[str, Any]:
    """The folder, whole or not at all; what it says of itself is given back."""
    scores = {name: asdict(each) for name, each in found.scores.items()}
    curves = {name: each.pop("curve") for name, each in scores.items()}
    about = {
        "command": shlex.join(command),
        "versions": versions(),
        "log": {"fingerprint": log.fingerprint(), "events": len(log)},
        "slots": found.slots,
        "items": found.items,
        "severity": found.severity,
        "naive": found.naive,
        "scores": scores,
        "curves": curves,
        "assumes": {name: assumed(name) for name in scores},
    }
    with atomic_folder(folder, overwrite=overwrite) as draft:
        write_json(draft / SCORES, about)
        write_page(page(about), draft / "index.html")
    return about


def assumed(name: str) -> str:
    """What a propensity takes for granted."""
    chosen = PROPENSITIES[name]
    known = "nothing: it is the truth" if chosen.source == "truth" else "that popularity is exposure"
    return str(getattr(chosen, "assumes", known))
