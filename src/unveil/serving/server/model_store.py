"""A model that answers requests: the recommender on ONNX Runtime, with ids and titles at hand.

Shapes: B histories, K places, V items.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import islice
from pathlib import Path
from threading import Lock

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
from unveil.serving.explanations import reasons
from unveil.serving.exposure import POPULARITY, item_exposures, next_steps
from unveil.serving.model_files import DIAL, FILES, read_dial, version_of
from unveil.serving.onnx_model import servable
from unveil.serving.recommender import Recommender, Selection, network_of
from unveil.serving.server.schemas import (
    ItemMatch,
    ModelInfo,
    Reason,
    RecommendedItem,
    RecommendRequest,
    RecommendResponse,
)

History = NDArray[np.int64]


@contextmanager
def error_at(place: str) -> Iterator[None]:
    """Add the place of a request in its batch to an error; "" where there is no batch."""
    try:
        yield
    except UnveilError as error:
        if not place:
            raise
        where = place if error.where is None else f"{place}: {error.where}"
        raise UnveilError(
            error.problem, where=where, found=error.found, expected=error.expected, hint=error.hint
        ) from error


@dataclass(frozen=True, eq=False)
class ItemInfo:
    """Titles and attributes of items."""

    titles: Mapping[str, str] = field(default_factory=dict)
    attributes: Attributes | None = None

    @cached_property
    def matching(self) -> Callable[[tuple[str, ...]], frozenset[str]]:
        """The ids of the items for which all conditions hold, by the conditions; kept for the next request."""
        return lru_cache(maxsize=256)(self._matching)

    def _matching(self, conditions: tuple[str, ...]) -> frozenset[str]:
        if self.attributes is None:
            hint = "Start the server with --items FILE."
            raise UnveilError("conditions need item attributes, and the server has none", hint=hint)
        return frozenset(self.attributes.matching(list(conditions)))


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
        network = network_of(recommender).name
        served = cls(name, folder, version_of(folder), network, servable(recommender), info, read_dial(folder))
        served.warm()
        return served

    def warm(self) -> None:
        """Fill all caches before the first request."""
        self.answer([RecommendRequest(history=self.ids[:1], k=1, filter_seen=False), RecommendRequest(k=1)])
        self.search("", 1)

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

    def describe(self, max_k: int) -> ModelInfo:
        """As /v1/models shows it."""
        exposure = self.recommender.exposure
        return ModelInfo(
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

    def answer(self, requests: Sequence[RecommendRequest], places: Sequence[str] = ()) -> list[RecommendResponse]:
        """One response for each request; all histories are scored together. `places` are named in errors."""
        histories, selections = [self._history(request) for request in requests], list[Selection]()
        for request, place in zip(requests, places or [""] * len(requests), strict=True):
            with error_at(place):
                selections.append(self._selection(request))
        parts = zip(requests, selections, histories, self._scores(histories), strict=True)
        return [self._answer(*part) for part in parts]

    def passes(self, request: RecommendRequest) -> int:
        """Number of forward passes for the reasons of one request."""
        history = self._history(request)[1 - self.recommender.length :]
        return 1 + len(np.unique(history)) if request.reasons and len(history) else 0

    def search(self, text: str, limit: int) -> list[ItemMatch]:
        """The item with this id; then, by popularity, titles with the words as a phrase, then with all words."""
        share_V = self.recommender.share_V
        return [
            ItemMatch(item_id=self.ids[v], title=self.titles[v], popularity=float(share_V[v]))
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

    def _user(self, request: RecommendRequest) -> int:
        return UNKNOWN if request.user is None else self.recommender.users.find(request.user)

    def _history(self, request: RecommendRequest) -> History:
        """Indices of the items that are known."""
        if request.user is None:
            return np.array([self.place[raw] for raw in request.history or () if raw in self.place], np.int64)
        user = self._user(request)
        history = np.zeros(0) if user == UNKNOWN else self.recommender.sequences.history(user)
        return history.astype(np.int64)

    def _unknown(self, given: Sequence[str]) -> list[str]:
        """The ids that the model does not know, each once."""
        return [raw for raw in dict.fromkeys(given) if raw not in self.place]

    def _selection(self, request: RecommendRequest) -> Selection:
        candidates = request.candidates
        if request.where:
            matching = self.info.matching(tuple(request.where))
            candidates = list(matching if candidates is None else matching & set(candidates))
        return self.recommender.choice(
            request.k, novelty=request.novelty, candidates=candidates, exclude=request.exclude
        )

    def _scores(self, histories: Sequence[History]) -> Iterator[Tensor]:
        """scores_1V of each history, scored in batches; popularity for histories without a known item."""
        known = [history for history in histories if len(history)]
        rows = (row_V for part in self.recommender.parts(len(known)) for row_V in self._score(known[part]))
        for history in histories:
            yield next(rows)[None] if len(history) else self.recommender.popularity_1V

    def _score(self, histories: Sequence[History]) -> Tensor:
        with at_rest(self.recommender.model):
            return self.recommender.model.scores(tokens_of(histories, len(self.ids), self.recommender.length))

    def _answer(
        self, request: RecommendRequest, selection: Selection, history: History, scores_1V: Tensor
    ) -> RecommendResponse:
        recommender, user = self.recommender, self._user(request)
        step = None if user == UNKNOWN else int(next_steps(recommender.sequences, np.array([user]))[0])
        seen = (np.zeros(len(history), np.int64), history) if request.filter_seen else no_cells()
        top_1K, score_1K = (selection if len(history) else selection.without_novelty())(scores_1V, seen)
        top_K = [item for item in top_1K[0].tolist() if item != NOBODY]
        shown = item_exposures(recommender.exposure, recommender.share_V, top_K, step)
        why = reasons(recommender, history, np.array(top_K), request.reasons)
        items = [
            RecommendedItem(
                item_id=self.ids[item],
                title=self.titles[item],
                rank=rank,
                score=score,
                popularity=float(recommender.share_V[item]),
                propensity=exposure.propensity,
                propensity_source=exposure.source,
                reasons=[Reason(item_id=self.ids[v], title=self.titles[v], effect=effect) for v, effect in effects],
            )
            for rank, (item, score, exposure, effects) in enumerate(
                zip(top_K, score_1K[0].tolist(), shown, why, strict=False), 1
            )
        ]
        return RecommendResponse(
            model=self.name,
            version=self.version,
            items=items,
            unknown_items=self._unknown(request.history or ()),
            unknown_choices=self._unknown([*(request.candidates or []), *request.exclude]),
            fallback=None if len(history) else "popularity",
        )


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
        """Load the first versions; an invalid folder is an error. A number is added to a name that is repeated."""
        for folder in folders:
            name, number = folder.resolve().name, 2
            while name in self.models:
                name, number = f"{folder.resolve().name}-{number}", number + 1
            self._seen[name] = signature(folder)
            self.models = {**self.models, name: ServedModel.load(name, folder, self.info)}

    def check_titles(self) -> None:
        """At least one item of the models has a title."""
        titles = self.info.titles
        if titles and not any(raw in titles for served in self.models.values() for raw in served.ids):
            ids = self.model(None).ids
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
            new = ServedModel.load(old.name, old.folder, self.info)
        except Exception as error:  # the old version stays, whatever is wrong
            reason = str(error) if isinstance(error, UnveilError) else repr(error)
            return ReloadResult(old.name, old.version, refused=reason)
        self.models = {**self.models, old.name: new}
        return ReloadResult(new.name, new.version, changed=new.version != old.version)


def signature(folder: Path) -> Signature:
    """Time of change, size and inode of the files of a model; zeros where one is missing."""
    found = []
    for name in (*FILES, DIAL):
        try:
            stat = (folder / name).stat()
            found.append((stat.st_mtime_ns, stat.st_size, stat.st_ino))
        except OSError:
            found.append((0, 0, 0))
    return tuple(found)
