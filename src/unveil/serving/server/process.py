"""The server as a process: how it starts, how long it waits for clients, and how it ends without dropping a request."""

import asyncio
import signal
import socket
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

import h11
import torch
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from unveil.errors import UnveilError
from unveil.serving.server.inference_service import InferenceService, Settings, log_event, start_logs
from unveil.serving.server.middleware import Middleware
from unveil.serving.server.model_store import ItemInfo, ModelStore


def serve(folders: Sequence[Path], settings: Settings, info: ItemInfo | None = None) -> None:
    """Load the models and serve until SIGTERM or SIGINT."""
    torch.set_num_threads(1)
    store = ModelStore(info or ItemInfo())
    store.add(folders)
    store.check_titles()
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:  # connections wait until the server runs
        listener = socket.create_server((settings.host, settings.port), family=family, backlog=2048)
    except OSError as error:
        problem, hint = f"cannot listen: {error.strerror or error}", "Name another place with --host or --port."
        raise UnveilError(problem, where=f"{settings.host}:{settings.port}", hint=hint) from None
    with listener:
        start_logs()
        service = InferenceService(store, settings)
        host, port = listener.getsockname()[:2]
        url = f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"
        versions = {served.name: served.version for served in store.models.values()}
        log_event("started", {"url": url, "models": versions, "token": settings.token is not None})
        config = uvicorn.Config(
            Middleware(service),
            http=timeout_protocol(settings.limits.seconds),
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=30,  # seconds for running requests after the server has stopped listening
            lifespan="on",
        )
        Server(config, service).run([listener])


class Server(uvicorn.Server):
    """On the first signal it keeps answering for a while, then stops listening and finishes running requests."""

    def __init__(self, config: "uvicorn.Config", service: InferenceService) -> None:
        super().__init__(config)
        self.service = service

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to drain; a second signal ends the draining, a third does not wait for requests."""
        if not self.service.draining:
            drain = self.service.settings.drain
            log_event("stopping", {"signal": signal.Signals(sig).name, "drain": drain})
            self.service.draining = True
            asyncio.get_running_loop().call_later(drain, setattr, self, "should_exit", True)
        else:
            self.should_exit, self.force_exit = True, self.should_exit


def timeout_protocol(seconds: float) -> type[H11Protocol]:
    """A protocol that waits so long, and no longer, for a head, for the rest of a body that was answered already, and
    for a client that reads nothing of its response. Uvicorn itself has a timeout for idle connections only.
    """

    class TimeoutProtocol(H11Protocol):
        deadline: asyncio.TimerHandle | None = None
        reading: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            if (sock := transport.get_extra_info("socket")) is not None:
                # What the system holds for a client: the rest waits here, and is seen to be read.
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 18)
                # Else the body of a response waits for the client to confirm its head: 40 ms. asyncio sees to that only
                # where a socket was made by its protocol's number.
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._await_head()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            theirs, ours = self.conn.their_state, self.conn.our_state
            half_a_head = theirs is h11.IDLE and bool(self.conn.trailing_data[0])
            if half_a_head or (theirs is h11.SEND_BODY and ours is h11.DONE):
                self._await_head()
            elif self.deadline is not None:
                self.deadline.cancel()
                self.deadline = None

        def _await_head(self) -> None:
            if self.deadline is None:
                self.deadline = self.loop.call_later(seconds, self.transport.close)

        def pause_writing(self) -> None:
            super().pause_writing()
            self._await_reader(self.transport.get_write_buffer_size())

        def resume_writing(self) -> None:
            super().resume_writing()
            if self.reading is not None:
                self.reading.cancel()

        def _await_reader(self, left: int, looks: int = 2) -> None:
            """Two looks: after one it may be this process that had no time."""
            self.reading = self.loop.call_later(seconds / 2, self._look_at_reader, left, looks)

        def _look_at_reader(self, before: int, looks: int) -> None:
            left = self.transport.get_write_buffer_size()
            if left >= before and looks == 1:
                self.transport.abort()
            else:
                self._await_reader(left, 2 if left < before else looks - 1)

    return TimeoutProtocol
