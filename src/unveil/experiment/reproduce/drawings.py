"""The plots of a page as files of their own: they carry the page's colours, light and dark, and say what they show."""

import re
from collections.abc import Iterator
from html import escape
from importlib.resources import files
from pathlib import Path

from unveil.experiment.report import Figure, Figures, Page
from unveil.files import write_whole

#: Where the colours of the page's style end.
_AFTER_COLOURS = "\n* {"


def write_drawings(page: Page, folder: Path) -> None:
    """A file for each plot of the page, by the name that its ids begin with."""
    for figure in _figures(page):
        write_whole(folder / f"{name_of(figure)}.svg", standalone(figure))


def _figures(page: Page) -> Iterator[Figure]:
    for section in page.sections:
        for block in section.blocks:
            if isinstance(block, Figures):
                yield from block.figures
            elif isinstance(block, Figure):
                yield block


def name_of(figure: Figure) -> str:
    """The name that makes the ids of a drawing its own."""
    found = re.search(r'id="([^"]+)-figure_1"', figure.svg)
    assert found is not None
    return found[1]


def standalone(figure: Figure) -> str:
    """The drawing with its title, its description and its colours inside."""
    style = (files("unveil.experiment") / "templates" / "page.css").read_text(encoding="utf-8").split(_AFTER_COLOURS)[0]
    told = f"<title>{escape(figure.title)}</title><desc>{escape(figure.alt)}</desc>"
    inside = f"{told}<style>{style} text {{ font-family: var(--sans); }}</style>"
    return re.sub(r"(<svg\b[^>]*>)", lambda tag: tag[1] + inside, figure.svg, count=1) + "\n"
