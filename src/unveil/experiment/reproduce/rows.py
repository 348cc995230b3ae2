"""Every figure of a grid as rows that a program can check."""

from typing import Any

from unveil.experiment.outcome import TRUE
from unveil.experiment.reproduce.published import published
from unveil.experiment.reproduce.results import Figure, Results


def rows(results: Results, preset: str) -> list[dict[str, Any]]:
    """One row for each severity, estimator, evaluation, protocol, metric and k."""
    return [
        _row(results, preset, severity, arm, figure)
        for severity in results.severities
        for arm in results.arms
        for figure in (*results.figures, *results.list_figures)
    ]


def _row(results: Results, preset: str, severity: float, arm: str, figure: Figure) -> dict[str, Any]:
    found = results.estimate(severity, arm, figure)
    ranked = figure in results.figures and figure.evaluation == TRUE and arm in results.trained
    gap = results.gap_closed(arm, figure, [severity]) if ranked else None
    return {
        "estimator": arm,
        "preset": preset,
        "severity": severity,
        "protocol": figure.protocol,
        "evaluation": figure.evaluation,
        "metric": figure.metric,
        "k": figure.k,
        "mean": found.mean,
        "low": found.low,
        "high": found.high,
        "replicates": results.replicates,
        "worlds": results.worlds,
        "paper": published(arm, *figure, severity),
        "gap_closed": gap and gap.mean,
        "gap_closed_low": gap and gap.low,
        "gap_closed_high": gap and gap.high,
    }
