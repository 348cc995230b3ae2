"""How long a connection is waited for, by the protocol of the real server with an app that answers at once."""

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable
from typing import Any

import uvicorn

from unveil.serving.server.process import timeout_protocol

SECONDS = 0.2
#: More than the kernel's buffers take.
LONG = b"x" * (8 << 20)

Use = Callable[[socket.socket, "uvicorn.Server"], Awaitable[None]]


async def _answers(scope: Any, receive: Any, send: Any) -> None:
    body = LONG if scope["path"] == "/long" else b"short"
    head = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": body})


def connected(use: Use) -> None:
    """Run a server, and a client on one connection."""

    async def both() -> None:
        config = uvicorn.Config(
            _answers, http=timeout_protocol(SECONDS), lifespan="off", log_config=None, access_log=False
        )
        with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as client:
            server = uvicorn.Server(config)
            serving = asyncio.create_task(server.serve([listener]))
            client.setblocking(False)
            await asyncio.get_running_loop().sock_connect(client, listener.getsockname())
            while not server.server_state.connections:
                await asyncio.sleep(0.01)
            await use(client, server)
            server.should_exit = True
            await serving

    asyncio.run(both())


def test_an_answer_does_not_wait_for_its_head_to_be_confirmed() -> None:
    async def use(client: socket.socket, server: "uvicorn.Server") -> None:
        (connection,) = server.server_state.connections
        sock = connection.transport.get_extra_info("socket")
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)

    connected(use)


async def received(client: socket.socket, size: int, pause: float = 0.0) -> int:
    """How much came of so much, in pieces."""
    got = 0
    while got < size and (part := await asyncio.get_running_loop().sock_recv(client, 1 << 16)):
        got += len(part)
        await asyncio.sleep(pause)
    return got


async def ask(client: socket.socket, head: bytes) -> None:
    await asyncio.get_running_loop().sock_sendall(client, head)


async def gone(server: "uvicorn.Server") -> bool:
    """Whether the server has hung up within a few times its patience."""
    for _ in range(40):
        if not server.server_state.connections:
            return True
        await asyncio.sleep(SECONDS / 4)
    return False


def test_a_client_that_takes_nothing_of_its_answer_is_hung_up_on() -> None:
    async def use(client: socket.socket, server: "uvicorn.Server") -> None:
        await ask(client, b"GET /long HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert await gone(server)
        assert 0 < await received(client, len(LONG)) < len(LONG)

    connected(use)


def test_one_that_takes_it_slowly_gets_all() -> None:
    async def use(client: socket.socket, server: "uvicorn.Server") -> None:
        await ask(client, b"GET /long HTTP/1.1\r\nHost: localhost\r\n\r\n")
        began = time.monotonic()
        assert await received(client, len(LONG), pause=0.005) >= len(LONG)
        assert time.monotonic() - began > SECONDS

    connected(use)


def test_a_body_that_nobody_reads_any_more_does_not_drip_in_for_ever() -> None:
    async def use(client: socket.socket, server: "uvicorn.Server") -> None:
        await ask(client, b"POST /short HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n{")
        assert await received(client, 1)
        for _ in range(40):
            if not server.server_state.connections:
                return
            await ask(client, b" ")
            await asyncio.sleep(SECONDS / 4)
        raise AssertionError("still there")

    connected(use)
