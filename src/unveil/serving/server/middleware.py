"""ASGI middleware around the app: it logs and counts requests, and refuses what is not to be parsed at all."""

import asyncio
import hmac
import re
import time
from collections.abc import Iterable, Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit
from uuid import uuid4

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import Message, Receive, Scope, Send

from unveil.serving.server.app import create_app
from unveil.serving.server.inference_service import InferenceService, log_event

#: Health checks: they may use any host name.
_HEALTH = {"/health", "/ready"}
#: Paths that need no token: health checks, and a page without data.
OPEN = {"/", "/page.css", "/page.js"} | _HEALTH
#: Bytes of a too large body that are read and dropped, so that the client can read the response.
_DROPPED = 32 << 20
_REQUEST_ID = re.compile(r"[\w.:-]{1,64}")


class OriginCheck:
    """Which requests a server without a token accepts: those of this machine, but not of web pages of another origin.

    Such a page can make a browser request 127.0.0.1: under a name of its own (DNS rebinding), seen in `Host`, or across
    sites, seen in `Sec-Fetch-Site` and `Origin`. `strict`: only `names` and loopback's are accepted as host names.
    """

    def __init__(self, listening: str, names: Iterable[str]) -> None:
        self.names = {_host_name(each) for each in names}
        self.strict = is_loopback(listening) or bool(self.names)

    def check(self, scope: Scope, headers: Mapping[str, str]) -> None:
        host = headers.get("host", "")
        name = _host_name(host)
        is_known = not host or is_loopback(name) or name in self.names
        if self.strict and not is_known and scope["path"] not in _HEALTH:
            raise HTTPException(403, f"{name[:100]!r} is no host name of this server: add --allow-host")
        if scope["method"] not in ("GET", "HEAD", "OPTIONS") and self._is_from_elsewhere(host, headers):
            raise HTTPException(403, "a page of another origin may not use this server: use a token, or --allow-host")

    def _is_from_elsewhere(self, host: str, headers: Mapping[str, str]) -> bool:
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        if origin is not None and _host_name(origin) in self.names:
            return False
        if site is not None:
            return site not in ("same-origin", "none")
        try:
            return origin is not None and urlsplit(origin).netloc.lower() != host.lower()
        except ValueError:
            return True


def is_loopback(name: str) -> bool:
    """Whether a name or an address is of this machine only."""
    try:
        return name == "localhost" or name.endswith(".localhost") or ip_address(name).is_loopback
    except ValueError:
        return False


def _host_name(text: str) -> str:
    """The name in `name`, `name:port`, `[address]:port` or an origin."""
    try:
        return (urlsplit(text if "://" in text else f"//{text}").hostname or "").rstrip(".")
    except ValueError:
        return ""


class Middleware:
    """The service behind HTTP; while it is draining, responses carry `Connection: close`."""

    def __init__(self, service: InferenceService) -> None:
        self.service, self.app, self.under_way = service, create_app(service), 0
        self.origin_check = OriginCheck(service.settings.host, service.settings.hosts)
        #: With a metric label of their own: clients cannot add labels.
        self.paths = {*self.app.openapi()["paths"], *OPEN, "/openapi.json"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = time.perf_counter(), 0
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        given = headers.get("x-request-id", "")
        request_id = given if _REQUEST_ID.fullmatch(given) else uuid4().hex[:16]  # one that is safe to log

        async def respond(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                closing = [(b"connection", b"close")] if self.service.draining else []
                more = [(b"x-request-id", request_id.encode()), *closing]
                message = {**message, "headers": [*message["headers"], *more]}
            await send(message)

        metrics, path = self.service.metrics, scope["path"]
        label = path if path in self.paths else "other"
        self.under_way += 1
        try:
            with metrics.under_way.track_inprogress(), metrics.seconds.labels(label).time():
                await self._answer(scope, headers, receive, respond)
        except HTTPException as refusal:
            response = JSONResponse({"error": refusal.detail}, refusal.status_code, refusal.headers)
            await response(scope, receive, respond)
        finally:
            self.under_way -= 1
            metrics.requests.labels(label, str(status)).inc()
            client, ms = scope.get("client"), round(1000 * (time.perf_counter() - began), 3)
            about = {"id": request_id, "method": scope["method"], "path": path[:200], "client": client and client[0]}
            log_event("request", {**about, "status": status, "ms": ms})

    async def _answer(self, scope: Scope, headers: Mapping[str, str], receive: Receive, send: Send) -> None:
        if self.service.settings.token is None:
            self.origin_check.check(scope, headers)
        if scope["method"] == "HEAD":  # answered as GET; Uvicorn leaves the body out
            scope = {**scope, "method": "GET"}
        if scope["path"] not in OPEN:  # of those the body is not read: no memory is used without a token
            self._check_token(headers.get("authorization", ""))
            most = self.service.limits.concurrent
            if self.under_way > most:  # checked before the body is read: memory stays bounded
                problem = f"too many requests at once: at most {most:,}; try again"
                raise HTTPException(429, problem, {"retry-after": "1"})
            receive = _replayed(await self._body(headers, receive), receive)
        await self.app(scope, receive, send)

    def _check_token(self, given: str) -> None:
        expected = self.service.settings.token
        scheme, _, token = given.partition(" ")
        if expected is None or (
            scheme.lower() == "bearer" and hmac.compare_digest(token.strip(" \t").encode("latin-1"), expected.encode())
        ):
            return
        problem = "the token is wrong" if given else "a token is needed"
        raise HTTPException(401, f"{problem}: send the header Authorization: Bearer …", {"www-authenticate": "Bearer"})

    async def _body(self, headers: Mapping[str, str], receive: Receive) -> bytes:
        declared = headers.get("content-length", "0")
        if declared.isdecimal() and int(declared) > _DROPPED:
            raise self._too_large(int(declared))
        parts, size, more, limits = list[bytes](), 0, True, self.service.limits
        try:
            async with asyncio.timeout(limits.seconds):
                while more and size <= _DROPPED:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise HTTPException(408, "the client went away before its request had arrived")
                    part = message.get("body", b"")
                    size, more = size + len(part), message.get("more_body", False)
                    if size <= limits.body:
                        parts.append(part)
        except TimeoutError:
            problem = f"the request did not arrive within {limits.seconds:g} seconds"
            raise HTTPException(408, problem, {"connection": "close"}) from None
        if size > limits.body:
            raise self._too_large(size)
        return b"".join(parts)

    def _too_large(self, size: int) -> HTTPException:
        problem = f"the request is too large: {size:,} bytes or more, at most {self.service.limits.body:,}"
        return HTTPException(413, problem, {"connection": "close"})


def _replayed(body: bytes, receive: Receive) -> Receive:
    """The body that was read, then later messages, such as a disconnect."""
    first: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return first.pop() if first else await receive()

    return replay
