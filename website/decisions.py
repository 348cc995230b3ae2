"""The list of decisions, from the headings of their pages."""

from pathlib import Path

_HEAD = "# Decisions\n\nArchitecture decisions, with their reasons and consequences.\n\n"


def decisions(folder: Path) -> str:
    """One line for each."""
    pages = sorted(folder.glob("[0-9]*.md"))
    return _HEAD + "\n".join(f"- [{_title(page)}]({page.name})" for page in pages) + "\n"


def _title(page: Path) -> str:
    return page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
