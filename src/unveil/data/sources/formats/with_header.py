"""Delimited text with a header: CSV and its relatives, and the public data sets that come so."""

from dataclasses import dataclass

from unveil.data.sources import columns
from unveil.data.sources.content import Content
from unveil.data.sources.delimited import header_of, read_headed
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
        """Told by the names in the header; an unknown header goes to the delimiter that finds most columns."""
        names = header_of(content, self.separator)
        if columns.named(names, options.columns):
            return Likeness.NAMES
        widest = max(len(header_of(content, other.separator)) for other in _BY_DELIMITER)
        return Likeness.PERHAPS if len(names) == widest > 1 else Likeness.NO

    def read(self, content: Content, options: ReadOptions) -> Table:
        """Columns by the names given, or known."""
        return read_headed(content, self.separator, options.columns)


@dataclass(frozen=True)
class Published:
    """A public data set in CSV, told by its very header."""

    name: str
    summary: str
    header: tuple[str, ...]

    def likeness(self, content: Content, options: ReadOptions) -> Likeness:
        """Told by its very header."""
        return Likeness.CERTAIN if header_of(content, ",") == self.header else Likeness.NO

    def read(self, content: Content, options: ReadOptions) -> Table:
        """As any other CSV."""
        return read_headed(content, ",", options.columns)


_BY_DELIMITER = (
    WithHeader("csv", "comma-separated, with a header", ","),
    WithHeader("tsv", "tab-separated, with a header", "\t"),
    WithHeader("semicolon", "semicolon-separated, with a header", ";"),
    WithHeader("pipe", "separated by |, with a header", "|"),
)
register(
    *_BY_DELIMITER,
    Published("movielens", "MovieLens ratings.csv (20M, 25M, 32M)", ("userId", "movieId", "rating", "timestamp")),
    Published("amazon-2023", "Amazon reviews 2023, CSV (ms)", ("user_id", "parent_asin", "rating", "timestamp")),
)
