"""Settings and trials in words."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from unveil.experiment.tune.record import Record


def short(name: str) -> str:
    """A setting by its last name: model.width → width."""
    return name.rpartition(".")[2].replace("_", " ")


def value_text(value: object) -> str:
    """A value as short as it can be written and still be told from others."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def settings_text(settings: Mapping[str, Any]) -> str:
    """Settings in one line."""
    return ", ".join(f"{short(name)} {value_text(value)}" for name, value in settings.items())


def spread(record: Record) -> float:
    """Standard deviation over the replicates; not a number for one."""
    values = [each.value for each in record.replicates]
    return float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")


def figure(record: Record) -> str:
    """What came of a trial: its value with the spread of its replicates, or why it has none."""
    if record.value is None:
        return record.state if record.why is None else f"failed: {record.why}"
    off = spread(record)
    return f"{record.value:.4f}" if np.isnan(off) else f"{record.value:.4f} ±{off:.4f}"
