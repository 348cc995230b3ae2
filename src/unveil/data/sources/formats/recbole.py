"""RecBole atomic files (`name.inter`): a header of `field:type`, then fields between tabs, never in quotes."""

import re

from unveil.data.sources.columns import assigned
from unveil.data.sources.content import Content
from unveil.data.sources.delimited import Layout, read_rows
from unveil.data.sources.options import ReadOptions
from unveil.data.sources.registry import Likeness, register
from unveil.data.sources.table import Table

_FIELD = re.compile(r"(.+):(?:token|float|token_seq|float_seq)")


class Inter:
    """Columns are called by their field names; types are not needed."""

    name = "inter"
    summary = "RecBole .inter: a header of field:type, then fields between tabs"

    def likeness(self, content: Content, options: ReadOptions) -> Likeness:
        """Every field of the header has a type."""
        return Likeness.CERTAIN if all(map(_FIELD.fullmatch, _fields(content))) else Likeness.NO

    def read(self, content: Content, options: ReadOptions) -> Table:
        """Columns by the names given, or known."""
        names = tuple(_FIELD.sub(r"\1", field) for field in _fields(content))
        layout = Layout("\t", names, quote=None)
        return read_rows(content, layout, assigned(names, options.columns, content.path))


def _fields(content: Content) -> list[str]:
    return content.head[0].split("\t")


register(Inter())
