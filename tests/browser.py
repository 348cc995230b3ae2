"""A real browser for tests: Chromium, driven by Playwright; skipped, with the reason, where there is none."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: pip install playwright")
from playwright.sync_api import Browser, sync_playwright

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-sync",
]


def chromium() -> str:
    """Where Chromium is: UNVEIL_TEST_CHROMIUM, or one of the system's."""
    named = os.environ.get("UNVEIL_TEST_CHROMIUM")
    found = named or next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None or not Path(found).exists():
        pytest.skip("no Chromium here: install it (apt install chromium) or name it in UNVEIL_TEST_CHROMIUM")
    return found


@contextmanager
def opened() -> Iterator[Browser]:
    """The browser, closed at the end."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium(), args=FLAGS, timeout=120_000)
        yield browser
        browser.close()
