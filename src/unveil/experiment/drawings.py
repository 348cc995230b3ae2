"""The plots of a page as files of their own: as SVG with the page's colours, light and dark, and as PNG."""

import re
from collections.abc import Iterable
from html import escape
from pathlib import Path

from unveil.errors import UnveilError
from unveil.experiment.palette import stylesheet
from unveil.experiment.svg import Drawing
from unveil.files import explained, refuse_existing, refuse_occupied, write_whole

_FONT = "text { font-family: sans-serif; }"
_KINDS = (".svg", ".png")


def figures_beside(page: Path) -> Path:
    """The folder of a page's plots: `figures` beside index.html, `audit-figures` beside audit.html."""
    return page.with_name("figures" if page.stem == "index" else f"{page.stem}-figures")


def refuse_unfit_page(page: Path, beside: Iterable[Path] = (), *, what: str, overwrite: bool) -> None:
    """Before any work is done: an HTML file is to be written, and nothing is buried by it or by what goes beside it."""
    if page.suffix.lower() not in (".html", ".htm"):
        raise UnveilError(f"{what} is an HTML page", where=page, found=page.suffix or "no ending", expected=".html")
    for path in (page, *beside):
        refuse_existing(path, overwrite=overwrite)
    refuse_occupied(figures_beside(page), overwrite=overwrite)


def write_drawings(described: Iterable[tuple[Drawing, str, str]], folder: Path) -> None:
    """Two files for each drawing, by its name; what an earlier page has left there goes.

    With each drawing come its title and a description for those who cannot see it.
    """
    written = set()
    for drawing, title, text in described:
        write_whole(folder / f"{drawing.name}.svg", standalone(drawing, title, text))
        write_whole(folder / f"{drawing.name}.png", drawing.png())
        written |= {f"{drawing.name}{kind}" for kind in _KINDS}
    with explained(folder):
        for path in folder.glob("*.*"):
            if path.suffix in _KINDS and path.name not in written:
                path.unlink(missing_ok=True)


def standalone(drawing: Drawing, title: str, text: str) -> str:
    """The drawing with its title, its description and its colours inside."""
    told = f"<title>{escape(title)}</title><desc>{escape(text)}</desc>"
    inside = f"{told}<style>{stylesheet()} {_FONT}</style>"
    return re.sub(r"(<svg\b[^>]*>)", lambda tag: tag[1] + inside, drawing.svg, count=1) + "\n"
