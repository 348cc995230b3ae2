"""A report in a real browser: sorted by a press, values told to pointer and keyboard, no wider than a phone."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.browser import opened
from unveil.report.page import (
    Cell,
    Column,
    Entry,
    Figure,
    Figures,
    Lists,
    Page,
    Section,
    Table,
    number,
    write_page,
)
from unveil.report.plots import Line, Scale, line_figure

pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: pip install playwright")
from playwright.sync_api import Browser, expect
from playwright.sync_api import Page as Shown

pytestmark = pytest.mark.slow

ROWS: list[list[Cell | str]] = [
    ["b", number(10.0), "x"],
    ["a", number(9.0), "y"],
    ["c", "–", "z"],
    ["d", number(-1.0), "w"],
]
TABLE = Table("Things", [Column("name"), Column("value", True), Column("a third column with a long heading")], ROWS)
LISTS = Lists("User 7", "History: Heat", {name: [Entry("Heat", "", "taken next")] for name in ("one", "two")})


def figure(name: str, points: int) -> Figure:
    x = np.arange(points).tolist()
    line = Line(x, [float(value) for value in x], titles=[f"{name} {value}" for value in x])
    drawing = line_figure({"rising": line}, ("x", "y"), name, Scale(whole=True)).drawing
    return Figure(f"The plot {name}", drawing, "A line that rises", data=TABLE)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "index.html"
    sections = [Section("Tables", [TABLE, LISTS]), Section("Plots", [Figures([figure("few", 5), figure("many", 60)])])]
    write_page(Page("A page", "In short.", sections), path)
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with opened() as browser:
        yield browser


@pytest.fixture(params=[(1200, "light"), (400, "dark")], ids=["wide", "phone"])
def page(browser: Browser, file: Path, request: pytest.FixtureRequest) -> Iterator[Shown]:
    """The page from the disk, with the network switched off; nothing may go wrong in it."""
    width, scheme = request.param
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True)
    context.set_default_timeout(60_000)
    page, wrong = context.new_page(), list[str]()
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda asked: None if asked.url == file.as_uri() else wrong.append(asked.url))
    page.goto(file.as_uri())
    yield page
    assert wrong == []
    context.close()


def test_a_press_sorts_a_second_turns_round_and_a_third_gives_the_first_order_back(page: Shown) -> None:
    table = page.locator("section table").first
    value = table.get_by_role("button", name="value")
    names = table.locator("tbody th")
    expect(names).to_have_text(["b", "a", "c", "d"])
    value.click()
    expect(names).to_have_text(["b", "a", "d", "c"])  # by number, what is none last
    expect(table.locator("thead th").nth(1)).to_have_attribute("aria-sort", "descending")
    value.focus()
    page.keyboard.press("Enter")
    expect(names).to_have_text(["d", "a", "b", "c"])
    expect(table.locator("thead th").nth(1)).to_have_attribute("aria-sort", "ascending")
    page.keyboard.press("Space")
    expect(names).to_have_text(["b", "a", "c", "d"])
    table.get_by_role("button", name="name").click()
    expect(names).to_have_text(["a", "b", "c", "d"])


@pytest.mark.parametrize(("name", "points"), [("few", 5), ("many", 60)])
def test_the_pointer_is_told_the_value_it_is_near(page: Shown, name: str, points: int) -> None:
    plot = page.locator(".plot", has=page.locator(f"#{name}-figure_1"))
    plot.scroll_into_view_if_needed()
    marks = plot.locator("[data-point]")
    expect(marks).to_have_count(points)
    box = marks.nth(3).bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2 + 1)
    tip = plot.get_by_role("status")
    expect(tip).to_have_text(f"{name} 3")
    inside, frame = tip.bounding_box(), plot.bounding_box()
    assert inside is not None
    assert frame is not None
    assert frame["x"] - 1 <= inside["x"]
    assert inside["x"] + inside["width"] <= frame["x"] + frame["width"] + 1
    page.mouse.move(2, 2)
    expect(tip).to_be_hidden()


def test_the_arrow_keys_walk_through_the_values(page: Shown) -> None:
    plot = page.get_by_role("group", name="The plot few: 5 values")
    plot.focus()
    for key, told in (("ArrowRight", "few 0"), ("ArrowRight", "few 1"), ("End", "few 4"), ("ArrowLeft", "few 3")):
        page.keyboard.press(key)
        expect(plot.get_by_role("status")).to_have_text(told)
    page.keyboard.press("Escape")
    expect(plot.get_by_role("status")).to_be_hidden()


def test_nothing_is_wider_than_the_screen_and_colours_follow_the_scheme(page: Shown) -> None:
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    dark = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(20, 23, 27)" if dark else "rgb(253, 253, 251)")
    lists = [page.locator(".side > div").nth(place).bounding_box() for place in (0, 1)]
    first, second = (box for box in lists if box is not None)
    assert (second["y"] > first["y"]) == dark  # one below another on the phone, which is the dark one


def test_on_paper_it_is_light_and_shows_what_needs_no_pointer(page: Shown) -> None:
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    expect(page.locator("details").first).to_be_hidden()
    expect(page.locator("section table").first).to_be_visible()
