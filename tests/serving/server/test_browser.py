"""The page in a real browser: Chromium, driven by Playwright; skipped, with the reason, where there is none."""

import json
import re
import shutil
from collections.abc import Iterator

import polars as pl
import pytest

from tests.browser import chromium, opened
from tests.run_folders import Finished
from tests.serving.server.conftest import TITLES
from tests.serving.server.processes import Running, running
from unveil.serving.model_files import DIAL, version_of

pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: pip install playwright")
from playwright.sync_api import Browser, Page, expect

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(finished: Finished, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    place = tmp_path_factory.mktemp("browser")
    chromium()
    shutil.copytree(finished.folder, place / "other")
    points = [{"novelty": at, "recall": 0.2 - 0.1 * at, "coverage": 0.3 + 0.5 * at} for at in (0.0, 0.5, 1.0)]
    (place / "other" / DIAL).write_text(json.dumps({"model": version_of(place / "other"), "points": points}))
    pl.DataFrame({"item_id": list(TITLES), "title": list(TITLES.values())}).write_csv(place / "titles.csv")
    arguments = [finished.folder, place / "other", "--titles", place / "titles.csv", "--drain", 0, "--max-k", 7]
    with running(place / "log", *arguments, environment={"UNVEIL_TOKEN": "sesame"}) as server:
        yield server


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with opened() as browser:
        yield browser


@pytest.fixture(params=[1200, 390], ids=["wide", "phone"])
def page(browser: Browser, server: Running, request: pytest.FixtureRequest) -> Iterator[Page]:
    """The page with the token given; nothing may go wrong in it, and nothing may be asked of anybody else."""
    context = browser.new_context(viewport={"width": request.param, "height": 800})
    context.set_default_timeout(60_000)
    page, wrong = context.new_page(), list[str]()
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda asked: None if asked.url.startswith(("data:", server.url)) else wrong.append(asked.url))
    page.goto(server.url)
    page.get_by_label("Token").fill("sesame")
    page.get_by_role("button", name="Use").click()
    page.wait_for_selector("article li")
    yield page
    assert wrong == []
    context.close()


def test_from_nothing_to_lists_with_reasons_by_keyboard(page: Page) -> None:
    expect(page.locator("article")).to_have_count(2)
    expect(page.get_by_role("link", name="OpenAPI")).to_be_hidden()  # it would be refused for want of the token
    expect(page.locator("article h2")).to_have_text(["run", "other"])
    expect(page.locator("article .about").first).to_contain_text("most popular")
    search = page.get_by_role("combobox", name="Search items")
    for number in ("17", "12"):
        search.press_sequentially(f"number {number}")
        expect(page.get_by_role("option")).to_have_count(1)
        search.press("ArrowDown")
        expect(page.get_by_role("option", selected=True)).to_contain_text(f"Film number {number}")
        search.press("Enter")
    expect(page.locator("#history li")).to_have_count(2)
    expect(page.locator("article .why").first).to_contain_text("Film number 1")
    expect(page.locator("article .about").first).to_contain_text("on the right: popularity-temporal")
    expect(page.locator("article .share").first).to_have_attribute(
        "title", re.compile("a proxy.*: popularity-temporal")
    )
    expect(page.locator("article").first.locator("ol > li")).to_have_count(7)  # as many as the server gives
    expect(page.locator("article").last).to_contain_text("At novelty 0, on held-out events: Recall@10 0.200")
    tops = page.locator("article > ol").evaluate_all("lists => lists.map(list => list.getBoundingClientRect().top)")
    assert (tops[0] == tops[1]) == (page.viewport_size == {"width": 1200, "height": 800})  # level where side by side
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")

    before = page.locator("article .name").all_inner_texts()
    page.get_by_role("slider", name="Novelty").press("End")
    expect(page.locator("#novelty-value")).to_have_text("1")
    page.wait_for_function(
        "old => [...document.querySelectorAll('article .name')].map(n => n.innerText).join() != old",
        arg=",".join(before),
    )

    page.get_by_role("button", name="Remove Film number 17").press("Enter")
    expect(page.locator("#history li")).to_have_count(1)
    page.get_by_role("button", name="Clear").press("Enter")
    expect(page.locator("article .about").first).to_contain_text("most popular")


@pytest.mark.parametrize("page", [1200], indirect=True)
def test_what_goes_wrong_is_said(page: Page, server: Running) -> None:
    search = page.get_by_role("combobox", name="Search items")
    search.press_sequentially("no such film")
    expect(page.locator("#status")).to_contain_text("No item has “no such film”")
    search.fill("number 3")
    expect(page.get_by_role("option").first).to_be_visible()
    search.press("Escape")
    expect(page.locator("#found")).to_be_hidden()
    page.route("**/v1/recommend/batch", lambda route: route.fulfill(status=429, body='{"error": "too many requests"}'))
    page.get_by_role("slider", name="Novelty").press("ArrowRight")
    expect(page.locator("#status")).to_have_text("too many requests")
