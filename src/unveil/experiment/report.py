"""Report pages: one self-contained HTML file, built from a few blocks that every command shares.

A `Page` is a title, a lede, key figures and sections; a section is a title and blocks. `render` turns it into HTML
that needs nothing else: style, script and plots are inline, it follows the reader's light or dark theme, fits a phone
and prints. The same page gives the same bytes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from unveil import __version__
from unveil.errors import UnveilError
from unveil.files import atomic_file


@dataclass(frozen=True)
class Cell:
    """What a table shows, and the value it is sorted by."""

    text: str
    value: float | str


@dataclass(frozen=True)
class Column:
    """A table's column: numbers stand on the right; `about` is shown below the title."""

    title: str
    numeric: bool = False
    about: str = ""


@dataclass(frozen=True)
class Table:
    """Rows under a caption; the first cell of a row is its heading. A reader can sort it unless told otherwise."""

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell | str]]
    sortable: bool = True
    kind: ClassVar[str] = "table"


@dataclass(frozen=True)
class Figure:
    """A plot: `title` says what is seen, `alt` describes it to those who cannot see it, `data` gives its numbers."""

    title: str
    svg: str
    alt: str
    caption: str = ""
    data: Table | None = None
    kind: ClassVar[str] = "figure"


@dataclass(frozen=True)
class Figures:
    """Plots side by side where there is room."""

    figures: Sequence[Figure]
    kind: ClassVar[str] = "figures"


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str
    kind: ClassVar[str] = "text"


@dataclass(frozen=True)
class Note:
    """A remark that stands apart; a `warning` asks for attention."""

    text: str
    warning: bool = False
    kind: ClassVar[str] = "note"


@dataclass(frozen=True)
class Point:
    """One thing to do or to know: what, the figure it stands on, and why. `code` in backticks is set as code."""

    title: str
    figure: str
    of: str
    text: str
    warning: bool = False
    kind: ClassVar[str] = "point"


@dataclass(frozen=True)
class Code:
    """Commands to copy."""

    text: str
    kind: ClassVar[str] = "code"


@dataclass(frozen=True)
class KeyFigure:
    """One number that matters, with what it is a number of."""

    value: str
    label: str


Block = Table | Figure | Figures | Text | Note | Point | Code


@dataclass(frozen=True)
class Section:
    """A part of a page."""

    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Page:
    """A whole report."""

    title: str
    lede: str
    sections: Sequence[Section]
    key_figures: Sequence[KeyFigure] = field(default_factory=tuple)


def count(value: float) -> Cell:
    """A whole number: 12,667."""
    return Cell(f"{value:,.0f}", float(value))


def number(value: float, digits: int = 2) -> Cell:
    """A number with so many decimals."""
    return Cell(f"{value:z,.{digits}f}".replace("-", "−"), float(value))


def plain(value: float) -> Cell:
    """A number as short as it can be written: 600, 0.5, −1."""
    return Cell(f"{value:g}".replace("-", "−"), float(value))


def percent(value: float, digits: int = 1) -> Cell:
    """A share: 3.5%."""
    return Cell(f"{value:.{digits}%}", float(value))


def render(page: Page) -> str:
    """The page as HTML."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        raise UnveilError("reports need jinja2 and matplotlib", hint="pip install 'unveil[report]'") from error
    templates = Environment(
        loader=PackageLoader("unveil.experiment"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["coded"] = _coded
    return templates.get_template("page.html.j2").render(page=page, version=__version__)


def _coded(text: str) -> str:
    """Escaped HTML in which what stands between backticks is code."""
    from markupsafe import Markup, escape

    parts = str(escape(text)).split("`")
    return Markup("".join(f"<code>{part}</code>" if place % 2 else part for place, part in enumerate(parts)))


def write_page(page: Page, path: Path) -> None:
    """Write the page whole or not at all."""
    html = render(page)
    with atomic_file(path) as draft:
        draft.write_text(html, encoding="utf-8")
