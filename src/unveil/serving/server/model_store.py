"""A model that answers requests: the recommender on ONNX Runtime, with ids and titles at hand.

Shapes: B histories, K places, V items.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from unveil.data.slots import tokens_of
from unveil.data.vocabulary import UNKNOWN
from unveil.errors import UnveilError, unknown
from unveil.evaluation.metrics import NOBODY
from unveil.evaluation.protocols import no_cells
from unveil.evaluation.ranking import at_rest
from unveil.serving.attributes import Attributes
from unveil.serving.explanations import effects
from unveil.serving.export import network_of, servable
from unveil.serving.exposure import POPULARITY, item_exposures, next_steps
from unveil.serving.folder import DIAL, EXPOSURE, HISTORIES, ITEMS, MANIFEST, USERS, WEIGHTS, read_dial, version_of
from unveil.serving.recommender import Recommender, Selection
from unveil.serving.server.schemas import ItemMatch, Reason, RecommendedItem, RecommendRequest, RecommendResponse

#: Scores held at once: 16 MiB.
CELLS = 2**22
History = NDArray[np.int64]


class BadRequestError(UnveilError):
    """An error in one of several requests; `place` counts from 0."""

    def __init__(self, place: int, error: UnveilError) -> None:
        super().__init__(error.problem, where=error.where, found=error.found, expected=error.expected, hint=error.hint)
        self.place = place


@dataclass(frozen=True, eq=False)
class ItemInfo:
    """Titles and attributes of items."""

    titles: Mapping[str, str] = field(default_factory=dict)
    attributes: Attributes | None = None


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

    @cached_property
    def ids(self) -> list[str]:
        """Raw id of each item."""
        return self.recommender.items.ids.to_list()

    @cached_property
    def place(self) -> dict[str, int]:
        """Index of each raw id: faster for a few ids than the vocabulary."""
        return {raw: place for place, raw in enumerate(self.ids)}

    @cached_property
    def titles(self) -> list[str]:
        """Title of each item, or its id."""
        return [self.info.titles.get(raw, raw) for raw in self.ids]

    @property
    def share_V(self) -> NDArray[np.float64]:
        """Popularity of each item, as a share of all interactions."""
        return self.recommender.share_V

    @property
    def propensity(self) -> str:
        """Source of the items' propensities."""
        exposure = self.recommender.exposure
        return POPULARITY if exposure is None else exposure.source

    def warm(self) -> None:
        """Fill all caches before the first request."""
        self.answer([RecommendRequest(history=self.ids[:1], k=1, filter_seen=False), RecommendRequest(k=1)])
        self.search("", 1)

    def answer(self, requests: Sequence[RecommendRequest]) -> list[RecommendResponse]:
        """One response for each request; all histories are scored together."""
        histories = [self._history(request) for request in requests]
        selections = [self._selection_of(place, request) for place, request in enumerate(requests)]
        scores = self._scores([history for history, _ in histories])
        return [
            self._answer(request, selection, history, unknown, scores_1V)
            for request, selection, (history, unknown), scores_1V in zip(
                requests, selections, histories, scores, strict=True
            )
        ]

    def passes(self, request: RecommendRequest) -> int:
        """Number of forward passes for the reasons of one request."""
        history, _ = self._history(request) if request.reasons else (np.zeros(0, np.int64), [])
        return 1 + len(np.unique(history[1 - self.recommender.length :])) if len(history) else 0

    def search(self, text: str, limit: int) -> list[ItemMatch]:
        """The item with this id; then, by popularity, titles with the words as a phrase, then with all words."""
        return [
            ItemMatch(item_id=self.ids[v], title=self.titles[v], popularity=float(self.share_V[v]))
            for v in islice(self._hits(text), limit)
        ]

    def _hits(self, text: str) -> Iterator[int]:
        words, named = text.lower().split(), self.place.get(text.strip())
        phrase, others = " ".join(words), [v for v in self._by_popularity if v != named]
        if named is not None:
            yield named
        yield from (v for v in others if phrase in self._searched[v])
        if len(words) > 1:
            apart = (v for v in others if phrase not in self._searched[v])
            yield from (v for v in apart if all(word in self._searched[v] for word in words))

    @cached_property
    def _by_popularity(self) -> list[int]:
        order: list[int] = np.argsort(-self.recommender.count_V, kind="stable").tolist()
        return order

    @cached_property
    def _searched(self) -> list[str]:
        return [f"{raw} {title}".lower() for raw, title in zip(self.ids, self.titles, strict=True)]

    def _history(self, request: RecommendRequest) -> tuple[History, list[str]]:
        """Indices of the items that are known, and the ids that are not."""
        if request.user is not None:
            user = self.recommender.users.find(request.user)
            known = self.recommender.sequences.history(user) if user != UNKNOWN else np.zeros(0)
            return known.astype(np.int64), []
        given = request.history or []
        places = [self.place.get(raw, UNKNOWN) for raw in given]
        return np.array([place for place in places if place != UNKNOWN], np.int64), self._unknown(given)

    def _unknown(self, given: Sequence[str]) -> list[str]:
        """The ids that the model does not know, each once."""
        return [raw for raw in dict.fromkeys(given) if raw not in self.place]

    def _selection_of(self, place: int, request: RecommendRequest) -> Selection:
        try:
            return self._selection(request)
        except UnveilError as error:
            raise BadRequestError(place, error) from error

    def _selection(self, request: RecommendRequest) -> Selection:
        candidates = request.candidates
        if request.where:
            matching = self._matching(tuple(request.where))
            candidates = list(matching if candidates is None else matching & set(candidates))
        return self.recommender.choice(
            request.k, novelty=request.novelty, candidates=candidates, exclude=request.exclude
        )

    @cached_property
    def _matching(self) -> Any:
        @lru_cache(maxsize=256)
        def matching(conditions: tuple[str, ...]) -> frozenset[str]:
            if self.info.attributes is None:
                hint = "Start the server with --items FILE."
                raise UnveilError("conditions need item attributes, and the server has none", hint=hint)
            return frozenset(self.info.attributes.matching(list(conditions)))

        return matching

    def _scores(self, histories: Sequence[History]) -> Iterator[Tensor]:
        """scores_1V of each history, scored in batches; popularity for histories without a known item."""
        warm = [history for history in histories if len(history)]
        size = max(1, CELLS // len(self.ids))
        rows = (row_1V for at in range(0, len(warm), size) for row_1V in self._rows(warm[at : at + size]))
        for history in histories:
            yield next(rows) if len(history) else self.recommender.popularity_1V

    def _rows(self, histories: Sequence[History]) -> Iterator[Tensor]:
        token_BL = tokens_of(histories, len(self.ids), self.recommender.length)
        with at_rest(self.recommender.model):
            scores_BV = self.recommender.model.scores(token_BL)
        yield from (scores_BV[row : row + 1] for row in range(len(histories)))

    def _answer(
        self, request: RecommendRequest, selection: Selection, history: History, unknown: list[str], scores_1V: Tensor
    ) -> RecommendResponse:
        seen = (np.zeros(len(history), np.int64), history) if request.filter_seen else no_cells()
        top_1K, score_1K = (selection if len(history) else selection.without_novelty())(scores_1V, seen)
        top_K = [item for item in top_1K[0].tolist() if item != NOBODY]
        why = self._reasons(history, top_K, request.reasons)
        shown = item_exposures(self.recommender.exposure, self.share_V, top_K, self._step(request))
        items = [
            RecommendedItem(
                item_id=self.ids[item],
                title=self.titles[item],
                rank=rank,
                score=score,
                popularity=float(self.share_V[item]),
                propensity=exposure.propensity,
                propensity_source=exposure.source,
                reasons=reasons,
            )
            for rank, (item, score, exposure, reasons) in enumerate(
                zip(top_K, score_1K[0].tolist(), shown, why, strict=False), 1
            )
        ]
        return RecommendResponse(
            model=self.name,
            version=self.version,
            items=items,
            unknown_items=unknown,
            unknown_choices=self._unknown([*(request.candidates or []), *request.exclude]),
            fallback=None if len(history) else "popularity",
        )

    def _step(self, request: RecommendRequest) -> int | None:
        """The next step of a known user; None otherwise."""
        user = UNKNOWN if request.user is None else self.recommender.users.find(request.user)
        return None if user == UNKNOWN else int(next_steps(self.recommender.sequences, np.array([user]))[0])

    def _reasons(self, history: History, top_K: list[int], count: int) -> list[list[Reason]]:
        if not count or not len(history) or not top_K:
            return [[] for _ in top_K]
        found = effects(self.recommender.model, history, np.array(top_K), len(self.ids), self.recommender.length)
        return [
            [
                Reason(item_id=self.ids[item], title=self.titles[item], effect=effect)
                for item, effect in found.strongest(k, count)
            ]
            for k in range(len(top_K))
        ]


Signature = tuple[tuple[int, int, int], ...]


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
    _seen: dict[str, Signature] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def add(self, folders: Sequence[Path]) -> None:
        """Load the first versions; an invalid folder is an error."""
        for name, folder in zip(_names(folders), folders, strict=True):
            self._seen[name] = signature(folder)
            self.models = {**self.models, name: load(name, folder, self.info)}

    def check_titles(self) -> None:
        """At least one item of the models has a title."""
        titles = self.info.titles
        if titles and not any(raw in titles for served in self.models.values() for raw in served.ids):
            ids = next(iter(self.models.values())).ids
            raise UnveilError(
                "none of the models' items has a title",
                found=f"items such as {', '.join(ids[:3])}",
                expected=f"ids such as {', '.join(list(titles)[:3])}",
                hint="Where the log was renumbered, give the pairs of ids with --title-ids.",
            )

    def model(self, name: str | None) -> ServedModel:
        """The model of that name, or the first."""
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
            new = load(old.name, old.folder, self.info)
        except Exception as error:  # the old version stays, whatever is wrong
            reason = str(error) if isinstance(error, UnveilError) else repr(error)
            return ReloadResult(old.name, old.version, refused=reason)
        self.models = {**self.models, old.name: new}
        return ReloadResult(new.name, new.version, changed=new.version != old.version)


def load(name: str, folder: Path, info: ItemInfo) -> ServedModel:
    """Read a folder, convert its network to ONNX if possible, compare that with torch, and fill the caches."""
    recommender = Recommender.load(folder)
    network = network_of(recommender).name
    served = ServedModel(name, folder, version_of(folder), network, servable(recommender), info, read_dial(folder))
    served.warm()
    return served


def signature(folder: Path) -> Signature:
    """Time of change, size and inode of the files of a model."""
    return tuple(_stat(folder / name) for name in (MANIFEST, WEIGHTS, ITEMS, USERS, HISTORIES, EXPOSURE, DIAL))


def _stat(path: Path) -> tuple[int, int, int]:
    try:
        found = path.stat()
    except OSError:
        return (0, 0, 0)
    return found.st_mtime_ns, found.st_size, found.st_ino


def _names(folders: Sequence[Path]) -> list[str]:
    """The names of the folders; a number is added to repeated ones."""
    names: list[str] = []
    for folder in folders:
        name, number = folder.resolve().name, 2
        while name in names:
            name, number = f"{folder.resolve().name}-{number}", number + 1
        names.append(name)
    return names
