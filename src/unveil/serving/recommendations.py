"""Recommendations as the command line requests them: for one history, for the users of a file, or for all users."""

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from unveil.data.filters import LogSource
from unveil.data.interactions import Interactions
from unveil.data.vocabulary import UNKNOWN
from unveil.errors import UnveilError
from unveil.serving.attributes import Attributes
from unveil.serving.explanations import COLUMNS, explained
from unveil.serving.exposure import next_steps
from unveil.serving.recommender import SCHEMA, Recommendations, Recommender, Selection, joined
from unveil.serving.streaming import write_frames
from unveil.wording import some


@dataclass(frozen=True)
class ListRequest:
    """Whom to recommend to, and under which conditions.

    A history is text with commas between ids, quoted as in CSV; histories are a log of their own, of new or known
    users; files of users, candidates and exclusions have one id per line. Without any of them, all users of the log are
    meant. Conditions are on the attributes in the file `items`.
    """

    history: str | None = None
    histories: LogSource | None = None
    users: Path | None = None
    k: int = 10
    filter_seen: bool = True
    novelty: float = 0.0
    candidates: Path | None = None
    exclude: Path | None = None
    items: Path | None = None
    where: Sequence[str] = ()
    reasons: int = 0
    fallback: bool = False  # popularity for unknown users and histories
    warn: Callable[[str], None] = field(default=lambda _: None)  # called with unknown candidates and exclusions

    def __post_init__(self) -> None:
        if self.history is not None and self.users is not None:
            raise UnveilError("a history and a file of users were both given", expected="one of them")
        if self.histories is not None and (self.history is not None or self.users is not None):
            raise UnveilError("histories and a history or users were both given", expected="one of them")
        if self.where and self.items is None:
            raise UnveilError("conditions need item attributes", hint="Name their file with --items.")

    @property
    def for_all_users(self) -> bool:
        """Whether all users of the log are meant."""
        return self.history is None and self.histories is None and self.users is None

    def selection(self, recommender: Recommender) -> Selection:
        """Which items may be recommended, and how they are ranked."""
        candidates = self._known(recommender, "candidates", self.candidates)
        if self.items is not None and self.where:
            matching = Attributes.read(self.items).matching(list(self.where))
            candidates = matching if candidates is None else list(set(matching) & set(candidates))
        exclude = self._known(recommender, "exclusions", self.exclude) or []
        return recommender.choice(self.k, novelty=self.novelty, candidates=candidates, exclude=exclude)

    def _known(self, recommender: Recommender, what: str, path: Path | None) -> list[str] | None:
        """The ids of the file; unknown ones have no effect, which is reported."""
        if path is None:
            return None
        ids = read_ids(path, "item")
        unknown = [raw for raw, place in zip(ids, recommender.items.index(ids), strict=True) if place == UNKNOWN]
        if unknown:
            self.warn(f"unknown {what} skipped ({len(unknown):,} of {len(ids):,}): {some(unknown)}")
        return ids


def recommendations(folder: Path, request: ListRequest) -> Recommendations:
    """What to recommend. The recommendations for one history have no column of users.

    With a fallback, the column `fallback` says which recommendations are by popularity.
    """
    lists = _lists(Recommender.load(folder), request)
    return replace(lists, frame=_marked(lists.frame, request, lists.fallback_users))


def _lists(recommender: Recommender, request: ListRequest) -> Recommendations:
    selection = request.selection(recommender)
    if request.history is not None:
        return _after(recommender, request, selection)
    if request.histories is not None:
        return _of_log(recommender, request.histories.read(even_one=True), request, selection)
    return _of(recommender, None if request.users is None else read_ids(request.users, "user"), request, selection)


def _of_log(recommender: Recommender, log: Interactions, request: ListRequest, selection: Selection) -> Recommendations:
    """Recommendations for the users of another log, by their histories in it."""
    users, is_known = log.users.ids.to_list(), recommender.items.index(log.items.ids) != UNKNOWN
    unknown = tuple(log.items.ids.filter(~pl.Series(is_known)))
    if request.fallback and not is_known.any():
        cold = _cold(recommender, users, selection, request)
        return Recommendations(cold, unknown_items=unknown, fallback_users=tuple(users))
    return replace(_of(recommender.with_histories(log), users, request, selection), unknown_items=unknown)


def _of(
    recommender: Recommender, users: list[str] | None, request: ListRequest, selection: Selection
) -> Recommendations:
    """Recommendations for these users, or for all; unknown ones get popular items if there is a fallback."""
    unknown = [] if users is None else _unknown_users(recommender, users)
    if unknown and request.fallback:
        cold = set(unknown)
        known = [user for user in users or [] if user not in cold]
        lists = recommender.recommend(known, selection, filter_seen=request.filter_seen)
        return Recommendations(
            joined([_explained(recommender, lists.frame, request), _cold(recommender, unknown, selection, request)]),
            fallback_users=tuple(unknown),
        )
    lists = recommender.recommend(users, selection, filter_seen=request.filter_seen)
    return replace(lists, frame=_explained(recommender, lists.frame, request))


def recommend_all(folder: Path, request: ListRequest, path: Path) -> int:
    """Stream the recommendations for all users of the log to a file; the number of rows."""
    recommender = Recommender.load(folder)
    user_U = np.arange(len(recommender.users), dtype=np.int32)
    frames = recommender.batches(user_U, request.selection(recommender), filter_seen=request.filter_seen)
    marked = (_marked(_explained(recommender, frame, request), request, ()) for frame in frames)
    return write_frames(marked, _schema(request), path)


def _after(recommender: Recommender, request: ListRequest, selection: Selection) -> Recommendations:
    """Recommendations for one history."""
    ids = _ids_of(request.history or "")
    if request.fallback and not (recommender.items.index(ids) != UNKNOWN).any():
        cold = _cold(recommender, [""], selection, request).drop("user_id")
        return Recommendations(cold, unknown_items=tuple(ids), fallback_users=("",))
    lists = recommender.recommend_for([ids], selection, filter_seen=request.filter_seen)
    index = recommender.items.index(ids)
    histories = {"0": index[index != UNKNOWN]}
    frame = explained(recommender, lists.frame, histories, request.reasons) if request.reasons else lists.frame
    return replace(lists, frame=frame.drop("user_id"))


def _explained(recommender: Recommender, frame: pl.DataFrame, request: ListRequest) -> pl.DataFrame:
    if not request.reasons:
        return frame
    names = frame["user_id"].unique(maintain_order=True)
    user_B, sequences = recommender.users.index(names), recommender.sequences
    histories = {name: sequences.history(int(user)) for name, user in zip(names, user_B, strict=True)}
    steps = dict(zip(names, next_steps(sequences, user_B).tolist(), strict=True))
    return explained(recommender, frame, histories, request.reasons, steps)


def _cold(recommender: Recommender, users: Sequence[str], selection: Selection, request: ListRequest) -> pl.DataFrame:
    """The same popular items for each."""
    frame = recommender.popular(users, selection)
    return (
        explained(recommender, frame, {user: np.zeros(0, np.int32) for user in users}, 0) if request.reasons else frame
    )


def _unknown_users(recommender: Recommender, users: Sequence[str]) -> list[str]:
    index = recommender.users.index(list(users))
    return [user for user, place in zip(users, index, strict=True) if place == UNKNOWN]


def _ids_of(history: str) -> list[str]:
    """The ids between commas, or one per line; with quotes as in CSV."""
    parts = (part.strip() for row in csv.reader(history.splitlines(), skipinitialspace=True) for part in row)
    try:
        return [part for part in parts if part]
    except csv.Error as error:
        raise UnveilError(f"not ids with commas between them: {error}", where="the history") from None


def _marked(frame: pl.DataFrame, request: ListRequest, users: Sequence[str]) -> pl.DataFrame:
    """With the column `fallback`, if there is one: popularity where the model could not answer."""
    if not request.fallback:
        return frame
    cold = pl.col("user_id").is_in(list(users)) if "user_id" in frame.columns else pl.lit(bool(users))
    return frame.with_columns(pl.when(cold).then(pl.lit("popularity")).otherwise(None).alias("fallback"))


def _schema(request: ListRequest) -> Mapping[str, Any]:
    schema = {**SCHEMA, **COLUMNS} if request.reasons else SCHEMA
    return {**schema, "fallback": pl.String} if request.fallback else schema


def read_ids(path: Path, kind: str) -> list[str]:
    """The ids in a file, one per line."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise UnveilError(f"cannot be read: {error.strerror}", where=path) from None
    except UnicodeDecodeError:
        raise UnveilError("not text in UTF-8", where=path, expected=f"one {kind} id per line") from None
    ids = [line.strip() for line in lines if line.strip()]
    if not ids:
        raise UnveilError("the file is empty", where=path, expected=f"one {kind} id per line")
    return ids
