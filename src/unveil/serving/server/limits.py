"""Limits of the server, and the middleware that enforces them before a request is parsed.

A request is refused for a wrong token or, where none is needed, for its origin; for its size, for arriving too slowly,
and while too many others are being answered.
"""

import asyncio
import hmac
import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any
from uuid import uuid4

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from unveil.errors import UnveilError
from unveil.serving.server.monitoring import Metrics, log_event
from unveil.serving.server.origin_check import OriginCheck, OriginError


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
        for each in fields(self):
            if not getattr(self, each.name) > 0:
                raise UnveilError(
                    "out of range", where=f"limit {each.name}", found=getattr(self, each.name), expected="above 0"
                )


#: Paths that need no token: health checks, and a page without data.
OPEN = {"/", "/page.css", "/page.js", "/health", "/ready"}
#: Bytes of a too large body that are read and dropped, so that the client can read the response.
_DROPPED = 32 << 20
_REQUEST_ID = re.compile(r"[\w.:-]{1,64}")


class RefusalError(Exception):
    """A request that is refused here, with its status."""

    def __init__(self, status: int, error: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(error)
        self.status, self.error, self.headers = status, error, dict(headers or {})


@dataclass
class LimitsMiddleware:
    """ASGI middleware around the app; while `draining`, clients are asked to close their connections."""

    app: ASGIApp
    limits: Limits
    metrics: Metrics
    token: str | None = None
    draining: bool = False
    under_way: int = 0
    origin_check: OriginCheck = field(default_factory=OriginCheck)
    paths: frozenset[str] = field(default_factory=frozenset)  # paths with a metric label of their own

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, log it and count it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        exchange = Exchange(scope, send, self)
        self.under_way += 1
        self.metrics.under_way.inc()
        try:
            await self._pass(exchange, receive)
        except RefusalError as refused:
            await exchange.refuse(refused)
        finally:
            self.under_way -= 1
            self.metrics.under_way.dec()
            exchange.close()

    async def _pass(self, exchange: "Exchange", receive: Receive) -> None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in exchange.scope["headers"]}
        exchange.name(headers.get("x-request-id", ""))
        self._check_origin(exchange.scope, headers)
        scope = _get_for_head(exchange.scope)
        if scope["path"] in OPEN:  # the body is not read: no memory is used without a token
            await self.app(scope, receive, exchange.send)
            return
        self._check_token(headers.get("authorization", ""))
        self._check_room()
        body = await self._body(headers, receive)
        await self.app(scope, _replayed(body, receive), exchange.send)

    def _check_origin(self, scope: Scope, headers: Mapping[str, str]) -> None:
        if self.token is not None:
            return
        try:
            self.origin_check.check(scope["method"], scope["path"], headers)
        except OriginError as error:
            raise RefusalError(403, str(error)) from None

    def _check_token(self, given: str) -> None:
        if self.token is None:
            return
        scheme, _, token = given.partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(
            token.strip(" \t").encode("latin-1"), self.token.encode()
        ):
            problem = "the token is wrong" if given else "a token is needed"
            raise RefusalError(
                401, f"{problem}: send the header Authorization: Bearer …", {"www-authenticate": "Bearer"}
            )

    def _check_room(self) -> None:
        """Checked before the body is read: memory stays bounded."""
        if self.under_way > self.limits.concurrent:
            message = f"too many requests at once: at most {self.limits.concurrent:,}; try again"
            raise RefusalError(429, message, {"retry-after": "1"})

    async def _body(self, headers: Mapping[str, str], receive: Receive) -> bytes:
        """The whole body, within its limits."""
        declared = headers.get("content-length", "0")
        if declared.isdecimal() and int(declared) > _DROPPED:
            raise self._too_large(int(declared))
        try:
            async with asyncio.timeout(self.limits.seconds):
                return await self._read(receive)
        except TimeoutError:
            error = f"the request did not arrive within {self.limits.seconds:g} seconds"
            raise RefusalError(408, error, {"connection": "close"}) from None

    async def _read(self, receive: Receive) -> bytes:
        parts, size, more = list[bytes](), 0, True
        while more and size <= _DROPPED:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise RefusalError(408, "the client went away before its request had arrived")
            part = message.get("body", b"")
            size, more = size + len(part), message.get("more_body", False)
            if size <= self.limits.body:
                parts.append(part)
        if size > self.limits.body:
            raise self._too_large(size)
        return b"".join(parts)

    def _too_large(self, size: int) -> RefusalError:
        error = f"the request is too large: {size:,} bytes or more, at most {self.limits.body:,}"
        return RefusalError(413, error, {"connection": "close"})


@dataclass
class Exchange:
    """One request and its response."""

    scope: Scope
    pass_on: Send
    middleware: LimitsMiddleware
    id: str = ""
    status: int = 0
    began: float = field(default_factory=time.perf_counter)

    def name(self, given: str) -> None:
        """The id that the client gave, if it is safe to log; else a new one."""
        self.id = given if _REQUEST_ID.fullmatch(given) else uuid4().hex[:16]

    async def send(self, message: Message) -> None:
        """Send a response, with the request's id."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message = {
                **message,
                "headers": [*message["headers"], (b"x-request-id", self.id.encode()), *self._closing()],
            }
        await self.pass_on(message)

    async def refuse(self, refused: RefusalError) -> None:
        """Answer with the error."""
        content = json.dumps({"error": refused.error}, ensure_ascii=False).encode()
        headers = {"content-type": "application/json", "content-length": str(len(content)), **refused.headers}
        pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
        await self.send({"type": "http.response.start", "status": refused.status, "headers": pairs})
        await self.send({"type": "http.response.body", "body": content})

    def close(self) -> None:
        """Log and count it. Unknown paths are counted as one, so that clients cannot add labels."""
        seconds, path = time.perf_counter() - self.began, self.scope["path"]
        counted = path if path in self.middleware.paths else "other"
        self.middleware.metrics.requests.labels(counted, str(self.status)).inc()
        self.middleware.metrics.seconds.labels(counted).observe(seconds)
        log_event("request", {**self._about(path), "status": self.status, "ms": round(1000 * seconds, 3)})

    def _about(self, path: str) -> dict[str, Any]:
        client = self.scope.get("client")
        return {"id": self.id, "method": self.scope["method"], "path": path[:200], "client": client and client[0]}

    def _closing(self) -> list[tuple[bytes, bytes]]:
        return [(b"connection", b"close")] if self.middleware.draining else []


def _get_for_head(scope: Scope) -> Scope:
    """HEAD is answered as GET; Uvicorn leaves the body out."""
    return {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope


def _replayed(body: bytes, receive: Receive) -> Receive:
    """The body that was read, then later messages, such as a disconnect."""
    first: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return first.pop() if first else await receive()

    return replay
