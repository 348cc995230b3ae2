import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs import DOCS, ROOT
from website.decisions import decisions
from website.equations import with_equations
from website.examples import example_list, example_page
from website.made import made_pages
from website.navigation import expanded
from website.outward import inward, with_inward_links
from website.reference import reference
from website.results import reports, with_report


def test_patterns_stand_for_pages_that_are_named_nowhere() -> None:
    pages = ["a.md", "b.md", "in/README.md", "in/z.md", "in/b.md", "in/deep/README.md", "index.md"]
    entries = [
        {"Home": "index.md"},
        {"Part": [{"First": "b.md"}, "*.md"]},
        {"In": "in/*.md"},
        {"Deep": ["in/*/README.md"]},
    ]
    assert expanded(entries, pages) == [
        {"Home": "index.md"},
        {"Part": [{"First": "b.md"}, "a.md"]},
        {"In": ["in/README.md", "in/b.md", "in/z.md"]},
        {"Deep": [{"deep": "in/deep/README.md"}]},
    ]


@pytest.mark.parametrize(
    ("target", "here", "meant"),
    [
        ("../examples/tour.py", "", "examples/tour.md"),
        ("../../examples/tour.py", "commands", "../examples/tour.md"),
        ("../CONTRIBUTING.md", "", "contributing.md"),
        ("../../README.md", "adr", "../index.md"),
        ("README.md", "estimators", "README.md"),
        ("rq1/index.html", "results", "rq1/page.html"),
        ("theory.md", "", "theory.md"),
        ("https://example.org/README.md", "", "https://example.org/README.md"),
    ],
)
def test_links_out_of_docs_lead_to_their_page(target: str, here: str, meant: str) -> None:
    assert inward(target, here) == meant


def test_only_the_path_of_a_link_changes() -> None:
    text = "[a](../CHANGELOG.md#unreleased) and [b](theory.md#symbols)"
    assert with_inward_links(text, "faq.md") == "[a](changelog.md#unreleased) and [b](theory.md#symbols)"


def test_equations_become_mathml() -> None:
    page = with_equations("Before\n\n$$\\frac{1}{N} \\log x$$\n\ncosts $5 and $6")
    assert "<mfrac>" in page
    assert "<mi>log</mi><mspace" in page
    assert "$$" not in page
    assert page.endswith("costs $5 and $6")


def test_an_example_has_what_it_says_and_its_code(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text('"""What it does.\n\nMore of it.\n"""\n\nprint(1)\n')
    assert "- [one](one.md): What it does.\n" in example_list(tmp_path)
    page = example_page(tmp_path / "one.py")
    assert "# one\n\nWhat it does.\n\nMore of it.\n" in page
    assert "```python\nprint(1)\n```" in page


def test_a_report_beside_results_has_a_name_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "results" / "rq1").mkdir(parents=True)
    report = tmp_path / "results" / "rq1" / "index.html"
    report.write_text("<html>")
    assert reports(tmp_path) == {"results/rq1/page.html": report}
    linked = with_report("# Title\n\ntext", "results/rq1/README.md", tmp_path)
    assert re.fullmatch(r"# Title\n\n\[.+\]\(page.html\)\n\ntext", linked)
    assert with_report("# Title", "results/README.md", tmp_path) == "# Title"


def test_decisions_are_listed_by_their_headings(tmp_path: Path) -> None:
    (tmp_path / "0002-b.md").write_text("# 2. Second\n")
    (tmp_path / "0001-a.md").write_text("# 1. First\n\ntext")
    assert decisions(tmp_path).endswith("- [1. First](0001-a.md)\n- [2. Second](0002-b.md)\n")


def test_the_reference_has_what_can_be_imported_from_the_top() -> None:
    import unveil

    page = reference()
    assert all(f"### {name}\n" in page for name in dir(unveil) if not name.startswith("_"))


def test_every_page_that_is_made_is_in_the_navigation() -> None:
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    roots = [name for name in made_pages() if "/" not in name]
    assert all(f": {name}\n" in settings for name in roots)


def test_the_worker_of_the_search_is_ours() -> None:
    assert "file:" in (DOCS / "assets" / "iframe-worker.js").read_text(encoding="utf-8")
    assert not re.search(r"https?://", (DOCS / "assets" / "site.css").read_text(encoding="utf-8"))


@pytest.mark.slow
def test_the_site_is_built_without_warnings_and_fetches_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    fetched = re.compile(r'<(?:script|link|img|iframe)\b[^>]*(?:src|href)="?(?:https?:)?//|@import|url\(["\']?https?:')
    for page in (tmp_path / "site").rglob("*.html"):
        found = fetched.search(page.read_text(encoding="utf-8"))
        assert not found, f"{page}: {found}"
