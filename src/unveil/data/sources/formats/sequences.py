"""One user's whole history on each line, oldest event first: the files of S3Rec."""

import re

import polars as pl

from unveil.data.sources.content import Content
from unveil.data.sources.lines import read_words, words
from unveil.data.sources.options import ReadOptions
from unveil.data.sources.registry import Likeness, register
from unveil.data.sources.table import Table
from unveil.errors import UnveilError


class SequenceLines:
    """The first word of a line is the user, the others are the items."""

    name = "sequences"
    summary = "one user's whole sequence on each line: user item item …, no header (S3Rec)"

    def likeness(self, content: Content, options: ReadOptions) -> Likeness:
        """Whole numbers on lines of unequal length; other words, and tables of equal lines, have to be named."""
        lines = [words(line) for line in content.head]
        numbers = all(re.fullmatch(r"[\d \t]+", line) for line in content.head)
        unequal = len({len(line) for line in lines}) > 1 and min(map(len, lines)) > 1
        return Likeness.SHAPE if numbers and unequal else Likeness.NO

    def read(self, content: Content, options: ReadOptions) -> Table:
        """One row for each item; a user without items is an error."""
        lines = read_words(content, options)
        lonely = lines.filter(pl.col("words").list.len() < 2)
        if len(lonely):
            raise UnveilError(
                "a user without items",
                where=f"{content.path}, row {lonely['row'][0] + 1}",
                found=lonely["words"][0][0],
                expected="a user and at least one item",
            )
        split = lines.select("row", user=pl.col("words").list.first(), item=pl.col("words").list.slice(1))
        events = split.explode("item")
        names = {"user": "1", "item": "2 and on"}
        return Table(content.path, events.drop("row"), names, lambda row: int(events["row"][row]) + 1)


register(SequenceLines())
