"""The site's build: pages that are made from the code, and what is filled in on those that are written by hand."""

from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from website.commands import with_options
from website.equations import with_equations
from website.made import made_pages
from website.navigation import expanded
from website.outward import with_inward_links
from website.results import reports, with_report


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what is made, and the reports of results; fill in the navigation."""
    for path, make in made_pages().items():
        files.append(File.generated(config, path, content=make()))
    for path, report in reports(Path(config.docs_dir)).items():
        files.append(File.generated(config, path, abs_src_path=str(report)))
    config.nav = expanded(config.nav or [], [file.src_uri for file in files.documentation_pages()])
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, **_: Any) -> str:
    """Fill in options, equations, reports, and links that lead out of docs."""
    path = page.file.src_uri
    whole = with_report(with_options(markdown, path), path, Path(config.docs_dir))
    return with_equations(with_inward_links(whole, path))
