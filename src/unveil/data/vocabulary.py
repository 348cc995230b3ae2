"""Raw ids ↔ dense indices. Raw ids are strings and stay as they were written: `0104257` keeps its zero."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unveil.wording import quantity

Index = NDArray[np.int32]

UNKNOWN = -1


class Vocabulary:
    """An immutable set of raw ids, sorted by code point, whatever the file's order; the place of an id is its index."""

    def __init__(self, ids: Iterable[str]) -> None:
        series = ids if isinstance(ids, pl.Series) else pl.Series("id", list(ids), dtype=pl.String)
        self.ids: pl.Series = series.unique().sort().alias("id")

    @classmethod
    def of_sorted(cls, ids: pl.Series) -> Self:
        """The vocabulary of different ids that are in order already; nothing is copied."""
        vocabulary = cls.__new__(cls)
        vocabulary.ids = ids.alias("id")
        return vocabulary

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index: int) -> str:
        return str(self.ids[index])

    def __contains__(self, raw: object) -> bool:
        return isinstance(raw, str) and self.find(raw) != UNKNOWN

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and self.ids.equals(other.ids)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ", ".join(self.ids.head(3)) + (", …" if len(self) > 3 else "")
        return f"Vocabulary({quantity(len(self), 'id')}: {shown})"

    def index(self, raw: Sequence[str] | pl.Series) -> Index:
        """Dense indices of raw ids, `UNKNOWN` (−1) where an id is not in the vocabulary."""
        given = pl.DataFrame({"id": raw}, schema={"id": pl.String})
        found = given.join(self._places, on="id", how="left", maintain_order="left")["place"]
        return found.fill_null(UNKNOWN).to_numpy().astype(np.int32)

    def find(self, raw: str) -> int:
        """The dense index of one id, by halving: `index` goes through the whole vocabulary every time."""
        place = int(self.ids.search_sorted(raw))
        return place if place < len(self) and self.ids[place] == raw else UNKNOWN

    def raw(self, index: Index) -> pl.Series:
        """Raw ids of dense indices."""
        return self.ids.gather(index)

    def subset(self, index: Index) -> "Vocabulary":
        """The vocabulary of these dense indices only."""
        return Vocabulary(self.ids.gather(index))

    @cached_property
    def _places(self) -> pl.DataFrame:
        return pl.DataFrame({"id": self.ids, "place": np.arange(len(self), dtype=np.int32)})
