"""Delimited text with a header: CSV and its relatives. MovieLens `ratings.csv` and Amazon 2023 are of this kind."""

from dataclasses import dataclass

from unveil.data.sources import columns
from unveil.data.sources.content import Content
from unveil.data.sources.delimited import Layout, header_of, read_rows
from unveil.data.sources.options import ReadOptions
from unveil.data.sources.registry import Likeness, register
from unveil.data.sources.table import Table


@dataclass(frozen=True)
class WithHeader:
    """A header line, then rows of as many fields."""

    name: str
    summary: str
    separator: str

    def likeness(self, content: Content, options: ReadOptions) -> Likeness:
        """Told by the names in the header."""
        names = header_of(content.head[0], self.separator)
        if columns.named(names, options.columns):
            return Likeness.NAMES
        return Likeness.PERHAPS if len(names) == _widest(content) > 1 else Likeness.NO

    def read(self, content: Content, options: ReadOptions) -> Table:
        """Columns by the names given, or known."""
        names = header_of(content.head[0], self.separator)
        places = columns.assigned(names, options.columns, content.path)
        return read_rows(content, Layout(self.separator, names), places)


def _widest(content: Content) -> int:
    return max(len(header_of(content.head[0], entry.separator)) for entry in _ENTRIES)


_ENTRIES = (
    WithHeader("csv", "comma-separated, with a header (also MovieLens ratings.csv, Amazon 2023)", ","),
    WithHeader("tsv", "tab-separated, with a header", "\t"),
    WithHeader("semicolon", "semicolon-separated, with a header", ";"),
    WithHeader("pipe", "separated by |, with a header", "|"),
)
register(*_ENTRIES)
