"""Lists as they are asked for on the command line: after one history, for the users of a file, or for all."""

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
from unveil.serving.explanations import explained, explained_schema
from unveil.serving.exposure import next_steps
from unveil.serving.recommender import SCHEMA, Choice, Recommendations, Recommender, joined
from unveil.serving.streaming import write_frames
from unveil.wording import some


@dataclass(frozen=True)
class Asked:
    """Whom lists are for, and what they are to be like.

    A history is text with commas between ids, quoted as in CSV where they hold one; histories are a log of their own,
    of new users or old ones; files of users, candidates and exclusions have one id a line. Without any of them,
    everybody in the log is meant. Conditions are about the attributes in the file `items`.
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
    fallback: bool = False  # popularity for those of whom nothing is known
    tell: Callable[[str], None] = field(default=lambda _: None)  # hears of candidates and exclusions that are unknown

    def __post_init__(self) -> None:
        if self.history is not None and self.users is not None:
            raise UnveilError("a history and a file of users were both given", expected="one of them")
        if self.histories is not None and (self.history is not None or self.users is not None):
            raise UnveilError("histories were given, and a history or users as well", expected="one of them")
        if self.where and self.items is None:
            raise UnveilError("conditions need attributes of items", hint="Name their file with --items.")

    @property
    def of_everybody(self) -> bool:
        """Whether the lists of all users are meant."""
        return self.history is None and self.histories is None and self.users is None

    def choice(self, recommender: Recommender) -> Choice:
        """Which items may be listed, and how they are ranked."""
        candidates = self._known(recommender, "candidates", self.candidates)
        if self.items is not None and self.where:
            matching = Attributes.read(self.items).matching(list(self.where))
            candidates = matching if candidates is None else list(set(matching) & set(candidates))
        exclude = self._known(recommender, "exclusions", self.exclude) or []
        return recommender.choice(self.k, novelty=self.novelty, candidates=candidates, exclude=exclude)

    def _known(self, recommender: Recommender, what: str, path: Path | None) -> list[str] | None:
        """The ids of the file; those that the model does not know do nothing, which is told."""
        if path is None:
            return None
        ids = read_ids(path, "item")
        unknown = [raw for raw, place in zip(ids, recommender.items.index(ids), strict=True) if place == UNKNOWN]
        if unknown:
            self.tell(f"unknown {what} passed over ({len(unknown):,} of {len(ids):,}): {some(unknown)}")
        return ids


def lists_for(folder: Path, asked: Asked) -> Recommendations:
    """What to recommend. A history is nobody's in particular: its list has no column of users.

    Where popularity may answer, the column `fallback` says which lists are by it.
    """
    lists = _lists(Recommender.load(folder), asked)
    return replace(lists, frame=_marked(lists.frame, asked, lists.fallback_users))


def _lists(recommender: Recommender, asked: Asked) -> Recommendations:
    choice = asked.choice(recommender)
    if asked.history is not None:
        return _after(recommender, asked, choice)
    if asked.histories is not None:
        return _of_log(recommender, asked.histories.read(even_one=True), asked, choice)
    return _of(recommender, None if asked.users is None else read_ids(asked.users, "user"), asked, choice)


def _of_log(recommender: Recommender, log: Interactions, asked: Asked, choice: Choice) -> Recommendations:
    """The lists of everybody in another log, after the histories that it holds."""
    users, is_known = log.users.ids.to_list(), recommender.items.index(log.items.ids) != UNKNOWN
    unknown = tuple(log.items.ids.filter(~pl.Series(is_known)))
    if asked.fallback and not is_known.any():
        cold = _cold(recommender, users, choice, asked)
        return Recommendations(cold, unknown_items=unknown, fallback_users=tuple(users))
    return replace(_of(recommender.with_histories(log), users, asked, choice), unknown_items=unknown)


def _of(recommender: Recommender, users: list[str] | None, asked: Asked, choice: Choice) -> Recommendations:
    """The lists of these users, or of all; strangers get what is popular, where that was asked for."""
    strangers = [] if users is None else _strangers(recommender, users)
    if strangers and asked.fallback:
        cold = set(strangers)
        known = [user for user in users or [] if user not in cold]
        lists = recommender.recommend(known, choice, filter_seen=asked.filter_seen)
        return Recommendations(
            joined([_explained(recommender, lists.frame, asked), _cold(recommender, strangers, choice, asked)]),
            fallback_users=tuple(strangers),
        )
    lists = recommender.recommend(users, choice, filter_seen=asked.filter_seen)
    return replace(lists, frame=_explained(recommender, lists.frame, asked))


def write_all(folder: Path, asked: Asked, path: Path) -> int:
    """The lists of everybody in the log as a file, written as they are made; the number of rows."""
    recommender = Recommender.load(folder)
    user_U = np.arange(len(recommender.users), dtype=np.int32)
    frames = recommender.batches(user_U, asked.choice(recommender), filter_seen=asked.filter_seen)
    told = (_marked(_explained(recommender, frame, asked), asked, ()) for frame in frames)
    return write_frames(told, _schema(asked), path)


def _after(recommender: Recommender, asked: Asked, choice: Choice) -> Recommendations:
    """The list after one history."""
    ids = _ids_of(asked.history or "")
    if asked.fallback and not (recommender.items.index(ids) != UNKNOWN).any():
        cold = _cold(recommender, [""], choice, asked).drop("user_id")
        return Recommendations(cold, unknown_items=tuple(ids), fallback_users=("",))
    lists = recommender.recommend_for([ids], choice, filter_seen=asked.filter_seen)
    index = recommender.items.index(ids)
    histories = {"0": index[index != UNKNOWN]}
    frame = explained(recommender, lists.frame, histories, asked.reasons) if asked.reasons else lists.frame
    return replace(lists, frame=frame.drop("user_id"))


def _explained(recommender: Recommender, frame: pl.DataFrame, asked: Asked) -> pl.DataFrame:
    if not asked.reasons:
        return frame
    names = frame["user_id"].unique(maintain_order=True)
    user_B, sequences = recommender.users.index(names), recommender.sequences
    histories = {name: sequences.history(int(user)) for name, user in zip(names, user_B, strict=True)}
    steps = dict(zip(names, next_steps(sequences, user_B).tolist(), strict=True))
    return explained(recommender, frame, histories, asked.reasons, steps)


def _cold(recommender: Recommender, users: Sequence[str], choice: Choice, asked: Asked) -> pl.DataFrame:
    """The same list by popularity for each."""
    frame = recommender.popular(users, choice)
    return explained(recommender, frame, {user: np.zeros(0, np.int32) for user in users}, 0) if asked.reasons else frame


def _strangers(recommender: Recommender, users: Sequence[str]) -> list[str]:
    index = recommender.users.index(list(users))
    return [user for user, place in zip(users, index, strict=True) if place == UNKNOWN]


def _ids_of(history: str) -> list[str]:
    """The ids between commas, or one a line; quotes hold one together."""
    parts = (part.strip() for row in csv.reader(history.splitlines(), skipinitialspace=True) for part in row)
    try:
        return [part for part in parts if part]
    except csv.Error as error:
        raise UnveilError(f"not ids with commas between them: {error}", where="the history") from None


def _marked(frame: pl.DataFrame, asked: Asked, users: Sequence[str]) -> pl.DataFrame:
    """With the column `fallback`, where one was asked for: what answered in the place of the model, or nothing."""
    if not asked.fallback:
        return frame
    cold = pl.col("user_id").is_in(list(users)) if "user_id" in frame.columns else pl.lit(bool(users))
    return frame.with_columns(pl.when(cold).then(pl.lit("popularity")).otherwise(None).alias("fallback"))


def _schema(asked: Asked) -> Mapping[str, Any]:
    schema = explained_schema(SCHEMA) if asked.reasons else SCHEMA
    return {**schema, "fallback": pl.String} if asked.fallback else schema


def read_ids(path: Path, kind: str) -> list[str]:
    """The ids in a file, one a line."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise UnveilError(f"cannot be read: {error.strerror}", where=path) from None
    except UnicodeDecodeError:
        raise UnveilError("not text in UTF-8", where=path, expected=f"one {kind} id a line") from None
    ids = [line.strip() for line in lines if line.strip()]
    if not ids:
        raise UnveilError("the file is empty", where=path, expected=f"one {kind} id a line")
    return ids
