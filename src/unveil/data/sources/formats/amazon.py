"""Amazon ratings without a header: user first in 2014, item first in 2018.

Which of the two a file is shows in its ids: products have ten characters (`B0…`, or an ISBN), reviewers more. Where
that does not decide, the person has to: the two are never told apart by a guess.
"""

import csv
import re
from dataclasses import dataclass

from unveil.data.sources.columns import assigned
from unveil.data.sources.content import Content
from unveil.data.sources.delimited import Layout, read_rows
from unveil.data.sources.options import ReadOptions
from unveil.data.sources.registry import Likeness, register
from unveil.data.sources.table import Table

_PRODUCT = re.compile(r"B[0-9A-Z]{9}|[0-9]{9}[0-9X]")
_NUMBER = re.compile(r"-?\d+(\.\d+)?")


@dataclass(frozen=True)
class Amazon:
    """Two ids, rating, seconds on each line."""

    name: str
    summary: str
    roles: tuple[str, ...]

    def likeness(self, content: Content, options: ReadOptions) -> Likeness:
        """Told by the shape of the rows, and by which column has nothing but product codes."""
        rows = list(csv.reader(content.head))
        if not all(len(row) == 4 and _NUMBER.fullmatch(row[2]) and _NUMBER.fullmatch(row[3]) for row in rows):
            return Likeness.NO
        products = [all(_PRODUCT.fullmatch(row[place]) for row in rows) for place in (0, 1)]
        if products[0] == products[1]:
            return Likeness.SHAPE
        return Likeness.CERTAIN if products[self.roles.index("item")] else Likeness.NO

    def read(self, content: Content, options: ReadOptions) -> Table:
        """Columns by their place."""
        layout = Layout(",", self.roles, header=False)
        return read_rows(content, layout, assigned(self.roles, options.columns, content.path))


register(
    Amazon(
        "amazon-2014", "Amazon ratings 2014: user,item,rating,seconds, no header", ("user", "item", "rating", "time")
    ),
    Amazon(
        "amazon-2018", "Amazon ratings 2018: item,user,rating,seconds, no header", ("item", "user", "rating", "time")
    ),
)
