"""The server as a process: how it starts, and how it ends without dropping a request."""

import asyncio
import signal
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import torch
import uvicorn

from unveil.errors import UnveilError
from unveil.serving.server.app import create_app
from unveil.serving.server.inference_service import InferenceService
from unveil.serving.server.limits import OPEN, Limits, LimitsMiddleware
from unveil.serving.server.model_store import ItemInfo, ModelStore
from unveil.serving.server.monitoring import Metrics, log_event
from unveil.serving.server.monitoring import start as start_logs
from unveil.serving.server.origin_check import OriginCheck
from unveil.serving.server.timeouts import timeout_protocol


@dataclass(frozen=True)
class Settings:
    """Address, access, limits, and how to stop."""

    host: str = "127.0.0.1"
    port: int = 8000
    token: str | None = None
    workers: int = 2
    watch: float | None = 2.0
    drain: float = 1.0  # seconds after the signal in which new requests are still answered
    patience: float = 30.0  # seconds that running requests are then given
    limits: Limits = field(default_factory=Limits)
    hosts: Sequence[str] = ()  # accepted host names, besides those of this machine


def serve(folders: Sequence[Path], settings: Settings, info: ItemInfo | None = None) -> None:
    """Load the models and serve until SIGTERM or SIGINT."""
    torch.set_num_threads(1)
    store = ModelStore(info or ItemInfo())
    store.add(folders)
    store.check_titles()
    with _listening(settings.host, settings.port) as listener:
        start_logs()
        service = service_of(store, settings)
        host, port = listener.getsockname()[:2]
        where = f"[{host}]" if ":" in host else host
        versions = {served.name: served.version for served in store.models.values()}
        log_event(
            "started", {"url": f"http://{where}:{port}/", "models": versions, "token": settings.token is not None}
        )
        Server(_config(service, settings), service.middleware, settings.drain).run([listener])


def _listening(host: str, port: int) -> socket.socket:
    """A listening socket; connections wait until the server runs."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        hint = "Name another place with --host or --port."
        raise UnveilError(f"cannot listen: {error.strerror or error}", where=f"{host}:{port}", hint=hint) from None


def service_of(store: ModelStore, settings: Settings) -> InferenceService:
    """The service, its app and the middleware around it."""
    metrics = Metrics()
    origin_check = OriginCheck.of(settings.host, settings.hosts)
    middleware = LimitsMiddleware(_nothing, settings.limits, metrics, settings.token, origin_check=origin_check)
    service = InferenceService(store, settings.limits, metrics, middleware, settings.workers, settings.watch)
    middleware.app = app = create_app(service)
    middleware.paths = frozenset({*app.openapi()["paths"], *OPEN, "/openapi.json"})
    return service


async def _nothing(scope: object, receive: object, send: object) -> None:
    """Stands in for the app until there is one."""


def _config(service: InferenceService, settings: Settings) -> "uvicorn.Config":
    return uvicorn.Config(
        service.middleware,
        http=timeout_protocol(settings.limits.seconds),
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=int(settings.patience),
        lifespan="on",
    )


class Server(uvicorn.Server):
    """On the first signal it keeps answering for a while, then stops listening and finishes running requests."""

    def __init__(self, config: "uvicorn.Config", middleware: LimitsMiddleware, drain: float) -> None:
        super().__init__(config)
        self.middleware, self.drain = middleware, drain

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to drain; a second signal ends the draining, a third does not wait for requests."""
        if not self.middleware.draining:
            log_event("stopping", {"signal": signal.Signals(sig).name, "drain": self.drain})
            self.middleware.draining = True
            asyncio.get_running_loop().call_later(self.drain, self._close)
        elif not self.should_exit:
            self._close()
        else:
            self.force_exit = True

    def _close(self) -> None:
        self.should_exit = True
