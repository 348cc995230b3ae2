"""A served model, asked in this process; the door and the app are those of the real server."""

import asyncio
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import polars as pl
import pytest

from tests.run_folders import Finished
from tests.run_folders import finished as finished
from unveil.serving.attributes import Attributes
from unveil.serving.server.inference_service import InferenceService, Limits, Settings
from unveil.serving.server.middleware import Middleware
from unveil.serving.server.model_store import ItemInfo, ModelStore

TITLES = {f"0{n:02d}": f"Film number {n}" for n in range(30)}
LIMITS = Limits(body=50_000, history=200, k=20, batch=8)


def beside() -> ItemInfo:
    genres = ["Drama", "Comedy|Drama", "Horror"]
    frame = pl.DataFrame(
        {"item_id": list(TITLES), "genre": [genres[n % 3] for n in range(30)], "year": range(1990, 2020)}
    )
    return ItemInfo(TITLES, Attributes(frame))


class Client:
    """Asks the door of a service, one request after another."""

    def __init__(self, runner: asyncio.Runner, http: httpx.AsyncClient) -> None:
        self.runner, self.http = runner, http

    def request(self, method: str, path: str, **how: Any) -> httpx.Response:
        return self.runner.run(self.http.request(method, path, **how))

    def get(self, path: str, **how: Any) -> httpx.Response:
        return self.request("GET", path, **how)

    def post(self, path: str, **how: Any) -> httpx.Response:
        return self.request("POST", path, **how)


@contextmanager
def asking(store: ModelStore, settings: Settings) -> Iterator[Client]:
    middleware = Middleware(InferenceService(store, settings))
    transport = httpx.ASGITransport(middleware)
    with asyncio.Runner() as runner:
        opened, http = (
            middleware.service.open(None),
            httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1"),
        )
        runner.run(opened.__aenter__())
        try:
            yield Client(runner, http)
        finally:
            runner.run(http.aclose())
            runner.run(opened.__aexit__(None, None, None))


@pytest.fixture(scope="session")
def store(finished: Finished) -> ModelStore:
    made = ModelStore(beside())
    made.add([finished.folder])
    return made


@pytest.fixture(scope="session")
def client(store: ModelStore) -> Iterator[Client]:
    with asking(store, Settings(watch=None, limits=LIMITS)) as client:
        yield client


@pytest.fixture
def model_copy(finished: Finished, tmp_path: Path) -> Path:
    """The model of the run in a folder of its own, to be changed."""
    return Path(shutil.copytree(finished.folder, tmp_path / "model"))
