"""The inference service: scores requests on its own threads, and reloads models that have changed."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from logging import ERROR, WARNING
from typing import TypeVar

from unveil.errors import UnveilError
from unveil.serving.server import schemas
from unveil.serving.server.limits import Limits, LimitsMiddleware
from unveil.serving.server.model_store import BadRequestError, ModelStore, ReloadResult, ServedModel
from unveil.serving.server.monitoring import Metrics, log_event

T = TypeVar("T")


@dataclass
class InferenceService:
    """Models, limits, metrics, and the scoring threads; each request is scored by one of them."""

    store: ModelStore
    limits: Limits
    metrics: Metrics
    middleware: LimitsMiddleware
    workers: int = 2
    watch: float | None = None  # seconds between checks for changed folders; None: only on request
    _pool: ThreadPoolExecutor = field(init=False)

    def __post_init__(self) -> None:
        self._pool = ThreadPoolExecutor(self.workers, thread_name_prefix="scoring")

    @asynccontextmanager
    async def open(self, app: object) -> AsyncIterator[None]:
        """Watch the folders while the server runs; then wait for running requests."""
        watching = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching
            self._pool.shutdown()
            log_event("stopped")

    async def work(self, task: Callable[[], T]) -> T:
        """Run a task on one of the scoring threads."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, task)

    async def answer(
        self, requests: Sequence[schemas.RecommendRequest], *, batch: bool = False
    ) -> list[schemas.RecommendResponse]:
        """One response for each request; those to the same model are scored together.

        An error in a batch names the place of its request, from 0.
        """
        _check_at_most(len(requests), self.limits.batch, "questions")
        models = []
        for place, request in enumerate(requests):
            with _at_place(place, batch=batch):
                self._check_limits(request)
                models.append(self.store.model(request.model))
        self._check_passes(models, requests)
        by_model: dict[str, list[int]] = {}
        for place, served in enumerate(models):
            by_model.setdefault(served.name, []).append(place)
        answers: dict[int, schemas.RecommendResponse] = {}
        for places in by_model.values():
            answers.update(await self._answers(models[places[0]], requests, places, batch=batch))
        given = [answers[place] for place in range(len(requests))]
        self.metrics.count(given)
        return given

    async def _answers(
        self, served: ServedModel, requests: Sequence[schemas.RecommendRequest], places: Sequence[int], *, batch: bool
    ) -> dict[int, schemas.RecommendResponse]:
        chosen = [requests[place] for place in places]
        try:
            return dict(zip(places, await self.work(lambda: served.answer(chosen)), strict=True))
        except BadRequestError as bad:
            with _at_place(places[bad.place], batch=batch):
                raise

    def describe(self, served: ServedModel) -> schemas.ModelInfo:
        """A served model, as /v1/models shows it."""
        recommender = served.recommender
        return schemas.ModelInfo(
            name=served.name,
            version=served.version,
            network=served.network,
            items=len(recommender.items),
            users=len(recommender.users),
            length=recommender.length,
            max_k=self.limits.k,
            propensity=served.propensity,
            dial=[dict(point) for point in served.dial],
        )

    async def reload(self, *, force: bool = False) -> list[ReloadResult]:
        """Load changed folders, away from the scoring threads."""
        outcomes = await asyncio.to_thread(self.store.reload, force=force)
        for outcome in outcomes:
            if outcome.refused or outcome.changed:
                how = "refused" if outcome.refused else "loaded"
                self.metrics.reloads.labels(outcome.name, how).inc()
                log_event(f"model {how}", vars(outcome), level=WARNING if outcome.refused else 20)
        return outcomes

    async def _watch(self) -> None:
        while self.watch is not None:
            await asyncio.sleep(self.watch)
            try:
                await self.reload()
            except Exception as error:  # the watch must not end unnoticed
                log_event("watching failed", {"error": repr(error)}, level=ERROR)

    def _check_limits(self, request: schemas.RecommendRequest) -> None:
        if request.user is not None and request.history is not None:
            raise UnveilError("a user and a history were both given", expected="one of them")
        _check_at_most(request.k, self.limits.k, "k")
        for name in ("history", "candidates", "exclude"):
            _check_at_most(len(getattr(request, name) or ()), self.limits.history, name)

    def _check_passes(self, models: Sequence[ServedModel], requests: Sequence[schemas.RecommendRequest]) -> None:
        """Reasons need one forward pass for each item of the history: they cost most."""
        passes = sum(served.passes(request) for served, request in zip(models, requests, strict=True))
        if passes > self.limits.passes:
            raise UnveilError(
                "reasons: too many forward passes for one request",
                found=f"{passes:,}",
                expected=f"at most {self.limits.passes:,}",
                hint="Request reasons for fewer lists at once; or start the server with a higher --max-passes.",
            )


@contextmanager
def _at_place(place: int, *, batch: bool) -> Iterator[None]:
    """Add the place of the request in its batch to an error."""
    try:
        yield
    except UnveilError as error:
        if not batch:
            raise
        where = f"questions.{place}" + ("" if error.where is None else f": {error.where}")
        raise UnveilError(
            error.problem, where=where, found=error.found, expected=error.expected, hint=error.hint
        ) from error


def _check_at_most(found: int, limit: int, name: str) -> None:
    if found > limit:
        raise UnveilError(f"{name}: too many", found=f"{found:,}", expected=f"at most {limit:,}")
