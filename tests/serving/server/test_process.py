"""The real server in a process of its own: bad input, slow clients, a new model, and the end, with nothing dropped."""

import json
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any

import pytest

from tests.run_folders import Finished
from tests.serving.server.processes import Running, running
from tests.serving.server.test_model_store import another

SECONDS = 1.0
ASKED = json.dumps({"history": ["001", "002"], "k": 5}).encode()
JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def server(finished: Finished, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One server for all tests here, the last of which ends it; its model folder is a copy."""
    place = tmp_path_factory.mktemp("server")
    shutil.copytree(finished.folder, place / "model")
    options = ["--watch", 0.2, "--max-seconds", SECONDS, "--drain", 1]
    with running(place / "log", place / "model", *options) as server:
        yield server


def request(server: Running, body: bytes, path: str = "/v1/recommend") -> tuple[int, dict[str, Any]]:
    connection = HTTPConnection("127.0.0.1", server.port, timeout=60)
    try:
        connection.request("POST", path, body, JSON)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def test_a_single_request(server: Running) -> None:
    status, answer = request(server, ASKED)
    assert (status, len(answer["items"]), answer["model"]) == (200, 5, "model")


def test_ten_megabytes(server: Running) -> None:
    status, answer = request(server, b"[" + b'"001",' * (10 << 18))
    assert status == 413
    assert "too large" in answer["error"]
    assert request(server, ASKED)[0] == 200


def test_a_history_of_a_hundred_thousand(server: Running) -> None:
    status, answer = request(server, json.dumps({"history": ["001"] * 100_000}).encode())
    assert status == 422
    assert answer["error"] == "history: too many: found '100,000', expected at most 10,000."
    assert request(server, ASKED)[0] == 200


def test_what_is_no_http_is_told_so(server: Running) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as sock:
        sock.sendall(b"\x16\x03\x01 hello\r\n\r\n")
        assert sock.recv(1000).startswith(b"HTTP/1.1 400")
    assert request(server, ASKED)[0] == 200


@pytest.mark.parametrize(
    ("sent", "answered"),
    [
        (b"", b""),
        (b"POST /v1/recommend HTTP/1.1\r\nHost: localhost\r\nX-Slow:", b""),
        (b"POST /v1/recommend HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{", b"HTTP/1.1 408"),
    ],
    ids=["nothing", "half a head", "half a body"],
)
def test_a_slow_client_is_not_waited_for(sent: bytes, answered: bytes, server: Running) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as sock:
        sock.sendall(sent)
        began, received = time.monotonic(), b""
        assert request(server, ASKED)[0] == 200, "others are answered meanwhile"
        while part := sock.recv(10_000):
            received += part
        assert received.startswith(answered)
        assert bool(received) == bool(answered)
        assert time.monotonic() - began > SECONDS / 2


class Caller(threading.Thread):
    """Asks again and again on one connection, which it opens anew when told to; keeps what came of it."""

    def __init__(self, server: Running) -> None:
        super().__init__()
        self.server, self.stopped = server, threading.Event()
        self.versions: list[str] = []
        self.wrong: list[object] = []

    def run(self) -> None:
        connection = HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        while not self.stopped.is_set():
            try:
                connection.request("POST", "/v1/recommend", ASKED, JSON)
                answer = connection.getresponse()
                content = json.loads(answer.read())
            except Exception as error:
                self.wrong.append(error)
                return
            if answer.status != 200 or len(content["items"]) != 5:
                self.wrong.append((answer.status, content))
            self.versions.append(content.get("version", ""))
            if answer.headers.get("connection") == "close":
                return
            time.sleep(0.005)
        connection.close()


def test_a_new_model_is_taken_up_without_dropping_a_request(server: Running) -> None:
    folder = server.log.parent / "model"
    callers = [Caller(server) for _ in range(4)]
    for caller in callers:
        caller.start()
    another(folder).save(folder, overwrite=True)
    loaded = server.wait_for("model loaded")
    (folder / "model.safetensors").write_bytes(b"nothing")
    refused = server.wait_for("model refused")
    for caller in callers:
        caller.stopped.set()
        caller.join()
    assert [caller.wrong for caller in callers] == [[]] * 4
    assert "changed or damaged" in refused["refused"]
    versions = {version for caller in callers for version in caller.versions}
    assert loaded["version"] in versions
    assert len(versions) <= 2
    assert request(server, ASKED)[1]["version"] == loaded["version"]


def test_the_end_drops_no_request(server: Running) -> None:
    """The last test of this server: those who go on asking are answered, and sent away."""
    callers = [Caller(server) for _ in range(4)]
    for caller in callers:
        caller.start()
    while any(not caller.versions for caller in callers):
        time.sleep(0.01)
    code = server.stop()
    for caller in callers:
        caller.join(timeout=60)
    assert [caller.wrong for caller in callers] == [[]] * 4
    assert code == 0
    events = [line["event"] for line in server.lines()]
    assert events[-1] == "stopped"
    assert "stopping" in events
    with pytest.raises(OSError, match="refused"):
        request(server, ASKED)
