"""docs/theory.md names what exists, and shows the figures that the command prints."""

import re
from importlib import import_module
from pathlib import Path

import pytest

from unveil.report.page import Cell, Table
from unveil.runs.workers import Inline
from unveil.simulation.choice import CHOICES
from unveil.simulation.theory.claims import enumerated, findings, with_verdict
from unveil.studies.engine import Report, run
from unveil.studies.theory import Theory, choice_name, relative

PAGE = Path(__file__).parents[2] / "docs" / "theory.md"
NAMES = sorted(set(re.findall(r"`(unveil(?:\.\w+)+)`", PAGE.read_text(encoding="utf-8"))))


def found(name: str) -> object:
    """The module, class, function or method of a dotted name."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            thing: object = import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            thing = getattr(thing, part)
        return thing
    raise AssertionError(f"nothing is called {name}")


@pytest.mark.parametrize("name", NAMES)
def test_what_the_page_names_exists(name: str) -> None:
    assert found(name) is not None


def test_there_are_names_to_check() -> None:
    assert len(NAMES) > 30
    with pytest.raises(AttributeError):
        found("unveil.estimators.base.no_such_loss")


def test_the_claims_on_the_page_are_those_that_are_found() -> None:
    page = PAGE.read_text(encoding="utf-8")
    checked = list(map(with_verdict, findings(enumerated())))
    for each in checked:
        assert "| {topic}: {claim}, {setting} | {} | {verdict} |".format(relative(each["bias"]), **each) in page
    assert len(re.findall(r"^\| (?:Proposition|Assumptions|In training).* \|$", page, re.MULTILINE)) == len(checked)


@pytest.mark.slow
def test_the_tables_on_the_page_are_those_that_are_printed(tmp_path: Path) -> None:
    page = PAGE.read_text(encoding="utf-8")
    _, _, *drawn, _, distances, minima = map(_rows, Report(run(Theory(), tmp_path, Inline())).tables)
    for row in minima:
        assert f"| {' | '.join(row)} |" in page
    for row in distances:
        assert f"| {' | '.join(row[:5])} |" in page
    for choice, rows in zip(sorted(CHOICES), drawn, strict=True):
        assert f"| {' | '.join([choice_name(choice), *(row[1] for row in rows[:4])])} |" in page


def _rows(table: Table) -> list[list[str]]:
    return [[cell.text if isinstance(cell, Cell) else cell for cell in row] for row in table.rows]
