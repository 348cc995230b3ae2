from pathlib import Path

import pytest

from tests.docs import DOCS, ROOT, anchors, links, pages, shown
from website.made import made_pages

MADE = frozenset(made_pages())


@pytest.mark.parametrize("page", pages(), ids=shown)
def test_every_link_leads_somewhere(page: Path) -> None:
    astray = [link for link in links(page.read_text(encoding="utf-8")) if not _leads(page, link)]
    assert not astray


def test_a_link_astray_is_seen() -> None:
    page = DOCS / "index.md"
    assert not _leads(page, "nowhere.md")
    assert not _leads(page, "theory.md#nothing-of-this-name")
    assert not _leads(page, "#nothing-of-this-name")
    assert _leads(page, "theory.md#symbols")


def _leads(page: Path, link: str) -> bool:
    if "://" in link:
        return True
    path, _, anchor = link.partition("#")
    place = (page.parent / path).resolve() if path else page
    if place.is_relative_to(DOCS) and place.relative_to(DOCS).as_posix() in MADE:
        return True  # the strict build of the site knows their anchors
    return place.exists() and place.is_relative_to(ROOT) and (not anchor or anchor in _anchors(place))


def _anchors(place: Path) -> set[str]:
    return anchors(place.read_text(encoding="utf-8")) if place.suffix == ".md" else set()
