"""Prose of a report: Jinja templates with named blocks, filled by figures.

What a sentence may say is decided by `{% if %}` on figures, and the text is edited as text. `templates/README.md` says
how a template is written.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from jinja2.ext import Extension

from unveil.report.names import against, listed, named
from unveil.report.page import Block, Cell, Code, Column, Figure, Figures, KeyFigure, Note, Page, Section, Table, Text
from unveil.wording import quantity

_MARK = "\ue000"  # where a part of the page is to be shown
_FILLED = "\ue001"  # at the end of a line of text and tags: it is no blank line, even where its tags leave nothing
_BAR = "\ue002"  # a bar in the cell of a table


def number(value: float, digits: int = 3) -> str:
    """0.123 or 1,234.5, with a true minus sign."""
    return f"{value:z,.{digits}f}".replace("-", "−")


def signed(value: float, digits: int = 3) -> str:
    """+0.012 or −0.012."""
    return f"{value:+z.{digits}f}".replace("-", "−")


def percent(value: float, digits: int = 0) -> str:
    """25% or −25%."""
    return f"{value:z.{digits}%}".replace("-", "−")


def interval(found: Any, digits: int = 3) -> str:
    """[0.601, 0.613] of an estimate or a test; nothing where there is none."""
    if found.low is None or found.high is None:
        return ""
    return f"[{number(found.low, digits)}, {number(found.high, digits)}]"


def estimate(found: Any, digits: int = 3) -> str:
    """0.607 [0.601, 0.613]."""
    return f"{number(found.mean, digits)} {interval(found, digits)}".rstrip()


def share(found: Any) -> str:
    """25% [20%, 30%] of an estimated share; a dash where there is none."""
    if found is None:
        return "–"
    bounds = "" if found.low is None or found.high is None else f" [{percent(found.low)}, {percent(found.high)}]"
    return f"{percent(found.mean)}{bounds}"


def p_value(p: float) -> str:
    """p = 0.012, or p < 0.001."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def test(found: Any) -> str:
    """+0.012 [+0.003, +0.021], p = 0.010: a paired difference."""
    return f"{signed(found.difference)} [{signed(found.low)}, {signed(found.high)}], {p_value(found.p)}"


def portion(value: float) -> str:
    """93%, 0.4%, below 0.1%; never rounded to 0% or 100%."""
    if 0 < value < 0.001:
        return "below 0.1%"
    if 0.995 <= value < 1:
        return "over 99%"
    return f"{value:.1%}" if 0 < value < 0.0995 else f"{value:.0%}"


def times(ratio: float) -> str:
    """3.2 ×."""
    return "∞ ×" if ratio == float("inf") else f"{ratio:,.1f} ×" if ratio < 100 else f"{ratio:,.0f} ×"


def verdict(found: Any, alpha: float = 0.05) -> str:
    """What a paired test allows to say: scores above, scores below, or neither."""
    if not found.p < alpha:
        return "cannot be distinguished from"
    return "scores above" if found.difference > 0 else "scores below"


def join(items: Iterable[Any], word: str = "and") -> str:
    """a, b and c."""
    *first, last = [str(item) for item in items] or [""]
    return f"{', '.join(first)} {word} {last}" if first else last


_FIGURES = (number, signed, percent, interval, estimate, share, p_value, test, verdict, portion, times)
FILTERS: Mapping[str, Callable[..., Any]] = {
    **{filter.__name__: filter for filter in (*_FIGURES, against, quantity)},
    "arm": named,
    "arms": listed,
    "count": lambda value: f"{value:,.0f}",
    "series": join,
    "cell": lambda text: " ".join(str(text).replace("|", _BAR).split()),
    "g": lambda value: f"{value:g}",
}


class _LineBreaks(Extension):
    """A line of tags alone leaves nothing; every other line keeps its end, also where that is a tag."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        filled = f'{{{{ "{_FILLED}" }}}}'
        return "\n".join(line if _TAGS.fullmatch(line) else f"{line}{filled}" for line in source.split("\n"))


#: Rows and headings, lines of tags alone, lines that do not end with a tag, and those whose last tag removes the end.
_TAGS = re.compile(r"[|#].*|(\s*\{[%#]((?![%#]\}).)*[%#]\})*\s*|.*(?<![%#]\})|.*-[%#]\}")


@lru_cache
def environment() -> Environment:
    """All templates of reports; nothing is escaped, since Markdown and pages escape in their own ways."""
    made = Environment(
        loader=PackageLoader("unveil.report"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=[_LineBreaks],
    )
    made.filters.update(FILTERS)
    return made


@dataclass(frozen=True)
class Prose:
    """Templates and the figures that fill them; a block is looked up in the first template that has it. `{{ super() }}`
    in a block is the block of that name in the next template. A template is a file's name, or text."""

    templates: Sequence[str]
    figures: Mapping[str, Any]

    def paragraphs(self, block: str) -> list[str]:
        """The paragraphs of a block, each on one line."""
        return [_plain(part).removeprefix("> ") for part in _parts(self._rendered(block, lambda *_, **__: ""))]

    def text(self, block: str) -> str:
        return self._rendered(block, lambda *_, **__: "").strip() + "\n"

    def line(self, block: str) -> str:
        return " ".join(self.paragraphs(block))

    def table(self, block: str) -> Table:
        return _table(*_parts(self._rendered(block, lambda *_, **__: "")))

    def key_figures(self, block: str) -> list[KeyFigure]:
        return [KeyFigure(*bold(paragraph)) for paragraph in self.paragraphs(block)]

    def page(self, parts: Mapping[str, Any]) -> Page:
        return Page(self.line("title"), self.line("lede"), self.sections("page", parts), self.key_figures("keys"))

    def sections(self, block: str, parts: Mapping[str, Any], title: str = "") -> list[Section]:
        """A block as sections of a page; what stands before the first heading has the title that is given."""
        shown: list[Block] = []

        def show(what: str | Block, caption: str = "", *, beside: bool = False, **words: str) -> str:
            blocks = _shown(
                parts[what] if isinstance(what, str) else what,
                {kind: _plain(text) for kind, text in {"caption": caption, **words}.items()},
            )
            if beside:
                every = (each.figures if isinstance(each, Figures) else [each] for each in (shown[-1], *blocks))
                shown[-1] = Figures([each for part in every for each in part if isinstance(each, Figure)])
                return ""
            first = len(shown)
            shown.extend(blocks)
            return "".join(f"\n\n{_MARK}{place}\n\n" for place in range(first, len(shown)))

        found: list[tuple[str, list[Block]]] = [(title, [])]
        for part in _parts(self._rendered(block, show)):
            if part.startswith("## "):
                found.append((part[3:].strip(), []))
            else:
                found[-1][1].append(_block(part, shown))
        return [Section(name, blocks) for name, blocks in found if blocks]

    def _rendered(self, block: str, show: Callable[..., str]) -> str:
        known = environment()
        chain = [known.from_string(name) if "\n" in name else known.get_template(name) for name in self.templates]
        context = chain[0].new_context({**self.figures, "show": show})
        for template in chain[1:]:
            for name, render in template.blocks.items():
                context.blocks.setdefault(name, []).append(render)
        return "".join(context.blocks[block][0](context)) if block in context.blocks else ""


def _parts(text: str) -> list[str]:
    apart = re.sub(r"^(## .*)$", r"\n\n\1\n\n", text, flags=re.MULTILINE)
    parts = [part.replace(_FILLED, "") for part in re.split(r"\n\s*\n", apart)]
    return [part.strip("\n") for part in parts if part.strip()]


def _plain(text: str) -> str:
    return " ".join(text.replace(_FILLED, "").split())


def bold(paragraph: str) -> tuple[str, str]:
    """`**93%** of the items` as 93% and what it is of."""
    _, figure, of = paragraph.split("**", 2)
    return figure, of.strip()


def _block(part: str, shown: Sequence[Block]) -> Block:
    text = " ".join(part.split())
    if part.startswith("Table: "):
        return _table(part)
    if text.startswith(_MARK):
        return shown[int(text.removeprefix(_MARK))]
    if part.startswith("    "):
        return Code("\n".join(line.removeprefix("    ") for line in part.split("\n")))
    if text.startswith("> "):
        warning = text.startswith("> Warning:")
        return Note(text.removeprefix("> Warning:" if warning else "> ").strip(), warning)
    return Text(text)


def _shown(part: Block | Sequence[Block], words: Mapping[str, str]) -> list[Block]:
    if isinstance(part, Table | Figure):
        given: dict[str, Any] = {kind: text for kind, text in words.items() if text}
        return [replace(part, **given)]
    return [each for one in part for each in _shown(one, words)] if isinstance(part, Sequence) else [part]


def _table(part: str) -> Table:
    caption, *lines = part.split("\n")
    rows = [line.strip().strip("|").split("|") for line in lines if line.startswith("|")]
    head, rule, *rest = ([cell.strip() for cell in row] for row in rows)
    titles = [title.partition(": ") for title in head]
    columns = [Column(one, kind.endswith(":"), about) for (one, _, about), kind in zip(titles, rule, strict=True)]
    cells = [
        [_cell(text.replace(_BAR, "|"), column.numeric) for text, column in zip(row, columns, strict=True)]
        for row in rest
    ]
    foot = " ".join(line.strip() for line in lines if not line.startswith("|"))
    return Table(caption.removeprefix("Table: "), columns, cells, sortable=len(columns) > 2, foot=foot)


def _cell(text: str, numeric: bool) -> Cell | str:
    """A number is sorted by what it begins with; `below 0.001` as 0.001."""
    found = re.match(r"(?:below )?([+−-]?[\d,]*\.?\d+(?:e[+-]\d+)?)", text) if numeric else None
    return text if found is None else Cell(text, float(found[1].replace(",", "").replace("−", "-")))
