"""What an advice is, and how its numbers are written."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Advice:
    """One thing to do or to know, with its reason and the figure it stands on."""

    about: str  # the figure's name in the audit: order, leakage, …
    title: str  # what to do or to know
    figure: str  # the figure, as people write it
    of: str  # what it is a figure of
    reason: str
    warning: bool = False  # whether results would mislead without it


def share(value: float) -> str:
    """93%, 0.4%, below 0.1%; 100% and 0% are never rounded to."""
    if 0 < value < 0.001:
        return "below 0.1%"
    if 0.995 <= value < 1:
        return "over 99%"
    return f"{value:.1%}" if 0 < value < 0.0995 else f"{value:.0%}"


def times(ratio: float) -> str:
    """3.2 ×."""
    return "∞ ×" if ratio == float("inf") else f"{ratio:,.1f} ×" if ratio < 100 else f"{ratio:,.0f} ×"


def metric(value: float) -> str:
    """0.031."""
    return f"{value:.3f}"
