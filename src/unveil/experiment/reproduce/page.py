"""The page of an answer: the reading, what is the question's own, and how it was made."""

from unveil.experiment.report import Code, Note, Page, Section, Text
from unveil.experiment.reproduce.run import Answer
from unveil.experiment.reproduce.words import caution


def page(answer: Answer, command: str) -> Page:
    """The whole page."""
    first, *rest = answer.question.reading(answer)
    return Page(
        title=answer.question.title,
        lede=first,
        sections=[
            Section("What the figures say", [*(Text(paragraph) for paragraph in rest), Note(caution(answer.results))]),
            *answer.question.sections(answer),
            Section("How it was made", [Code(command)]),
        ],
    )
