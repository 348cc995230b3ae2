"""Logs as one JSON object a line, on standard error. Neither ids of users nor histories are written."""

import json
import logging
import sys
import time
from typing import Any

LOGGER = logging.getLogger("unveil.server")


class AsJson(logging.Formatter):
    """time, level and event first; then whatever is told beside."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line = {"time": f"{moment}.{int(record.msecs):03d}Z", "level": record.levelname.lower()}
        line |= {"event": record.getMessage(), **getattr(record, "told", {})}
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)  # in ASCII: what a path holds cannot end a line or steer a terminal


def start(level: str = "info") -> None:
    """Send what the server and Uvicorn have to say to standard error, and nothing else."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(AsJson())
    for name in ("unveil.server", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level.upper() if name == "unveil.server" else logging.WARNING)


def tell(event: str, told: dict[str, Any] | None = None, *, level: int = logging.INFO) -> None:
    """Log an event with what belongs to it."""
    LOGGER.log(level, event, extra={"told": told or {}})
