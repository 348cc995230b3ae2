"""The site's build: pages that are made from the code, and what is filled in on those that are written by hand."""

from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from website.commands import with_options
from website.equations import with_equations
from website.made import made_pages
from website.navigation import expanded
from website.outward import with_inward_links


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what is made; give the pages of results a name of their own; fill in the navigation."""
    for path, make in made_pages().items():
        files.append(File.generated(config, path, content=make()))
    for file in files:
        if file.src_uri.endswith("/index.html"):  # the README beside it is the folder's page
            file.dest_uri = file.src_uri.removesuffix("index.html") + "page.html"
    pages = [file.src_uri for file in files.documentation_pages()]
    config.nav = expanded(config.nav or [], pages)
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Fill in options, equations, and links that lead out of docs."""
    path = page.file.src_uri
    return with_equations(with_inward_links(with_options(markdown, path), path))
