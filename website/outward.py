"""Links to files that have another place on the site: on GitHub they lead to the file, on the site to its page."""

import posixpath
import re

_LINK = re.compile(r"(?<=\]\()([^)#\s]+)")
_PAGES = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md", "README.md": "index.md"}


def with_inward_links(markdown: str, path: str) -> str:
    """The page `path` with links that lead out of docs leading to their pages on the site."""
    here = posixpath.dirname(path)
    return _LINK.sub(lambda found: inward(found[1], here), markdown)


def inward(target: str, here: str) -> str:
    """Where a link of a page in the folder `here` leads on the site."""
    if "://" in target:
        return target
    meant = posixpath.normpath(posixpath.join("docs", here, target))
    page = _page_of(meant)
    return target if page is None else posixpath.relpath(page, here or ".")


def _page_of(meant: str) -> str | None:
    if meant.startswith("examples/") and meant.endswith(".py"):
        return meant.removesuffix(".py") + ".md"
    if meant.startswith("docs/results/") and meant.endswith("/index.html"):
        return meant.removeprefix("docs/").removesuffix("index.html") + "page.html"
    return _PAGES.get(meant)
