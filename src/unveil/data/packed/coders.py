"""Raw ids → numbers as they come by, then places in the sorted vocabulary: `indexing.indexed`, a slice at a time.

What stays in memory is one entry for each different id.
"""

from typing import Protocol

import numpy as np
import polars as pl

from unveil.data.sources.table import Table
from unveil.data.sources.typed import ids, refuse_blank_ids, refuse_missing_ids
from unveil.data.vocabulary import Index, Vocabulary

#: Whole numbers up to this are their own code; beyond it a table of them would be too large.
LARGEST = 1 << 26


class Coder(Protocol):
    """Codes for the ids of one role."""

    def code(self, table: Table) -> Index:
        """The codes of a slice of rows."""

    def finish(self) -> tuple[Index, Vocabulary]:
        """The place of each code in the vocabulary, and the vocabulary of all ids that came by."""


class Numbers:
    """Small whole numbers: an id is its own code."""

    def __init__(self, role: str, largest: int) -> None:
        self.role, self._seen = role, np.zeros(largest + 1, np.bool_)

    def code(self, table: Table) -> Index:
        """The numbers themselves."""
        refuse_missing_ids(table, self.role)
        code_N = table.frame[self.role].to_numpy().astype(np.int32)
        self._seen[code_N] = True
        return code_N

    def finish(self) -> tuple[Index, Vocabulary]:
        """In the order of their decimal form, as all ids are text."""
        present = np.flatnonzero(self._seen)
        return _in_order(present, pl.Series(present).cast(pl.String), len(self._seen))


class Text:
    """Any other ids: numbered as they are first seen."""

    def __init__(self, role: str) -> None:
        self.role, self._categories = role, pl.Categories.random()
        # Categories are forgotten with the last column that has them; this one stays.
        self._memory = pl.Series([], dtype=pl.Categorical(self._categories))

    def code(self, table: Table) -> Index:
        """The number that each id was given when it was first seen."""
        raw = ids(table, self.role)
        refuse_blank_ids(table, self.role)
        return raw.cast(pl.Categorical(self._categories)).to_physical().to_numpy().astype(np.int32)

    def finish(self) -> tuple[Index, Vocabulary]:
        """In the order of the text."""
        known = self._categories.to_series()
        return _in_order(np.arange(len(known)), known, len(known))


def coder_of(role: str, low: int | None, high: int | None) -> Coder:
    """The coder for ids between two numbers, or for text where there are none."""
    small = low is not None and high is not None and 0 <= low <= high <= LARGEST
    return Numbers(role, high or 0) if small else Text(role)


def _in_order(codes: np.typing.NDArray[np.int64], raw: pl.Series, size: int) -> tuple[Index, Vocabulary]:
    place = np.zeros(size, np.int32)
    order = raw.arg_sort().to_numpy()
    place[codes[order]] = np.arange(len(raw), dtype=np.int32)
    return place, Vocabulary.of_sorted(raw.gather(order))
