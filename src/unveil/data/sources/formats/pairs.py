"""`user item` on each line, in the order of time: the files of SASRec and BERT4Rec."""

import polars as pl

from unveil.data.sources.content import Content
from unveil.data.sources.lines import is_header, read_words, words
from unveil.data.sources.options import ReadOptions
from unveil.data.sources.registry import Likeness, register
from unveil.data.sources.table import Table
from unveil.errors import UnveilError


class Pairs:
    """Each user's events in order; there is no time."""

    name = "pairs"
    summary = "`user item` on each line, in order, no header (SASRec, BERT4Rec)"

    def likeness(self, content: Content, options: ReadOptions) -> Likeness:
        """Two words on every line."""
        two = all(len(words(line)) == 2 for line in content.head)
        return Likeness.SHAPE if two and not is_header(content, options) else Likeness.NO

    def read(self, content: Content, options: ReadOptions) -> Table:
        """Users and items; a line of more or fewer words is an error."""
        lines = read_words(content, options)
        odd = lines.filter(pl.col("words").list.len() != 2)
        if len(odd):
            raise UnveilError(
                "not a pair",
                where=f"{content.path}, row {odd['row'][0] + 1}",
                found=" ".join(odd["words"][0]),
                expected="a user and an item",
                hint="Correct the line, or name another --format.",
            )
        frame = lines.select(user=pl.col("words").list.first(), item=pl.col("words").list.last())
        return Table(content.path, frame, {"user": "1", "item": "2"}, lambda row: int(lines["row"][row]) + 1)


register(Pairs())
