"""What a research question is to the machinery: a name, and its own way to read the figures."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from unveil.report.page import Section

if TYPE_CHECKING:
    from unveil.experiment.reproduce.run import Answer


@dataclass(frozen=True)
class Sheet:
    """A table for a terminal: a title, heads, rows of text, and what the marks mean."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    foot: str = ""


class Question(Protocol):
    """RQ1, RQ2, … Each says the same things of an answer in its own words."""

    @property
    def name(self) -> str:
        """rq1."""

    @property
    def title(self) -> str:
        """The question itself, as a sentence."""

    def sheets(self, answer: "Answer") -> list[Sheet]:
        """Tables for the terminal."""

    def reading(self, answer: "Answer") -> list[str]:
        """What the figures say, each a paragraph. Words are chosen by the figures."""

    def sections(self, answer: "Answer") -> list[Section]:
        """The parts of the page that are the question's own."""

    def findings(self, answer: "Answer") -> dict[str, Any]:
        """What the question adds to results.json."""
