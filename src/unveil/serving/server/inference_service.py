"""The inference service: scores requests on its own threads, reloads models that have changed, logs and counts.

Logs are one JSON object a line, on standard error. Neither ids of users nor histories are written.
"""

import asyncio
import json
import logging
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from unveil.errors import UnveilError, check_range
from unveil.serving.server.model_store import ModelStore, ReloadResult, ServedModel, error_at
from unveil.serving.server.schemas import RecommendRequest, RecommendResponse

T = TypeVar("T")
LOGGER = logging.getLogger("unveil.server")


class JsonFormatter(logging.Formatter):
    """time, level and event first; then the other fields."""

    def format(self, record: logging.LogRecord) -> str:
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line = {"time": f"{moment}.{int(record.msecs):03d}Z", "level": record.levelname.lower()}
        line |= {"event": record.getMessage(), **getattr(record, "fields", {})}
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)  # in ASCII: what a path holds cannot end a line or steer a terminal


def start_logs() -> None:
    """Send the logs of the server and of Uvicorn to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    for logger, level in ((LOGGER, logging.INFO), (logging.getLogger("uvicorn"), logging.WARNING)):
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)


def log_event(event: str, fields: Mapping[str, Any] | None = None, *, level: int = logging.INFO) -> None:
    """Log an event with its fields."""
    LOGGER.log(level, event, extra={"fields": fields or {}})


class Metrics:
    """The counters of one server, for Prometheus."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()

        def counter(name: str, about: str, *labels: str) -> Counter:
            return Counter(f"unveil_{name}_total", about, labels, registry=registry)

        self.requests = counter("requests", "Requests answered.", "path", "status")
        self.lists = counter("lists", "Lists given.", "model")
        self.fallbacks = counter("fallbacks", "Lists by popularity: nothing of the history was known.", "model")
        self.unknown = counter("unknown_items", "Items of histories that the model does not know.", "model")
        self.reloads = counter("reloads", "Folders looked at that had changed.", "model", "outcome")
        self.under_way = Gauge("unveil_requests_under_way", "Requests not answered yet.", registry=registry)
        limits = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
        self.seconds = Histogram(
            "unveil_request_seconds", "Time to answer.", ["path"], buckets=limits, registry=registry
        )

    def count(self, answers: Sequence[RecommendResponse]) -> None:
        for answer in answers:
            self.lists.labels(answer.model).inc()
            self.unknown.labels(answer.model).inc(len(answer.unknown_items))
            if answer.fallback:
                self.fallbacks.labels(answer.model).inc()


@dataclass(frozen=True)
class Limits:
    """Whatever is beyond a limit is answered with a message that names it: 408, 413, 422 or 429."""

    body: int = 1 << 20  # bytes of a request
    history: int = 10_000  # items of a history; also of candidates and exclusions
    k: int = 1_000  # items of a list
    batch: int = 256  # histories of one request
    passes: int = 10_000  # of the model, for the reasons of one request: one for each item that is left out in turn
    concurrent: int = 256  # requests under way or waiting at once
    seconds: float = 10.0  # until a request has arrived, its head and its body each

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            check_range(value > 0, f"limit {name}", value, "above 0")


@dataclass(frozen=True)
class Settings:
    """Address, access, limits, and how to stop."""

    host: str = "127.0.0.1"
    port: int = 8000
    token: str | None = None
    workers: int = 2  # scoring threads
    watch: float | None = 2.0  # seconds between checks for changed folders; None: only on request
    drain: float = 1.0  # seconds after the signal in which new requests are still answered
    limits: Limits = field(default_factory=Limits)
    hosts: Sequence[str] = ()  # accepted host names, besides those of this machine


class InferenceService:
    """Models, limits, metrics, and the scoring threads; each request is scored by one of them."""

    def __init__(self, store: ModelStore, settings: Settings) -> None:
        self.store, self.settings, self.limits, self.metrics = store, settings, settings.limits, Metrics()
        self.draining, self._pool = False, ThreadPoolExecutor(settings.workers, thread_name_prefix="scoring")

    @asynccontextmanager
    async def open(self, app: object) -> AsyncIterator[None]:
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
        return await asyncio.get_running_loop().run_in_executor(self._pool, task)

    async def answer(self, requests: Sequence[RecommendRequest], *, batch: bool = False) -> list[RecommendResponse]:
        """One response for each request, scored by model; an error in a batch names the place of its request."""
        _check_at_most(len(requests), self.limits.batch, "questions")
        places = [f"questions.{n}" if batch else "" for n in range(len(requests))]
        models, answers, passes = list[ServedModel](), dict[int, RecommendResponse](), 0
        for place, request in zip(places, requests, strict=True):
            with error_at(place):
                self._check_limits(request)
                models.append(self.store.model(request.model))
            passes += models[-1].passes(request)
        if passes > self.limits.passes:  # reasons cost most: a forward pass for each item of the history
            hint = "Request reasons for fewer lists at once; or start the server with a higher --max-passes."
            problem, expected = "reasons: too many forward passes for one request", f"at most {self.limits.passes:,}"
            raise UnveilError(problem, found=f"{passes:,}", expected=expected, hint=hint)
        for served in dict.fromkeys(models):
            of_model = [n for n, each in enumerate(models) if each is served]
            task = partial(served.answer, [requests[n] for n in of_model], [places[n] for n in of_model])
            answers.update(zip(of_model, await self.work(task), strict=True))
        given = [answers[n] for n in range(len(requests))]
        self.metrics.count(given)
        return given

    async def reload(self, *, force: bool = False) -> list[ReloadResult]:
        """Load changed folders, away from the scoring threads."""
        outcomes = await asyncio.to_thread(self.store.reload, force=force)
        for outcome in outcomes:
            if outcome.refused or outcome.changed:
                how, level = ("refused", logging.WARNING) if outcome.refused else ("loaded", logging.INFO)
                self.metrics.reloads.labels(outcome.name, how).inc()
                log_event(f"model {how}", vars(outcome), level=level)
        return outcomes

    async def _watch(self) -> None:
        while self.settings.watch is not None:
            await asyncio.sleep(self.settings.watch)
            try:
                await self.reload()
            except Exception as error:  # the watch must not end unnoticed
                log_event("watching failed", {"error": repr(error)}, level=logging.ERROR)

    def _check_limits(self, request: RecommendRequest) -> None:
        if request.user is not None and request.history is not None:
            raise UnveilError("a user and a history were both given", expected="one of them")
        _check_at_most(request.k, self.limits.k, "k")
        for name in ("history", "candidates", "exclude"):
            _check_at_most(len(getattr(request, name) or ()), self.limits.history, name)


def _check_at_most(found: int, limit: int, name: str) -> None:
    if found > limit:
        raise UnveilError(f"{name}: too many", found=f"{found:,}", expected=f"at most {limit:,}")
