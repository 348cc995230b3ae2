"""Plots: themed, with unique ids, with a hover text for each mark, and the same every time."""

import re
from collections.abc import Callable
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unveil.report import charts, plots
from unveil.report.svg import DARK, LIGHT, Drawing, stylesheet

COUNT = np.array([5, 0, 17, 1, 1, 3])
NAMES = ["a", "b", "c", "d & e", "f", "g"]
DOTS = [charts.Dot("a", 0.3, 0.2, 0.4, 0, "a: 0.300"), charts.Dot("b", 0.1, 0.1, 0.1, None, "b: 0.100")]
SVG = "{http://www.w3.org/2000/svg}"

DRAWN: dict[str, Callable[[], Drawing]] = {
    "lorenz": lambda: (
        charts.lorenz_figure({"a": np.array([0, 0.2, 1]), "b": np.array([0, 0.4, 1])}, "all", "lorenz").drawing
    ),
    "scatter": lambda: plots.scatter(COUNT + 1, COUNT, COUNT, NAMES, ("x", "y"), "scatter").drawing,
    "bars": lambda: charts.bars({"a": 0.4, "b": 0.0}, ["first", "second"], "share", "bars"),
    "parallel": lambda: charts.parallel(
        [("a", [("low", 0.0)]), ("a", [("high", 1.0)])], {"one": [0, 1], "two": [1, 0]}, "parallel"
    ),
    "dots": lambda: charts.intervals(DOTS, "NDCG@10", 0.5, "dots").drawing,
    "curves": lambda: charts.curves(np.arange(3), {"a": COUNT[:3], "b": COUNT[3:]}, [0, None], "y", "curves").drawing,
    "distributions": lambda: plots.distributions({"a": COUNT + 0.5, "b": COUNT + 2.0}, "θ").drawing,
}


def contrast(one: str, other: str) -> float:
    """(L₁ + 0.05) / (L₂ + 0.05), L₁ ≥ L₂ the relative luminances: the contrast ratio of WCAG 2."""
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    """0.2126 R + 0.7152 G + 0.0722 B of the channels on a linear scale."""
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def titles(drawing: Drawing) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(drawing.svg).iter(f"{SVG}title")]


@pytest.mark.parametrize("draw", DRAWN.values(), ids=DRAWN)
def test_a_drawing_takes_its_colours_and_fonts_from_the_page(draw: Callable[[], Drawing]) -> None:
    svg = draw().svg
    ElementTree.fromstring(svg)
    assert re.findall(r"#[0-9a-fA-F]{3,8}\b(?=[;\"])", re.sub(r"(url\(|href=\")#[^)\"]*", "", svg)) == []
    assert "var(--c1)" in svg
    assert "font-family" not in svg
    assert "DejaVu" not in svg
    assert "<style" not in svg
    assert "metadata" not in svg


@pytest.mark.parametrize(("name", "draw"), DRAWN.items(), ids=DRAWN)
def test_ids_carry_the_drawings_name_and_references_meet_one(name: str, draw: Callable[[], Drawing]) -> None:
    svg = draw().svg
    ids = re.findall(r'\bid="([^"]+)"', svg)
    assert len(ids) == len(set(ids))
    assert all(each.startswith(f"{name}-") for each in ids)
    assert set(re.findall(r'(?:url\(|href=")#([^)"]+)', svg)) <= set(ids)


@pytest.mark.parametrize("draw", DRAWN.values(), ids=DRAWN)
def test_every_drawing_has_values_to_point_at_each_on_a_mark_of_its_own(draw: Callable[[], Drawing]) -> None:
    marks = [element for element in ElementTree.fromstring(draw().svg).iter() if "data-point" in element.attrib]
    assert marks
    assert all((mark.findtext(f"{SVG}title") or "").strip() for mark in marks)


def test_points_without_a_value_are_left_out_and_the_name_stands_at_the_last_that_has_one() -> None:
    stopped = {"early": np.array([0.1, 0.2, np.nan]), "late": np.array([0.1, 0.3, 0.4]), "never": np.full(3, np.nan)}
    drawing = charts.curves(np.arange(1, 4), stopped, [0, 1, 2], "y", "curves").drawing
    assert titles(drawing) == [
        "early, epoch 1: 0.1000",
        "early, epoch 2: 0.2000",
        "late, epoch 1: 0.1000",
        "late, epoch 2: 0.3000",
        "late, epoch 3: 0.4000",
    ]
    assert "early</text>" in drawing.svg
    assert "never" not in drawing.svg


def test_many_marks_on_one_line_do_not_hide_it() -> None:
    few, many = (charts.curves(np.arange(n), {"a": np.arange(n) / n}, [0], "y", "curves").drawing for n in (40, 41))
    assert len(titles(few)) == 40
    assert len(titles(many)) == 41
    hidden = re.search(r'id="curves-marks0".*?</g>\s*</g>', many.svg, re.S)
    assert hidden is not None
    assert "opacity: 0" in hidden[0]


@pytest.mark.parametrize("draw", [DRAWN["curves"], DRAWN["dots"]], ids=["curves", "dots"])
def test_a_drawing_is_a_picture_too_the_same_every_time(draw: Callable[[], Drawing]) -> None:
    picture = draw().png()
    assert picture.startswith(b"\x89PNG")
    assert picture == draw().png()


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_every_colour_can_be_read_on_every_ground(colours: dict[str, str]) -> None:
    grounds = [colours[name] for name in ("paper", "raised", "warn-back")]
    inks = {name: value for name, value in colours.items() if value not in grounds and name != "line"}
    poor = {name: [round(contrast(value, ground), 2) for ground in grounds] for name, value in inks.items()}
    assert {name: found for name, found in poor.items() if min(found) < 4.5} == {}
    assert LIGHT.keys() == DARK.keys()
    assert len(set(colours.values())) == len(colours)  # a drawing's colours are told apart by their values


def test_contrast_by_its_definition() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)
    assert contrast("#00609a", "#00609a") == 1


def test_colours_are_given_for_light_dark_and_paper() -> None:
    sheet = stylesheet()
    assert sheet.startswith(":root { --paper: #fdfdfb;")
    assert "@media (prefers-color-scheme: dark) { :root { --paper: #14171b;" in sheet
    assert "@media print { :root { --paper: #ffffff;" in sheet


@pytest.mark.parametrize("draw", DRAWN.values(), ids=DRAWN)
def test_the_same_numbers_give_the_same_drawing(draw: Callable[[], Drawing]) -> None:
    assert draw().svg == draw().svg


def test_points_are_drawn_large_ones_first_with_their_own_texts() -> None:
    assert titles(DRAWN["scatter"]())[:2] == ["c", "a"]


def test_each_dot_has_its_hover_text_and_its_mean_beside_it() -> None:
    drawing = DRAWN["dots"]()
    assert titles(drawing) == ["a: 0.300", "b: 0.100"]
    assert "0.300</text>" in drawing.svg


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_names_of_curves_stand_apart_in_the_order_of_the_curves(height: list[float]) -> None:
    placed = plots.apart(np.array(height), 0.05)
    order = np.argsort(height, kind="stable")
    assert (np.diff(placed[order]) > 0.049).all()
    assert placed.mean() == pytest.approx(np.mean(height))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_no_name_stands_below_the_floor(height: list[float]) -> None:
    placed = plots.apart(np.array(height), 0.05, 0.02)
    assert placed.min() >= 0.02
    assert (np.diff(np.sort(placed)) > 0.049).all()


def test_names_that_are_apart_stay_where_they_are() -> None:
    assert plots.apart(np.array([0.5, 0.1, 0.9]), 0.2).tolist() == [0.5, 0.1, 0.9]


def test_names_are_drawn_as_they_are_written() -> None:
    """Two dollars are no formula, and a script that matplotlib's font lacks is no reason to complain."""
    names = ["$9.99 for $1_{", "千と千尋の神隠し"]
    drawing = charts.curves(np.arange(2), dict.fromkeys(names, COUNT[:2]), [0, 1], "y", "curves").drawing
    for name in names:
        assert f"{name}</text>" in drawing.svg
    assert drawing.png().startswith(b"\x89PNG")
