"""Prose from templates: paragraphs, tables, figures side by side, whole pages."""

import numpy as np
import pytest
from jinja2 import UndefinedError

from unveil.report.charts import curves
from unveil.report.page import Cell, Figure, Figures, Note, Table, Text
from unveil.report.prose import Prose, bold, portion, times

PAGE = """
{% block title %}A {{ kind }} page{% endblock %}
{% block lede %}
All of it,
in one place.
{% endblock %}
{% block keys %}
**{{ 0.25 | percent }}** of the items

**12** users
{% endblock %}
{% block page %}
## Tables
Table: Figures of `x`
| name | n | share |
|---|---:|---:|
{% for n in (1200, -3) %}
| row {{ n }} | {{ n | count }} | {{ 0.5 | percent }} |
{% endfor %}

## Figures
{{ show("one", "First caption", title="First") }}
{{ show("two", title="Second", beside=true) }}
> Warning: take care.
{% endblock %}
"""


def figure(name: str) -> Figure:
    return Figure("", curves(np.arange(3), {"a": np.array([1.0, 2.0, 2.0])}, [0], "y", name).drawing, "three points")


def test_a_whole_page_comes_from_one_template() -> None:
    page = Prose([PAGE], {"kind": "small"}).page({"one": figure("one"), "two": figure("two")})
    assert (page.title, page.lede) == ("A small page", "All of it, in one place.")
    assert [(key.value, key.label) for key in page.key_figures] == [("25%", "of the items"), ("12", "users")]
    (table,), (pair, note) = (section.blocks for section in page.sections)
    assert isinstance(table, Table)
    assert table.caption == "Figures of `x`"
    assert table.sortable
    assert [column.numeric for column in table.columns] == [False, True, True]
    assert list(table.rows[0]) == ["row 1200", Cell("1,200", 1200), Cell("50%", 50)]
    assert table.rows[1][1] == Cell("-3", -3)
    assert isinstance(pair, Figures)
    assert [(each.title, each.caption) for each in pair.figures] == [("First", "First caption"), ("Second", "")]
    assert note == Note("take care.", warning=True)


def test_an_unknown_name_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        Prose([PAGE], {}).line("title")
    with pytest.raises(KeyError):
        Prose([PAGE], {"kind": ""}).page({})


def test_a_block_that_is_not_there_is_empty() -> None:
    assert Prose([PAGE], {"kind": ""}).paragraphs("nothing") == []
    assert Prose(["{% block a %}\nOne.\n\nTwo.\n{% endblock %}"], {}).sections("a", {}, "T")[0].blocks == [
        Text("One."),
        Text("Two."),
    ]


def test_figures_as_people_write_them() -> None:
    assert [portion(value) for value in (0, 0.0004, 0.004, 0.25, 0.9999, 1)] == [
        *("0%", "below 0.1%", "0.4%", "25%", "over 99%", "100%")
    ]
    assert [times(value) for value in (1.25, 250, float("inf"))] == ["1.2 ×", "250 ×", "∞ ×"]
    assert bold("**93%** of the items") == ("93%", "of the items")
