"""MovieLens without a header: `u.data` (100K) and `ratings.dat` (1M, 10M)."""

import re
from dataclasses import dataclass

from unveil.data.sources.columns import assigned
from unveil.data.sources.content import Content
from unveil.data.sources.delimited import Layout, read_rows
from unveil.data.sources.options import ReadOptions
from unveil.data.sources.registry import Likeness, register
from unveil.data.sources.table import Table

_ROLES = ("user", "item", "rating", "time")


@dataclass(frozen=True)
class MovieLens:
    """User, item, rating and seconds on each line, between one or two delimiters."""

    name: str
    summary: str
    delimiter: str

    def likeness(self, content: Content, options: ReadOptions) -> Likeness:
        """Told by the shape of the rows: a rating, then a whole number at the end."""
        between = re.escape(self.delimiter)
        row = re.compile(rf"[^\t]+?{between}[^\t]+?{between}-?\d+(\.\d+)?{between}-?\d+\r?")
        return Likeness.SHAPE if all(row.fullmatch(line) for line in content.head) else Likeness.NO

    def read(self, content: Content, options: ReadOptions) -> Table:
        """A delimiter of two characters leaves an empty column between two columns."""
        step = len(self.delimiter)
        names = tuple(role if not gap else "" for role in _ROLES for gap in range(step))[: 3 * step + 1]
        layout = Layout(self.delimiter[0], names, header=False, quote=None)
        return read_rows(content, layout, assigned(names, options.columns, content.path))


register(
    MovieLens("movielens-100k", "MovieLens u.data: user, item, rating, seconds between tabs, no header", "\t"),
    MovieLens("movielens-1m", "MovieLens ratings.dat: user::item::rating::seconds, no header", "::"),
)
