"""Drawings: SVG that takes its colours from the page around it, by the theme in `theme.toml`."""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from io import BytesIO, StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, filterwarnings
from xml.etree import ElementTree

from unveil.errors import UnveilError
from unveil.files import check_free, check_new_file, explained, write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_TREE = tomllib.loads(files("unveil.report").joinpath("theme.toml").read_text(encoding="utf-8"))
LIGHT, DARK = ({name: str(both[place]) for name, both in _TREE["colours"].items()} for place in (0, 1))
_PRINTED = LIGHT | _TREE["printed"]
#: The drawing settings that every plot shares.
STYLE: dict[Any, Any] = {name: LIGHT.get(value, value) for name, value in _TREE["matplotlib"].items()}


def stylesheet() -> str:
    """The colours as variables: light, dark where the reader's system is, and for the printer."""
    variables = (" ".join(f"--{name}: {value};" for name, value in own.items()) for own in (LIGHT, DARK, _PRINTED))
    light, dark, printed = (f":root {{ {every} }}" for every in variables)
    return f"{light}\n@media (prefers-color-scheme: dark) {{ {dark} }}\n@media print {{ {printed} }}"


#: Colours to draw with: those of the light page, each standing for a variable of the page's theme.
INK, MUTED, LINE, PAPER = (LIGHT[name] for name in ("ink", "muted", "line", "paper"))
COLOURS = tuple(LIGHT[f"c{place}"] for place in range(1, 9))
_THEME = {colour: name for name, colour in LIGHT.items()}

_SVG = "{http://www.w3.org/2000/svg}"
_HREF = "{http://www.w3.org/1999/xlink}href"


@dataclass(frozen=True, eq=False)
class Drawing:
    """A plot: SVG text that takes its colours from the page around it, and the same in pixels and light colours."""

    name: str  # what its ids begin with, and its files are called
    svg: str
    figure: "Figure"

    def png(self) -> bytes:
        """The same figure gives the same bytes."""
        from matplotlib import rc_context

        content = BytesIO()
        with rc_context(STYLE), _any_script():
            self.figure.savefig(content, format="png", dpi=200, facecolor=PAPER, metadata={"Software": None})
        return content.getvalue()


def themed(figure: "Figure", name: str, titles: Mapping[str, Sequence[str]] | None = None) -> Drawing:
    """The figure as a drawing. `name` makes its ids unique; `titles` are the hover texts of the marks with these gids.
    An artist that was given `set_gid(g)` is a group of marks; the n-th mark gets the n-th of `titles[g]`."""
    text = StringIO()
    with _any_script():
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    root = ElementTree.fromstring(text.getvalue())
    for group, lines in (titles or {}).items():
        _add_titles(root, group, lines)
    for parent in list(root.iter()):
        for tag in ("metadata", "style"):
            for child in parent.findall(f"{_SVG}{tag}"):
                parent.remove(child)
    for element in root.iter():
        if _HREF in element.attrib:
            element.set("href", element.attrib.pop(_HREF))
        for key, value in element.attrib.items():
            element.set(key, _adapted(key, value, name))
    for size in ("width", "height"):
        root.attrib.pop(size)
    root.set("focusable", "false")
    ElementTree.register_namespace("", _SVG[1:-1])
    return Drawing(name, ElementTree.tostring(root, encoding="unicode"), figure)


@contextmanager
def _any_script() -> Iterator[None]:
    """Letters that matplotlib's font lacks are the reader's own font's affair: the SVG holds them as text."""
    with catch_warnings():
        filterwarnings("ignore", r"Glyph \d+ .* missing from font", UserWarning)
        yield


def _add_titles(root: ElementTree.Element, group: str, lines: Sequence[str]) -> None:
    owners = [element for element in root.iter(f"{_SVG}g") if element.get("id") == group]
    marks = [mark for owner in owners for mark in owner.iter() if mark.tag in (f"{_SVG}use", f"{_SVG}path")]
    defined = {mark for owner in owners for defs in owner.iter(f"{_SVG}defs") for mark in defs.iter()}
    shown = [mark for mark in marks if mark not in defined]
    for mark, line in zip(shown, lines, strict=True):
        mark.set("data-point", "")
        ElementTree.SubElement(mark, f"{_SVG}title").text = line


def _adapted(key: str, value: str, name: str) -> str:
    if key == "id":
        return f"{name}-{value}"
    if key == "href":
        return f"#{name}-{value.removeprefix('#')}"
    value = value.replace("url(#", f"url(#{name}-")
    value = re.sub(r"\s*font-family:[^;]*;?", "", value)
    value = re.sub(r"font: ([0-9.]+px) [^;]*", r"font-size: \1", value)
    return re.sub("|".join(_THEME), lambda found: f"var(--{_THEME[found[0]]})", value)


def figures_beside(page: Path) -> Path:
    """The folder of a page's plots: `figures` beside index.html, `audit-figures` beside audit.html."""
    return page.with_name("figures" if page.stem == "index" else f"{page.stem}-figures")


def check_page_path(page: Path, beside: Iterable[Path] = (), *, what: str, overwrite: bool) -> None:
    """Before any work is done: an HTML file is to be written, and nothing is buried by it or by what goes beside it."""
    if page.suffix.lower() not in (".html", ".htm"):
        raise UnveilError(f"{what} is an HTML page", where=page, found=page.suffix or "no ending", expected=".html")
    for path in (page, *beside):
        check_new_file(path, overwrite=overwrite)
    check_free(figures_beside(page), overwrite=overwrite)


def write_drawings(described: Iterable[tuple[Drawing, str, str]], folder: Path) -> None:
    """An SVG, with title, description and colours, and a PNG of each; what an earlier page has left there goes."""
    written, style = set(), f"{stylesheet()} text {{ font-family: sans-serif; }}"
    for drawing, title, text in described:
        about = f"<title>{escape(title)}</title><desc>{escape(text)}</desc><style>{style}</style>"
        tag, _, drawn = drawing.svg.partition(">")
        for kind, content in ((".svg", f"{tag}>{about}{drawn}\n"), (".png", drawing.png())):
            write_whole(path := folder / f"{drawing.name}{kind}", content)
            written.add(path)
    with explained(folder):
        for path in {*folder.glob("*.svg"), *folder.glob("*.png")} - written:
            path.unlink(missing_ok=True)
