"""Recommender: a trained model with the ids and histories it needs. Raw ids in, raw ids out.

Shapes: B users of a batch, K places, V items.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray
from torch import Tensor

from unveil.data.sequences import Sequences
from unveil.data.tokens import histories as asked
from unveil.data.tokens import tokens_of
from unveil.data.vocabulary import UNKNOWN, Index, Vocabulary
from unveil.errors import UnveilError
from unveil.evaluation.metrics import NOBODY
from unveil.evaluation.ranking import top_items
from unveil.evaluation.scorer import Scorer, at_rest, checked_scores
from unveil.evaluation.seen import Cells, no_cells, seen_cells

#: Scores held at once: 64 MiB.
CELLS = 2**24

SCHEMA = {"user_id": pl.String, "item_id": pl.String, "score": pl.Float32, "rank": pl.Int32}


@dataclass(frozen=True)
class Recommendations:
    """Lists as a frame `user_id, item_id, score, rank`, best first, and the ids that nobody knows."""

    frame: pl.DataFrame
    unknown_users: tuple[str, ...] = ()
    unknown_items: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Recommender:
    """Top-k lists for known users or for given histories.

    `sequences` are the histories of the known users; `length` is the number of tokens the model is shown. Items of a
    user's own history are left out unless asked for. Equal scores stand in the order of the vocabulary.
    """

    model: Scorer
    items: Vocabulary
    users: Vocabulary
    sequences: Sequences
    length: int

    def recommend(
        self, users: Sequence[str] | None = None, k: int = 10, *, filter_seen: bool = True
    ) -> Recommendations:
        """The k best items for each of these users (all known users, where none are named)."""
        raw = pl.Series(self.users.ids if users is None else list(users), dtype=pl.String)
        index_B = self.users.index(raw)
        unknown = tuple(raw.filter(pl.Series(index_B == UNKNOWN)))
        if len(index_B) and len(unknown) == len(raw):
            raise UnveilError("none of the users is known", found=unknown[0], hint="Give a history instead.")
        frames = list(self.batches(index_B[index_B != UNKNOWN], k, filter_seen=filter_seen))
        return Recommendations(pl.concat(frames, how="vertical"), unknown_users=unknown)

    def batches(self, user_B: Index, k: int = 10, *, filter_seen: bool = True) -> Iterator[pl.DataFrame]:
        """The lists of many users, a frame at a time: memory does not grow with their number."""
        self._refuse_beyond_catalogue(k)
        size = max(1, CELLS // len(self.items))
        for start in range(0, max(1, len(user_B)), size):
            part_B = user_B[start : start + size]
            seen_B = self.sequences.length_U[part_B]
            token_BL = asked(self.sequences, part_B, seen_B, self.length)
            barred = seen_cells(self.sequences, part_B, seen_B) if filter_seen else no_cells()
            yield self._lists(list(self.users.raw(part_B)), token_BL, barred, k)

    def recommend_for(
        self, histories: Sequence[Sequence[str]], k: int = 10, *, filter_seen: bool = True
    ) -> Recommendations:
        """The k best items after each history of raw item ids, oldest first. Unknown ids are passed over and reported.

        The user ids of the answer are the places of the histories, from 0.
        """
        self._refuse_beyond_catalogue(k)
        index = [self.items.index(list(history)) for history in histories]
        unknown = [raw for given, found in zip(histories, index, strict=True) for raw in _unknown(given, found)]
        known = [found[found != UNKNOWN] for found in index]
        for place, (given, left) in enumerate(zip(histories, known, strict=True)):
            if len(given) and not len(left):
                raise UnveilError(
                    "no item of the history is known",
                    where=f"history {place}",
                    found=", ".join(given),
                    hint="Give ids as they are written in the log that the model was trained on.",
                )
        token_BL = tokens_of(known, len(self.items), self.length)
        frame = self._lists(
            [str(n) for n in range(len(known))], token_BL, _cells(known) if filter_seen else no_cells(), k
        )
        return Recommendations(frame, unknown_items=tuple(dict.fromkeys(unknown)))

    def save(self, folder: Path | str, *, overwrite: bool = False) -> None:
        """Write a folder that `load` reads: weights, vocabularies, histories. Nothing in it is code."""
        from unveil.serving.folder import save

        save(self, Path(folder), overwrite=overwrite)

    @classmethod
    def load(cls, folder: Path | str) -> Self:
        """Read a saved recommender or a run folder."""
        from unveil.serving.folder import load

        return cls(**vars(load(Path(folder))))

    def _lists(self, names: list[str], token_BL: Tensor, barred: Cells, k: int) -> pl.DataFrame:
        if not names:
            return pl.DataFrame(schema=SCHEMA)
        with at_rest(self.model):
            scores_BV = checked_scores(self.model, token_BL, len(self.items)).cpu()
        row_N, item_N = (torch.from_numpy(part) for part in barred)
        top_BK = top_items(scores_BV, k, (row_N, item_N))
        score_BK = scores_BV.gather(1, top_BK.clamp_min(0))
        return self._frame(names, top_BK.numpy(), score_BK.numpy())

    def _frame(self, names: list[str], top_BK: NDArray[Any], score_BK: NDArray[Any]) -> pl.DataFrame:
        listed = (top_BK != NOBODY).ravel()
        columns = {
            "user_id": pl.Series(names).gather(np.repeat(np.arange(len(names)), top_BK.shape[1])[listed]),
            "item_id": self.items.raw(top_BK.ravel()[listed]),
            "score": score_BK.ravel()[listed],
            "rank": np.tile(np.arange(1, top_BK.shape[1] + 1), len(names))[listed],
        }
        return pl.DataFrame(columns, schema=SCHEMA)

    def _refuse_beyond_catalogue(self, k: int) -> None:
        if not 1 <= k <= len(self.items):
            raise UnveilError("k is out of range", found=k, expected=f"between 1 and the {len(self.items):,} items")


def _unknown(raw: Sequence[str], index: Index) -> list[str]:
    return [given for given, place in zip(raw, index, strict=True) if place == UNKNOWN]


def _cells(histories: Sequence[Index]) -> Cells:
    """Row and item of everything in the histories."""
    row_N = np.repeat(np.arange(len(histories)), [len(history) for history in histories])
    return row_N, np.concatenate([*histories, np.zeros(0, np.int32)]).astype(np.int64)
