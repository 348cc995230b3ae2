"""The pages that nobody writes by hand, by their path in the site, and what makes each."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from website.decisions import decisions
from website.examples import example_list, example_page
from website.messages import messages
from website.reference import reference

ROOT = Path(__file__).parents[1]


def made_pages() -> dict[str, Callable[[], str]]:
    """What makes each page; nothing is made yet."""
    return {
        "reference.md": reference,
        "messages.md": partial(messages, ROOT / "src"),
        "changelog.md": partial((ROOT / "CHANGELOG.md").read_text, encoding="utf-8"),
        "contributing.md": partial((ROOT / "CONTRIBUTING.md").read_text, encoding="utf-8"),
        "adr/README.md": partial(decisions, ROOT / "docs" / "adr"),
        "examples/README.md": partial(example_list, ROOT / "examples"),
        **{f"examples/{each.stem}.md": partial(example_page, each) for each in (ROOT / "examples").glob("*.py")},
    }
