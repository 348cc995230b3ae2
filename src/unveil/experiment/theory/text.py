"""How numbers and names are written in the report of the theory."""

from unveil.experiment.theory.finding import TOLERANCE
from unveil.report.page import Cell

#: What people call the choice models; others go by their own names.
_CHOICES = {
    "rational_all": "the best of all",
    "rational_exposed": "the best of the exposed",
    "categorical_all": "one of all by chance",
    "categorical_exposed": "one of the exposed by chance",
}


def choice_name(choice: str) -> str:
    """How the user chooses, in words."""
    return _CHOICES.get(choice, choice)


def relative(bias: float) -> str:
    """+37%, −4.2%; within rounding 0."""
    if abs(bias) <= TOLERANCE:
        return "0"
    digits = 0 if abs(bias) >= 0.1 else 1 if abs(bias) >= 0.01 else 3
    return f"{bias:+.{digits}%}".replace("-", "−")


def percentage(value: float) -> str:
    """A share: 4%, 33%, 100%."""
    return f"{value:.0%}"


def cell(bias: float) -> Cell:
    """A bias in a table, sorted by its value."""
    return Cell(relative(bias), bias)


def interval(low: float, high: float) -> str:
    """[−8.1%, +2.3%]."""
    return f"[{low:+.1%}, {high:+.1%}]".replace("-", "−")
