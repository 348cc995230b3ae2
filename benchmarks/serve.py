"""Requests to a running server on loopback: latency and throughput with 1, 8 and 64 clients, beside the model alone.

    python -m benchmarks.serve [RUN] [--clients 1 8 64] [--seconds 5] [--requests 20000]

Without a run, an untrained BERT4Rec of MovieLens 1M's size is served (its speed is that of a trained one). One server
process; clients are threads of one other process, each with one connection, asking again as soon as it is answered, for
top-10 lists after histories of the log. Bounded by time and by count. Prints, last, a line for each number of clients:
`clients=N p50_ms=A p99_ms=B requests_per_s=C errors=D`.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path

import numpy as np

from benchmarks.train import CONFIG, generated
from unveil.data.indexing import Vocabulary
from unveil.models.bert4rec import BERT4Rec
from unveil.serving.onnx_model import servable
from unveil.serving.recommender import Recommender
from unveil.serving.server.model_store import ServedModel
from unveil.serving.server.schemas import RecommendRequest

QUESTIONS, SEED = 500, 0
HEADERS = {"content-type": "application/json"}


def untrained() -> Recommender:
    """The size of MovieLens 1M, with weights as they are drawn."""
    sequences = generated()
    items, users = (Vocabulary([f"{n:05d}" for n in range(count)]) for count in (sequences.n_items, sequences.n_users))
    return Recommender(BERT4Rec(CONFIG, len(items), seed=SEED).eval(), items, users, sequences, CONFIG.length)


def questions(recommender: Recommender) -> list[RecommendRequest]:
    """Histories of users drawn at random, as many events as the model reads."""
    user_Q = np.random.default_rng(SEED).integers(len(recommender.users), size=QUESTIONS)
    histories = (recommender.sequences.history(user)[-recommender.length :] for user in user_Q)
    return [RecommendRequest(history=recommender.items.raw(history).to_list()) for history in histories]


@dataclass
class Client(threading.Thread):
    """Asks until the time is up or its share of requests is done."""

    port: int
    bodies: Sequence[bytes]
    until: float
    share: int
    first: int
    ms: list[float] = field(default_factory=list)
    errors: int = 0

    def __post_init__(self) -> None:
        super().__init__()

    __hash__ = threading.Thread.__hash__

    def run(self) -> None:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        while len(self.ms) < self.share and time.monotonic() < self.until:
            began = time.perf_counter()
            connection.request("POST", "/v1/recommend", self.bodies[(self.first + len(self.ms)) % QUESTIONS], HEADERS)
            answer = connection.getresponse()
            answer.read()
            self.errors += answer.status != 200
            self.ms.append(1000 * (time.perf_counter() - began))
        connection.close()


def load(port: int, bodies: Sequence[bytes], count: int, seconds: float, requests: int) -> str:
    """What so many clients at once get."""
    began = time.monotonic()
    clients = [Client(port, bodies, began + seconds, -(-requests // count), 7 * n) for n in range(count)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    taken = time.monotonic() - began
    ms = np.concatenate([client.ms for client in clients])
    p50, p99 = np.percentile(ms, [50, 99])
    errors = sum(client.errors for client in clients)
    return f"clients={count} p50_ms={p50:.2f} p99_ms={p99:.2f} requests_per_s={len(ms) / taken:.0f} errors={errors}"


def alone(served: ServedModel, asked: Sequence[RecommendRequest]) -> str:
    """In this process, without HTTP: the network alone, and the whole answer."""
    from unveil.data.slots import tokens_of

    tokens = [tokens_of([served._history(question)], len(served.ids), served.recommender.length) for question in asked]
    network, whole = (
        _median_ms(work)
        for work in (
            [lambda token_BL=token_BL: served.recommender.model.scores(token_BL) for token_BL in tokens],
            [lambda question=question: served.answer([question]) for question in asked],
        )
    )
    return f"alone: network p50 {network:.2f} ms, whole answer p50 {whole:.2f} ms ({len(served.ids):,} items)"


def _median_ms(work: Sequence[object]) -> float:
    times = []
    for task in work:
        began = time.perf_counter()
        task()  # type: ignore[operator]
        times.append(1000 * (time.perf_counter() - began))
    return float(np.median(times))


@contextmanager
def serving(folder: Path) -> Iterator[int]:
    """The port of a server in a process of its own."""
    command = [str(Path(sys.executable).with_name("unveil")), "serve", str(folder), "--port", "0", "--watch", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert process.stderr is not None
    try:
        started = json.loads(process.stderr.readline())
        # Somebody has to read the log, or the server would wait for it.
        threading.Thread(target=lambda: [None for _ in process.stderr or ()], daemon=True).start()
        yield int(started["url"].rstrip("/").rsplit(":", 1)[1])
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, nargs="?")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--requests", type=int, default=20_000)
    options = parser.parse_args()
    recommender = untrained() if options.run is None else Recommender.load(options.run)
    asked = questions(recommender)
    bodies = [question.model_dump_json(include={"history"}).encode() for question in asked]
    with tempfile.TemporaryDirectory() as place:
        folder = options.run or Path(place) / "model"
        if options.run is None:
            recommender.save(folder)
        print(alone(ServedModel("model", folder, "", "", servable(recommender)), asked[:200]))
        with serving(folder) as port:
            load(port, bodies, 1, 1.0, 100)
            for line in [load(port, bodies, count, options.seconds, options.requests) for count in options.clients]:
                print(line)


if __name__ == "__main__":
    main()
