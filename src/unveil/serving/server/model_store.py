"""Models that answer requests: recommenders on ONNX Runtime, with ids and titles. Shapes: K places, V items."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from torch import Tensor

from unveil.data.indexing import UNKNOWN, Index
from unveil.errors import UnveilError, unknown
from unveil.evaluation.metrics import NOBODY
from unveil.serving.attributes import Attributes
from unveil.serving.exposure import POPULARITY
from unveil.serving.model_files import DIAL, FILES, read_dial, version_of
from unveil.serving.onnx_model import servable
from unveil.serving.recommender import Recommender, Selection, model_of
from unveil.serving.server import schemas


@contextmanager
def error_at(place: str) -> Iterator[None]:
    """Add the place of a request in its batch to an error; "" where there is no batch."""
    try:
        yield
    except UnveilError as error:
        if not place:
            raise
        where = place if error.where is None else f"{place}: {error.where}"
        raise UnveilError(**{**vars(error), "where": where}) from error


@dataclass(frozen=True, eq=False)
class ItemInfo:
    """Titles and attributes of items."""

    titles: Mapping[str, str] = field(default_factory=dict)
    attributes: Attributes | None = None

    @cached_property
    def matching(self) -> Callable[[tuple[str, ...]], frozenset[str]]:
        """The ids of the items for which all conditions hold, by the conditions; kept for the next request."""

        @lru_cache(maxsize=256)
        def matching(conditions: tuple[str, ...]) -> frozenset[str]:
            if self.attributes is None:
                hint = "Start the server with --items FILE."
                raise UnveilError("conditions need item attributes, and the server has none", hint=hint)
            return frozenset(self.attributes.matching(list(conditions)))

        return matching


@dataclass(frozen=True, eq=False)
class ServedModel:
    """A recommender with ids and titles. Immutable: a new version is another object; running requests keep theirs."""

    name: str
    folder: Path
    version: str
    network: str
    recommender: Recommender
    info: ItemInfo = field(default_factory=ItemInfo)
    dial: Sequence[Mapping[str, float]] = ()

    @classmethod
    def load(cls, name: str, folder: Path, info: ItemInfo) -> "ServedModel":
        """Read a folder, convert its network to ONNX if possible, compare that with torch, and fill the caches."""
        recommender = Recommender.load(folder)
        network = model_of(recommender).name
        served = cls(name, folder, version_of(folder), network, servable(recommender), info, read_dial(folder))
        served.warm()
        return served

    def warm(self) -> None:
        """Fill all caches before the first request."""
        first = schemas.RecommendRequest(history=self.ids[:1], k=1, filter_seen=False)
        self.answer([first, schemas.RecommendRequest(k=1)])
        self.search("", 1)

    @cached_property
    def ids(self) -> list[str]:
        return self.recommender.items.ids.to_list()

    @cached_property
    def place(self) -> dict[str, int]:
        """Index of each raw id: faster for a few ids than the vocabulary."""
        return {raw: place for place, raw in enumerate(self.ids)}

    @cached_property
    def titles(self) -> list[str]:
        return [self.info.titles.get(raw, raw) for raw in self.ids]

    def describe(self, max_k: int) -> schemas.ModelInfo:
        exposure = self.recommender.exposure
        return schemas.ModelInfo(
            name=self.name,
            version=self.version,
            network=self.network,
            items=len(self.ids),
            users=len(self.recommender.users),
            length=self.recommender.length,
            max_k=max_k,
            propensity=POPULARITY if exposure is None else exposure.source,
            dial=[dict(point) for point in self.dial],
        )

    def answer(
        self, requests: Sequence[schemas.RecommendRequest], places: Sequence[str] = ()
    ) -> list[schemas.RecommendResponse]:
        """One response for each request; all histories are scored together. `places` are named in errors."""
        selections, histories = list[Selection](), [self._history(request) for request in requests]
        for request, place in zip(requests, places or [""] * len(requests), strict=True):
            with error_at(place):
                candidates = request.candidates
                if request.where:
                    matching = self.info.matching(tuple(request.where))
                    candidates = list(matching if candidates is None else matching & set(candidates))
                how: dict[str, Any] = {"novelty": request.novelty, "exclude": request.exclude}
                selections.append(self.recommender.choice(request.k, candidates=candidates, **how))
        known = [history for history in histories if len(history)]
        rows = (row_V for part in self.recommender.parts(len(known)) for row_V in self.recommender.scores(known[part]))
        scores = (next(rows)[None] if len(history) else self.recommender.popularity_1V for history in histories)
        return [self._answer(*part) for part in zip(requests, selections, histories, scores, strict=True)]

    def passes(self, request: schemas.RecommendRequest) -> int:
        """Number of forward passes for the reasons of one request."""
        history = self._history(request)[1 - self.recommender.length :]
        return 1 + len(np.unique(history)) if request.reasons and len(history) else 0

    def search(self, text: str, limit: int) -> list[schemas.ItemMatch]:
        """The item with this id; then, by popularity, titles with the words as a phrase, then with all words."""
        named, words, searched = self.place.get(text.strip()), text.lower().split(), self._searched
        found = [v for v in self._by_popularity if v != named and all(word in searched[v] for word in words)]
        found.sort(key=lambda v: " ".join(words) not in searched[v])
        if named is not None:
            found.insert(0, named)
        share_V = self.recommender.share_V
        return [schemas.ItemMatch(**self._named(v), popularity=float(share_V[v])) for v in found[:limit]]

    @cached_property
    def _by_popularity(self) -> list[int]:
        return list(np.argsort(-self.recommender.count_V, kind="stable").tolist())

    @cached_property
    def _searched(self) -> list[str]:
        return [f"{raw} {title}".lower() for raw, title in zip(self.ids, self.titles, strict=True)]

    def _named(self, item: int) -> dict[str, Any]:
        return {"item_id": self.ids[item], "title": self.titles[item]}

    def _user(self, request: schemas.RecommendRequest) -> int:
        return UNKNOWN if request.user is None else self.recommender.users.find(request.user)

    def _history(self, request: schemas.RecommendRequest) -> Index:
        if (user := self._user(request)) != UNKNOWN:
            return self.recommender.sequences.history(user)
        return np.array([self.place[raw] for raw in request.history or () if raw in self.place], np.int32)

    def _unknown(self, given: Sequence[str]) -> list[str]:
        return [raw for raw in dict.fromkeys(given) if raw not in self.place]

    def _answer(
        self, request: schemas.RecommendRequest, selection: Selection, history: Index, scores_1V: Tensor
    ) -> schemas.RecommendResponse:
        recommender = self.recommender
        selection = selection if len(history) else selection.without_novelty()
        top_1K, score_1K = selection(scores_1V, [history] if request.filter_seen else ())
        top_K = top_1K[0].numpy()[top_1K[0].numpy() != NOBODY]
        shown = recommender.propensities(top_K, self._user(request))
        why = recommender.reasons(history, top_K, request.reasons)
        items = [
            schemas.RecommendedItem(
                **self._named(item),
                rank=k + 1,
                score=float(score_1K[0, k]),
                popularity=float(recommender.share_V[item]),
                propensity=shown[k][0],
                propensity_source=shown[k][1],
                reasons=[schemas.Reason(**self._named(other), effect=effect) for other, effect in why[k]],
            )
            for k, item in enumerate(top_K.tolist())
        ]
        return schemas.RecommendResponse(
            model=self.name,
            version=self.version,
            items=items,
            unknown_items=self._unknown(request.history or ()),
            unknown_choices=self._unknown([*(request.candidates or []), *request.exclude]),
            fallback=None if len(history) else "popularity",
        )


@dataclass(frozen=True)
class ReloadResult:
    """Whether a folder was reloaded, or why not."""

    name: str
    version: str
    changed: bool = False
    refused: str | None = None


@dataclass
class ModelStore:
    """`models` is replaced whole, never changed: whoever reads it sees one state or the next."""

    info: ItemInfo = field(default_factory=ItemInfo)
    models: dict[str, ServedModel] = field(default_factory=dict)
    _seen: dict[str, list[tuple[int, int, int]]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def add(self, folders: Sequence[Path]) -> None:
        """Load the first versions; an invalid folder is an error. A number is added to a name that is repeated."""
        for folder in folders:
            name, number = folder.resolve().name, 2
            while name in self.models:
                name, number = f"{folder.resolve().name}-{number}", number + 1
            self._seen[name] = signature(folder)
            self.models = {**self.models, name: ServedModel.load(name, folder, self.info)}

    def check_titles(self) -> None:
        titles = self.info.titles
        if titles and not any(raw in titles for served in self.models.values() for raw in served.ids):
            ids = self.model(None).ids
            found, expected = f"items such as {', '.join(ids[:3])}", f"ids such as {', '.join(list(titles)[:3])}"
            hint = "Where the log was renumbered, give the pairs of ids with --title-ids."
            raise UnveilError("none of the models' items has a title", found=found, expected=expected, hint=hint)

    def model(self, name: str | None) -> ServedModel:
        models = self.models
        if name is None:
            return next(iter(models.values()))
        if name not in models:
            raise unknown("model", name, models)
        return models[name]

    def reload(self, *, force: bool = False) -> list[ReloadResult]:
        """Load the folders that have changed; with `force`, all of them."""
        with self._lock:
            return [self._reloaded(served, force=force) for served in list(self.models.values())]

    def _reloaded(self, old: ServedModel, *, force: bool) -> ReloadResult:
        now = signature(old.folder)
        if now == self._seen[old.name] and not force:
            return ReloadResult(old.name, old.version)
        self._seen[old.name] = now  # a refused folder is tried again only after another change
        try:
            new = ServedModel.load(old.name, old.folder, self.info)
        except Exception as error:  # the old version stays, whatever is wrong
            reason = str(error) if isinstance(error, UnveilError) else repr(error)
            return ReloadResult(old.name, old.version, refused=reason)
        self.models = {**self.models, old.name: new}
        return ReloadResult(new.name, new.version, changed=new.version != old.version)


def signature(folder: Path) -> list[tuple[int, int, int]]:
    """Time of change, size and inode of the files of a model; zeros where one is missing."""
    found = []
    for name in (*FILES, DIAL):
        try:
            stat = (folder / name).stat()
            found.append((stat.st_mtime_ns, stat.st_size, stat.st_ino))
        except OSError:
            found.append((0, 0, 0))
    return found
