"""How long a connection is waited for. What Uvicorn has is for idle connections only."""

import asyncio
import socket

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

#: Bytes of an answer that the system holds for a client: what is beyond them waits here, and is seen to be taken.
_UNDER_WAY = 1 << 18


def timeout_protocol(seconds: float) -> type[H11Protocol]:
    """A protocol that waits so long, and no longer, for a head, for the rest of a body that was answered already, and
    for a client that takes nothing of its answer.
    """

    class TimeoutProtocol(H11Protocol):
        deadline: asyncio.TimerHandle | None = None
        reading: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            if (sock := transport.get_extra_info("socket")) is not None:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _UNDER_WAY)
                # Else the body of an answer waits for the client to confirm its head: 40 ms. asyncio sees to that only
                # where a socket was made by its protocol's number.
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._await_head()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self._waits():
                self._await_head()
            elif self.deadline is not None:
                self.deadline.cancel()
                self.deadline = None

        def _waits(self) -> bool:
            if self.conn.their_state is h11.IDLE:
                return bool(self.conn.trailing_data[0])
            return self.conn.their_state is h11.SEND_BODY and self.conn.our_state is h11.DONE

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
            if left < before:
                self._await_reader(left)
            elif looks > 1:
                self._await_reader(left, looks - 1)
            else:
                self.transport.abort()

    return TimeoutProtocol
