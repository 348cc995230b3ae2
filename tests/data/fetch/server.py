"""A real HTTP server on loopback that can be told to misbehave."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ssl import SSLContext
from threading import Condition, Thread


@dataclass
class Served:
    """A file and the way in which it is served; `drops` and `statuses` are used up one a request."""

    body: bytes
    ranges: bool = True
    etag: str | None = '"v1"'
    modified: str | None = None
    kind: str = "application/octet-stream"
    claims: int | None = None
    drops: list[int] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    shift: int = 0
    pause: float = 0.0
    hang: float = 0.0


@dataclass(frozen=True)
class Seen:
    """One request as the server saw it."""

    path: str
    range: str | None
    status: int
    sent: int


class Server:
    """Files by path, and the requests that came."""

    def __init__(self, port: int, scheme: str) -> None:
        self.files: dict[str, Served] = {}
        self.requests: list[Seen] = []
        self.answering = Condition()
        self.under_way = 0
        self.root = f"{scheme}://127.0.0.1:{port}"

    @property
    def seen(self) -> list[Seen]:
        """The requests so far, once the server has finished with them: it may lag behind the client."""
        with self.answering:
            assert self.answering.wait_for(lambda: not self.under_way, timeout=5)
        return self.requests

    def put(self, path: str, served: Served) -> str:
        self.files[path] = served
        return self.root + path


@contextmanager
def serving(tls: SSLContext | None = None) -> Iterator[Server]:
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    httpd.daemon_threads = True
    if tls:
        httpd.socket = tls.wrap_socket(httpd.socket, server_side=True)
    server = Server(httpd.server_port, "https" if tls else "http")
    _Handler.servers[httpd.server_port] = server
    thread = Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        httpd.shutdown()
        thread.join()
        httpd.server_close()


class _Handler(BaseHTTPRequestHandler):
    servers: dict[int, Server] = {}  # noqa: RUF012

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        server = self.servers[self.connection.getsockname()[1]]
        with server.answering:
            server.under_way += 1
        served = server.files.get(self.path)
        time.sleep(served.hang if served else 0)
        status, sent = self._answer(served) if served else self._plain(404)
        with server.answering:
            server.requests.append(Seen(self.path, self.headers.get("Range"), status, sent))
            server.under_way -= 1
            server.answering.notify_all()

    def _plain(self, status: int) -> tuple[int, int]:
        self.send_error(status)
        return status, 0

    def _answer(self, served: Served) -> tuple[int, int]:
        if served.statuses and (status := served.statuses.pop(0)) != 200:
            return self._plain(status)
        start = self._start(served)
        if start is not None and start >= len(served.body):
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(served.body)}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return 416, 0
        self._headers(served, start)
        return (200 if start is None else 206), self._send(served, (start or 0) + served.shift)

    def _start(self, served: Served) -> int | None:
        asked, condition = self.headers.get("Range"), self.headers.get("If-Range")
        if not asked or not served.ranges or condition not in (None, served.etag, served.modified):
            return None
        return int(asked.removeprefix("bytes=").removesuffix("-"))

    def _headers(self, served: Served, start: int | None) -> None:
        total = served.claims or len(served.body)
        self.send_response(200 if start is None else 206)
        self.send_header("Content-Type", served.kind)
        self.send_header("Content-Length", str(total - (start or 0)))
        if start is not None:
            self.send_header("Content-Range", f"bytes {start + served.shift}-{total - 1}/{total}")
        for name, value in (("ETag", served.etag), ("Last-Modified", served.modified)):
            if value:
                self.send_header(name, value)
        self.end_headers()

    def _send(self, served: Served, start: int) -> int:
        rest = served.body[start:]
        rest = rest[: served.drops.pop(0)] if served.drops else rest
        for place in range(0, len(rest), 1 << 16):
            try:
                self.wfile.write(rest[place : place + (1 << 16)])
            except OSError:
                return place
            time.sleep(served.pause)
        return len(rest)
