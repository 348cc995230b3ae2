"""The demo's results as files: for programs, and for those who want to check the page."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unveil.evaluation.result import RULES
from unveil.experiment.outcome import HEADLINE, Outcome
from unveil.files import write_json, write_whole
from unveil.settings import plain

if TYPE_CHECKING:
    from unveil.experiment.demo.run import Shown


def write_results(shown: "Shown", folder: Path) -> None:
    """results.json: settings, every figure, differences and weights; results.csv: every figure."""
    write_json(folder / "results.json", results(shown))
    write_whole(folder / "results.csv", shown.outcome.table.write_csv())


def results(shown: "Shown") -> dict[str, Any]:
    """All that was measured, as JSON can hold it. Nothing in it depends on the clock."""
    outcome = shown.outcome
    return {
        "demo": plain(shown.demo),
        "units": outcome.units,
        "rules": RULES | {"interval": interval(outcome)},
        "headline": HEADLINE,
        "gap_closed": {arm: outcome.gap_closed(arm) for arm in outcome.trained},
        "less_naive": {arm: asdict(found) for arm, found in outcome.differences.items()},
        "weights": _weights(outcome),
        "results": outcome.table.to_dicts(),
    }


def interval(outcome: Outcome) -> str:
    """What the intervals are."""
    if len(outcome.trials) == 1:
        return RULES["interval"]
    return "95%, Student's t over replicates: worlds, logs and trainings drawn anew"


def _weights(outcome: Outcome) -> dict[str, Any]:
    """Of the first replicate."""
    arms = outcome.trials[0].arms
    return {arm.name: asdict(arm.weights.diagnostics) for arm in arms if arm.weights is not None}
