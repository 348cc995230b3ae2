"""From a matplotlib figure to an inline SVG that belongs to its page: themed, unique ids, values on hover."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO, StringIO
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, filterwarnings
from xml.etree import ElementTree

from unveil.experiment.palette import LIGHT

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Colours to draw with: those of the light page, each standing for a variable of the page's theme.
INK, MUTED, LINE, PAPER = (LIGHT[name] for name in ("ink", "muted", "line", "paper"))
COLOURS = tuple(LIGHT[f"c{place}"] for place in range(1, 7))
_THEME = {colour: name for name, colour in LIGHT.items()}
#: Of pictures in pixels: two to three times what a page shows.
_DOTS_PER_INCH = 200

_SVG = "{http://www.w3.org/2000/svg}"
_HREF = "{http://www.w3.org/1999/xlink}href"
#: The drawing settings that every plot shares.
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "unveil",
    "font.size": 10,
    "text.color": INK,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": MUTED,
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": LINE,
    "grid.linewidth": 0.6,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelsize": 9.5,
    "ytick.labelsize": 9.5,
    "figure.facecolor": "none",
    "lines.solid_capstyle": "round",
    "text.parse_math": False,  # titles of items may hold dollars
}


@dataclass(frozen=True, eq=False)
class Drawing:
    """A plot: SVG text that takes its colours from the page around it, and the same in pixels and light colours."""

    name: str  # what its ids begin with, and its files are called
    svg: str
    figure: "Figure"

    def png(self) -> bytes:
        """The picture. The same figure gives the same bytes."""
        from matplotlib import rc_context

        content = BytesIO()
        with rc_context(STYLE), _any_script():
            self.figure.savefig(content, format="png", dpi=_DOTS_PER_INCH, facecolor=PAPER, metadata={"Software": None})
        return content.getvalue()


def themed(figure: "Figure", name: str, titles: Mapping[str, Sequence[str]] | None = None) -> Drawing:
    """The figure as a drawing. `name` makes its ids unique; `titles` are the hover texts of the marks with these gids.

    An artist that was given `set_gid(g)` is a group of marks; the n-th mark gets the n-th of `titles[g]`.
    """
    text = StringIO()
    with _any_script():
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    root = ElementTree.fromstring(text.getvalue())
    for group, lines in (titles or {}).items():
        _add_titles(root, group, lines)
    for tag in ("metadata", "defs/style"):
        _remove(root, tag)
    for element in root.iter():
        _adapt(element, name)
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


def _remove(root: ElementTree.Element, path: str) -> None:
    *above, tag = path.split("/")
    for parent in [root] if not above else root.findall("/".join(f"{_SVG}{name}" for name in above)):
        for child in parent.findall(f"{_SVG}{tag}"):
            parent.remove(child)


def _adapt(element: ElementTree.Element, name: str) -> None:
    if _HREF in element.attrib:
        element.set("href", element.attrib.pop(_HREF))
    for key, value in element.attrib.items():
        element.set(key, _adapted(key, value, name))


def _adapted(key: str, value: str, name: str) -> str:
    if key == "id":
        return f"{name}-{value}"
    if key == "href":
        return f"#{name}-{value.removeprefix('#')}"
    value = value.replace("url(#", f"url(#{name}-")
    value = re.sub(r"\s*font-family:[^;]*;?", "", value)
    value = re.sub(r"font: ([0-9.]+px) [^;]*", r"font-size: \1", value)
    return re.sub(
        r"#[0-9a-f]{6}", lambda found: f"var(--{_THEME[found[0]]})" if found[0] in _THEME else found[0], value
    )
