"""What every report page must be: one file, readable by all, on any screen and on paper."""

import re
from collections import Counter
from html.parser import HTMLParser

VOID = {"meta", "br", "img", "input", "hr", "link"}
#: Names of formats, not addresses.
NAMESPACES = ("http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink", "http://www.w3.org/1998/Math/MathML")

Attributes = dict[str, str | None]


class Outline(HTMLParser):
    """Open and closed tags, ids, references, links and headings of a page; what each plot has to say."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[tuple[str, Attributes]] = []
        self.unclosed: list[str] = []
        self.tags: Counter[str] = Counter()
        self.ids: list[str] = []
        self.references: set[str] = set()
        self.links: list[str] = []
        self.attributes: list[tuple[str, Attributes]] = []
        self.headings: list[int] = []
        self.texts: dict[str, str] = {}
        self.unnamed_drawings = 0
        self.marks: list[int] = []  # of each drawing
        self.feed(html)
        self.close()
        self.unclosed += [tag for tag, _ in self.open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags[tag] += 1
        self.attributes.append((tag, found))
        self.ids += [value for key, value in attrs if key == "id" and value]
        for key in ("aria-labelledby", "aria-describedby"):
            self.references |= set((found.get(key) or "").split())
        self.links += [value for key, value in attrs if key in ("href", "src", "xlink:href") and value]
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag == "svg":
            self.unnamed_drawings += not any(_is_named_image(each) for each in [*(own for _, own in self.open), found])
            self.marks.append(0)
        if "data-point" in found:
            self.marks[-1] += 1
        if tag not in VOID:
            self.open.append((tag, found))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        last, _ = self.open.pop() if self.open else ("nothing", {})
        if last != tag:
            self.unclosed.append(last)

    def handle_data(self, data: str) -> None:
        place = "/".join(tag for tag, _ in self.open[-2:])
        self.texts[place] = self.texts.get(place, "") + data


def faults(html: str) -> list[str]:
    """What a page lacks, of all that can be told without a browser."""
    page = Outline(html)
    style = page.texts.get("head/style", "")
    checks = {
        "a tag that is not closed": not page.unclosed,
        "no language": any(tag == "html" and found.get("lang") for tag, found in page.attributes),
        "no title": bool(page.texts.get("head/title", "").strip()),
        "not fit for a phone": any(found.get("name") == "viewport" for _, found in page.attributes),
        "no dark scheme": "prefers-color-scheme: dark" in style and "color-scheme: light dark" in style,
        "no style for paper": "@media print" in style,
        "something from outside": not _outside(html, page),
        "an id that is there twice": len(page.ids) == len(set(page.ids)),
        "a reference to nothing": page.references | {link[1:] for link in page.links} <= set(page.ids),
        "headings that leave out a level": page.headings[:1] == [1] and page.headings.count(1) == 1 and _in_steps(page),
        "no main part, or no way to skip to it": page.tags["main"] == 1 and "#main" in page.links,
        "a table without a caption": page.tags["caption"] == page.tags["table"],
        "a heading of a table without a scope": all(f.get("scope") for tag, f in page.attributes if tag == "th"),
        "a part that scrolls and cannot be reached or has no name": all(map(_can_be_reached, page.attributes)),
        "a drawing without a description": not page.unnamed_drawings,
        "a drawing without values": all(page.marks),
    }
    return [fault for fault, fine in checks.items() if not fine]


def _is_named_image(found: Attributes) -> bool:
    return found.get("role") == "img" and bool((found.get("aria-label") or "").strip())


def _outside(html: str, page: Outline) -> list[str]:
    for namespace in NAMESPACES:
        html = html.replace(f'"{namespace}"', '""')
    linked = [link for link in page.links if not link.startswith("#")]
    fetched = re.findall(r"@import|url\((?!#)|<(?:link|img|iframe|object|embed)\b", html)
    return linked + fetched


def _in_steps(page: Outline) -> bool:
    return all(after <= before + 1 for before, after in zip(page.headings, page.headings[1:], strict=False))


def _can_be_reached(element: tuple[str, Attributes]) -> bool:
    _, found = element
    if "scroll" not in (found.get("class") or "").split():
        return True
    return found.get("tabindex") == "0" and bool(found.get("aria-label"))
