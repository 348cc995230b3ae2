"""Recommendations as the command line requests them: for one history, for the users of a file, or for all users."""

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import polars as pl

from unveil.data.filters import LogSource
from unveil.data.indexing import UNKNOWN, Index, read_ids
from unveil.data.interactions import Interactions
from unveil.errors import UnveilError
from unveil.serving.attributes import Attributes
from unveil.serving.export import write_frames
from unveil.serving.recommender import SCHEMA, Recommendations, Recommender, Selection
from unveil.wording import some

#: Popularity is the share of all interactions; the propensity is that of training, or popularity, as its source says.
COLUMNS: dict[str, type[pl.DataType]] = {"popularity": pl.Float64, "propensity": pl.Float64}
COLUMNS |= {"propensity_source": pl.String, "reasons": pl.String}


@dataclass(frozen=True)
class ListRequest:
    """Whom to recommend to: one history, the users of a log or a file, or by default all; and what.

    A history is text with commas between ids, quoted as in CSV. Conditions are on the attributes in the file `items`.
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
        given = [name for name in ("history", "histories", "users") if getattr(self, name) is not None]
        if len(given) > 1:
            raise UnveilError(f"{' and '.join(given)} were both given", expected="one of them")
        if self.where and self.items is None:
            raise UnveilError("conditions need item attributes", hint="Name their file with --items.")

    @property
    def for_all_users(self) -> bool:
        return self.history is None and self.histories is None and self.users is None

    def selection(self, recommender: Recommender) -> Selection:
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
    """Those for one history have no column of users. With a fallback, a column says which are by popularity."""
    writer = _Lists(Recommender.load(folder), request)
    if request.history is not None:
        rows = csv.reader(request.history.splitlines(), skipinitialspace=True)
        try:
            lists = writer.of_history([part.strip() for row in rows for part in row if part.strip()])
        except csv.Error as error:
            raise UnveilError(f"not ids with commas between them: {error}", where="the history") from None
    elif request.histories is not None:
        lists = writer.of_log(request.histories.read(even_one=True))
    else:
        lists = writer.of_users(None if request.users is None else read_ids(request.users, "user"))
    return replace(lists, frame=_marked(lists.frame, request, lists.fallback_users))


def recommend_all(folder: Path, request: ListRequest, path: Path) -> int:
    """Stream the recommendations for all users of the log to a file; the number of rows."""
    recommender = Recommender.load(folder)
    user_U = np.arange(len(recommender.users), dtype=np.int32)
    frames = recommender.batches(user_U, request.selection(recommender), filter_seen=request.filter_seen)
    written = (_marked(explained(recommender, frame, request.reasons), request) for frame in frames)
    schema = SCHEMA | (COLUMNS if request.reasons else {}) | ({"fallback": pl.String} if request.fallback else {})
    return write_frames(written, schema, path)


class _Lists:
    def __init__(self, recommender: Recommender, request: ListRequest) -> None:
        self.recommender, self.request, self.selection = recommender, request, request.selection(recommender)

    def of_history(self, ids: list[str]) -> Recommendations:
        index = self.recommender.items.index(ids)
        known = index[index != UNKNOWN]
        if self.request.fallback and not len(known):
            frame = self.popular([""]).drop("user_id")
            return Recommendations(frame, unknown_items=tuple(ids), fallback_users=("",))
        lists = self.recommender.recommend_for([ids], self.selection, filter_seen=self.request.filter_seen)
        frame = explained(self.recommender, lists.frame, self.request.reasons, {"0": known})
        return replace(lists, frame=frame.drop("user_id"))

    def of_log(self, log: Interactions) -> Recommendations:
        users, is_known = log.users.ids.to_list(), self.recommender.items.index(log.items.ids) != UNKNOWN
        unknown = tuple(log.items.ids.filter(~pl.Series(is_known)))
        if self.request.fallback and not is_known.any():
            return Recommendations(self.popular(users), unknown_items=unknown, fallback_users=tuple(users))
        self.recommender = self.recommender.with_histories(log)
        return replace(self.of_users(users), unknown_items=unknown)

    def of_users(self, users: list[str] | None) -> Recommendations:
        cold = list[str]()
        if users is not None and self.request.fallback:
            places = self.recommender.users.index(users).tolist()
            cold = [user for user, place in zip(users, places, strict=True) if place == UNKNOWN]
            users = [user for user, place in zip(users, places, strict=True) if place != UNKNOWN]
        lists = self.recommender.recommend(users, self.selection, filter_seen=self.request.filter_seen)
        known = explained(self.recommender, lists.frame, self.request.reasons)
        return replace(lists, frame=pl.concat([known, self.popular(cold)]), fallback_users=tuple(cold))

    def popular(self, users: list[str]) -> pl.DataFrame:
        return explained(self.recommender, self.recommender.popular(users, self.selection), self.request.reasons, {})


def _marked(frame: pl.DataFrame, request: ListRequest, users: Sequence[str] = ()) -> pl.DataFrame:
    """With the column `fallback`, if there is one: popularity where the model could not answer."""
    if not request.fallback:
        return frame
    cold = pl.col("user_id").is_in(list(users)) if "user_id" in frame.columns else pl.lit(bool(users))
    return frame.with_columns(pl.when(cold).then(pl.lit("popularity")).otherwise(None).alias("fallback"))


def factor(effect: float) -> str:
    """An effect as text: × 1.50, that many times as likely as without the item; ÷ 1.50, that many times less."""
    size, sign = np.exp(min(abs(effect), 700.0)), "×" if effect > -0.005 else "÷"  # not ÷ 1.00
    return f"{sign} {size:.2f}" if size < 1000 else f"{sign} > 1000"


def explained(
    recommender: Recommender, frame: pl.DataFrame, count: int, histories: Mapping[str, Index] | None = None
) -> pl.DataFrame:
    """With the columns of `COLUMNS`, if reasons are requested; `histories`, of item indices, are those of new users."""
    if not count:
        return frame
    items, sequences = recommender.items, recommender.sequences
    item_N, values = items.index(frame["item_id"]), [(0.0, 0.0, "", "")] * len(frame)
    for user, rows in frame.with_row_index("row").group_by("user_id", maintain_order=True).agg("row").iter_rows():
        place, item_K = recommender.users.find(user) if histories is None else UNKNOWN, item_N[rows]
        history = sequences.history(place) if histories is None else histories.get(user, np.zeros(0, np.int32))
        exposures, found = recommender.propensities(item_K, place), recommender.reasons(history, item_K, count)
        for row, item, exposure, strongest in zip(rows, item_K, exposures, found, strict=True):
            text = "; ".join(f"{items[other]} {factor(effect)}" for other, effect in strongest)
            values[row] = (float(recommender.share_V[item]), *exposure, text)
    return frame.hstack(pl.DataFrame(values, COLUMNS, orient="row"))
