"""Report pages: one self-contained HTML file, built from a few blocks. The same page gives the same bytes."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from unveil import __version__
from unveil.files import write_whole
from unveil.report.svg import Drawing, figures_beside, stylesheet, write_drawings


class _Kind:
    """Tells the template what to draw: table, figure, figures, text, …"""

    @property
    def kind(self) -> str:
        return type(self).__name__.lower()


@dataclass(frozen=True)
class Cell:
    """What a table shows, the value it is sorted by, and a word that sets it apart, a `soft` one less so."""

    text: str
    value: float | str
    mark: str = ""
    soft: bool = False


@dataclass(frozen=True)
class Column:
    """A table's column: numbers stand on the right; `about` is shown below the title."""

    title: str
    numeric: bool = False
    about: str = ""


def columns(heading: str, *numbers: str) -> list[Column]:
    """A column of headings, then columns of numbers, each given as `title` or `title: what it is of`."""
    parts = [number.partition(": ") for number in numbers]
    return [Column(heading), *(Column(title, True, about) for title, _, about in parts)]


@dataclass(frozen=True)
class Table(_Kind):
    """Rows under a caption; the first cell of a row is its heading. A reader can sort it unless told otherwise."""

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell | str]]
    sortable: bool = True
    foot: str = ""  # what its marks mean

    @property
    def texts(self) -> list[list[str]]:
        return [[cell if isinstance(cell, str) else cell.text for cell in row] for row in self.rows]


@dataclass(frozen=True)
class Figure(_Kind):
    """A plot: `title` says what is seen, `alt` describes it to those who cannot see it, `data` gives its numbers."""

    title: str
    drawing: Drawing
    alt: str
    caption: str = ""
    data: Table | None = None


@dataclass(frozen=True)
class Figures(_Kind):
    """Plots side by side where there is room."""

    figures: Sequence[Figure]


@dataclass(frozen=True)
class Text(_Kind):
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Note(_Kind):
    """A remark that stands apart; a `warning` asks for attention."""

    text: str
    warning: bool = False


@dataclass(frozen=True)
class Point(_Kind):
    """One thing to do or to know: what, the figure it stands on, and why. `code` in backticks is set as code."""

    title: str
    figure: str
    of: str
    text: str
    warning: bool = False


@dataclass(frozen=True)
class Code(_Kind):
    """Commands to copy."""

    text: str


@dataclass(frozen=True)
class Entry:
    """One place of a list: what stands there, something about it in small, and a word that sets it apart."""

    text: str
    about: str = ""
    mark: str = ""


@dataclass(frozen=True)
class Lists(_Kind):
    """Lists side by side where there is room, one below another where there is none."""

    title: str
    about: str
    lists: Mapping[str, Sequence[Entry]]  # by their titles


@dataclass(frozen=True)
class KeyFigure:
    """One number that matters, with what it is a number of."""

    value: str
    label: str


Block = Table | Figure | Figures | Lists | Text | Note | Point | Code


@dataclass(frozen=True)
class Section:
    """A part of a page."""

    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Page:
    """A report: `write_page` makes it HTML."""

    title: str
    lede: str
    sections: Sequence[Section]
    key_figures: Sequence[KeyFigure] = field(default_factory=tuple)

    def figures(self) -> Iterator[Figure]:
        for section in self.sections:
            for block in section.blocks:
                if isinstance(block, Figure | Figures):
                    yield from [block] if isinstance(block, Figure) else block.figures


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


def can_be_written() -> bool:
    """Whether what plots are drawn with is installed."""
    return find_spec("matplotlib") is not None


def render(page: Page) -> str:
    """The page as HTML."""
    loader = PackageLoader("unveil.report")
    templates = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    templates.filters["coded"] = lambda text: Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(escape(text))))
    return templates.get_template("page.html.j2").render(page=page, version=__version__, colours=stylesheet())


def write_page(page: Page, path: Path) -> None:
    """Write the plots as SVG and PNG files into a folder beside the page, and then the page, whole or not at all."""
    html = render(page)
    write_drawings([(each.drawing, each.title, each.alt) for each in page.figures()], figures_beside(path))
    write_whole(path, html)
