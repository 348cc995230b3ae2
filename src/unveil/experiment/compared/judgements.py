"""The page of `unveil compare`: evaluations side by side and the tests between them; no model is asked again."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from unveil.experiment.compared import results
from unveil.experiment.compared.side import Judgements
from unveil.experiment.compared.words import CAUTION, standing
from unveil.files import write_whole
from unveil.report.page import Code, KeyFigure, Note, Page, Section, Text, write_page
from unveil.wording import quantity

_KEYS = 4
_MADE = (
    "Accuracy is on the events that were held out for the test; ties go against the target; a user counts once. "
    "Novelty against accuracy, calibration and lists side by side: see the page of unveil report."
)


def beside(page: Path) -> Path:
    """compare.csv beside compare.html."""
    return page.with_suffix(".csv")


def write(found: Judgements, page: Path, command: Sequence[str]) -> None:
    """Every test as CSV, and the page."""
    write_whole(beside(page), found.comparison.tests.write_csv())
    write_page(judgements_page(found, shlex.join(command), beside(page).name), page)


def judgements_page(found: Judgements, command: str, file: str) -> Page:
    """The whole page; every test is in the file beside it."""
    first, *rest = [paragraph for paragraph in standing(found) if paragraph]
    users = found.evaluations[0].summary["n"][0]
    return Page(
        f"{quantity(len(found.names), 'run')} compared",
        f"{', '.join(found.names)}: on the same cases and negatives of {quantity(users, 'user')}.",
        [
            Section("What came out", [Note(first), *map(Text, rest), *results.blocks(found), Note(CAUTION)]),
            Section("Which differences are more than chance", results.tests(found, file)),
            Section("How it was made", [Text(_MADE), Code(command)]),
        ],
        [*_key_figures(found), KeyFigure(f"{users:,}", "users in the test, the same for all runs")],
    )


def _key_figures(found: Judgements) -> list[KeyFigure]:
    means = {name: each.value("full", "NDCG", 10) for name, each in found.judged.items()}
    best = sorted(means, key=lambda name: -means[name])[:_KEYS]
    return [KeyFigure(f"{means[name]:.3f}", f"{name}: NDCG@10 among all items") for name in best]
