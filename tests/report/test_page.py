"""A page is well-formed, self-contained, accessible and the same every time."""

from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from tests.pages import Outline, faults
from unveil.errors import UnveilError
from unveil.report import charts
from unveil.report.page import (
    Cell,
    Code,
    Column,
    Entry,
    Figure,
    Figures,
    KeyFigure,
    Lists,
    Note,
    Page,
    Section,
    Table,
    Text,
    count,
    number,
    percent,
    plain,
    render,
    write_page,
)

TABLE = Table("Estimators", [Column("name"), Column("NDCG", True, "mean of 5")], [["naive", number(0.5)], ["<b>", "–"]])
LISTS = Lists("User 7", "History: <x>", {"naive": [Entry("Heat", "taken 9 times", "taken next")]})


def figure(name: str) -> Figure:
    drawing = charts.curves(np.arange(1, 3), {"a": np.array([2.0, 1.0])}, [0], "loss", name).drawing
    return Figure("Loss falls", drawing, "A falling curve", "over epochs", TABLE)


PAGE = Page(
    "A & B",
    "What <happened>.",
    [
        Section("One", [Text("words"), TABLE, Note("careful", warning=True)]),
        Section("Two", [figure("one"), Figures([figure("two"), figure("three")]), Code("unveil demo")]),
        Section("Three", [Note("by the way"), LISTS]),
    ],
    [KeyFigure("42", "answers")],
)


@pytest.fixture(scope="module")
def outline() -> Outline:
    return Outline(render(PAGE))


def test_every_tag_is_closed_and_every_block_is_there(outline: Outline) -> None:
    assert outline.unclosed == []
    assert faults(render(PAGE)) == []
    assert outline.tags["figure"] == 3
    assert outline.tags["table"] == 4  # one in the text, one behind each figure
    assert outline.tags["svg"] == 3
    assert (outline.tags["h1"], outline.tags["h2"], outline.tags["aside"], outline.tags["pre"]) == (1, 3, 2, 1)


def test_ids_are_unique_and_references_meet_one(outline: Outline) -> None:
    assert [name for name, times in Counter(outline.ids).items() if times > 1] == []
    assert outline.references <= set(outline.ids)
    assert {link.removeprefix("#") for link in outline.links} <= set(outline.ids)


def test_nothing_comes_from_outside(outline: Outline) -> None:
    assert all(link.startswith("#") for link in outline.links)
    html = render(PAGE)
    assert "@import" not in html
    assert "url(http" not in html


def test_text_is_escaped_and_drawings_are_not() -> None:
    html = render(PAGE)
    assert "A &amp; B" in html
    assert "What &lt;happened&gt;." in html
    assert "&lt;b&gt;" in html
    assert "History: &lt;x&gt;" in html
    assert figure("one").drawing.svg in html


def test_tables_and_figures_speak_to_screen_readers(outline: Outline) -> None:
    scopes = Counter(found.get("scope") for tag, found in outline.attributes if tag == "th")
    assert scopes == {"col": 2 * 4, "row": 2 * 4}
    assert outline.tags["caption"] == 4
    images = [found for _, found in outline.attributes if found.get("role") == "img"]
    assert [found["aria-label"] for found in images] == ["A falling curve"] * 3
    assert ("html", {"lang": "en"}) in outline.attributes


def test_numbers_carry_the_value_they_are_sorted_by(outline: Outline) -> None:
    values = [found["data-value"] for tag, found in outline.attributes if tag == "td" and "data-value" in found]
    assert values == ["0.5"] * 4


def test_a_table_that_must_keep_its_order_cannot_be_sorted() -> None:
    fixed = Table("Steps", [Column("step")], [["1"]], sortable=False)
    assert "<table class=" in (html := render(Page("t", "l", [Section("s", [fixed])])))
    assert "data-sortable>" not in html


@pytest.mark.parametrize(
    ("cell", "text", "value"),
    [
        (count(12667), "12,667", 12667),
        (number(-0.126), "−0.13", -0.126),
        (percent(0.0354), "3.5%", 0.0354),
        (plain(-1.0), "−1", -1),
        (plain(0.45), "0.45", 0.45),
    ],
)
def test_cells_show_numbers_as_people_write_them(cell: Cell, text: str, value: float) -> None:
    assert (cell.text, cell.value) == (text, value)


def test_the_same_page_gives_the_same_bytes() -> None:
    assert render(PAGE) == render(PAGE)


def test_a_page_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    write_page(PAGE, tmp_path / "deep" / "index.html")
    assert (tmp_path / "deep" / "index.html").read_text(encoding="utf-8") == render(PAGE)
    (tmp_path / "file").write_text("")
    with pytest.raises(UnveilError, match="cannot write"):
        write_page(PAGE, tmp_path / "file" / "index.html")
    drawn = [f"{name}.{kind}" for name in ("one", "three", "two") for kind in ("png", "svg")]
    assert sorted(path.name for path in tmp_path.rglob("*")) == sorted(
        ["deep", "figures", "file", "index.html", *drawn]
    )


def test_drawings_beside_a_page_are_those_of_the_page(tmp_path: Path) -> None:
    beside = tmp_path / "audit-figures"
    write_page(PAGE, tmp_path / "audit.html")
    (beside / "notes.txt").write_text("mine")
    write_page(Page("t", "l", [Section("s", [figure("other")])]), tmp_path / "audit.html")
    assert sorted(path.name for path in beside.iterdir()) == ["notes.txt", "other.png", "other.svg"]
    root = ElementTree.parse(beside / "other.svg").getroot()
    space = "{http://www.w3.org/2000/svg}"
    assert (root.findtext(f"{space}title"), root.findtext(f"{space}desc")) == ("Loss falls", "A falling curve")
    assert "prefers-color-scheme: dark" in (root.findtext(f"{space}style") or "")
