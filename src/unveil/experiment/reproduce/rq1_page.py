"""The page of RQ1."""

from unveil.experiment.report import Section
from unveil.experiment.reproduce.run import Answer


def sections(answer: Answer) -> list[Section]:
    """Tables and plots."""
    return []
