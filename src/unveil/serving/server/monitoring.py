"""Logs as one JSON object a line, on standard error, and metrics. Neither ids of users nor histories are written."""

import json
import logging
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from unveil.serving.server.schemas import RecommendResponse

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
