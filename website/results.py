"""The pages of results: a folder's README is its page on the site, and the report beside it keeps its own look."""

from pathlib import Path

_REPORT, _ON_SITE = "index.html", "page.html"


def reports(docs: Path) -> dict[str, Path]:
    """The reports among the results, by the name that each has on the site."""
    found = sorted((docs / "results").rglob(_REPORT))
    return {path.relative_to(docs).with_name(_ON_SITE).as_posix(): path for path in found}


def with_report(markdown: str, path: str, docs: Path) -> str:
    """The page of a folder of results with a link to the report, if there is one."""
    if path.endswith("README.md") and (docs / path).with_name(_REPORT).exists():
        title, _, rest = markdown.partition("\n")
        return f"{title}\n\n[The report, with all plots and tables]({_ON_SITE})\n{rest}"
    return markdown
