"""Logs as one JSON object a line, on standard error. Neither ids of users nor histories are written."""

import json
import logging
import sys
import time
from collections.abc import Sequence
from typing import Any

import prometheus_client

from unveil.serving.server.schemas import RecommendResponse

LOGGER = logging.getLogger("unveil.server")


class JsonFormatter(logging.Formatter):
    """time, level and event first; then the other fields."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line = {"time": f"{moment}.{int(record.msecs):03d}Z", "level": record.levelname.lower()}
        line |= {"event": record.getMessage(), **getattr(record, "told", {})}
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)  # in ASCII: what a path holds cannot end a line or steer a terminal


def start(level: str = "info") -> None:
    """Send the logs of the server and of Uvicorn to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    for name in ("unveil.server", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level.upper() if name == "unveil.server" else logging.WARNING)


def log_event(event: str, told: dict[str, Any] | None = None, *, level: int = logging.INFO) -> None:
    """Log an event with its fields."""
    LOGGER.log(level, event, extra={"told": told or {}})


_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Metrics:
    """The counters of one server."""

    def __init__(self) -> None:
        self.registry = prometheus_client.CollectorRegistry()
        self.requests = self._counter("requests", "Requests answered.", "path", "status")
        self.lists = self._counter("lists", "Lists given.", "model")
        self.fallbacks = self._counter("fallbacks", "Lists by popularity: nothing of the history was known.", "model")
        self.unknown = self._counter("unknown_items", "Items of histories that the model does not know.", "model")
        self.reloads = self._counter("reloads", "Folders looked at that had changed.", "model", "outcome")
        self.under_way = prometheus_client.Gauge(
            "unveil_requests_under_way", "Requests not answered yet.", registry=self.registry
        )
        self.seconds = prometheus_client.Histogram(
            "unveil_request_seconds", "Time to answer.", ["path"], buckets=_SECONDS, registry=self.registry
        )

    def count(self, answers: Sequence[RecommendResponse]) -> None:
        """Count the lists of these responses."""
        for answer in answers:
            self.lists.labels(answer.model).inc()
            self.unknown.labels(answer.model).inc(len(answer.unknown_items))
            if answer.fallback:
                self.fallbacks.labels(answer.model).inc()

    def text(self) -> bytes:
        """All metrics in the text format."""
        return prometheus_client.generate_latest(self.registry)

    def _counter(self, name: str, about: str, *labels: str) -> prometheus_client.Counter:
        return prometheus_client.Counter(f"unveil_{name}_total", about, labels, registry=self.registry)
