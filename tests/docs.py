"""The pages of the project as tests see them: text outside and inside of code, headings, links, command lines."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
BESIDE = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")

_FENCE = re.compile(r"^(?P<ticks>```+)(?P<language>\w*)\n(?P<body>.*?)^(?P=ticks)\s*$", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"(?<=\n\n)(?: {4}[^\n]+\n)+")
_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")
_LINK = re.compile(r"\]\(<?([^)\s>]+)>?\)")


def pages() -> list[Path]:
    """Every page that is written by hand or kept with its results."""
    return [*sorted(DOCS.rglob("*.md")), *(ROOT / name for name in BESIDE)]


def shown(page: Path) -> str:
    """How a page is called in the name of a test."""
    return page.relative_to(ROOT).as_posix()


@dataclass(frozen=True)
class Block:
    """A block of code, and its language."""

    language: str
    body: str


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a page, and its indented ones."""
    fenced = [Block(found["language"], found["body"]) for found in _FENCE.finditer(text)]
    return fenced + [Block("", found[0]) for found in _INDENTED.finditer(_FENCE.sub("", text))]


def spans(text: str) -> list[str]:
    """The code inside of lines."""
    return [found[2].strip() for found in _SPAN.finditer(_FENCE.sub("", text))]


def links(text: str) -> list[str]:
    """Where a page leads; code leads nowhere."""
    return _LINK.findall(_SPAN.sub("", _FENCE.sub("", text)))


def anchors(text: str) -> set[str]:
    """The names of a page's headings in an address."""
    headings = re.findall(r"^#+ (.+)$", _FENCE.sub("", text), re.MULTILINE)
    return {_slug(heading) for heading in headings}


def _slug(heading: str) -> str:
    kept = re.sub(r"[^\w\s-]", "", heading.lower())
    return re.sub(r"[\s-]+", "-", kept.strip())


def table_rows(text: str, first: str) -> Iterator[list[str]]:
    """The rows of all tables whose first column has this title."""
    inside = False
    for line in text.splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
        inside = line.startswith("|") and (inside or cells[0] == first)
        if inside and cells[0] != first and not set(cells[0]) <= set("-: "):
            yield cells
