"""The loopback server, afresh for every test, and a data home of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.data.fetch.server import Server, serving


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as running:
        yield running


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that UNVEIL_DATA names; it does not exist yet."""
    monkeypatch.setenv("UNVEIL_DATA", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture(autouse=True, scope="session")
def _no_proxy() -> Iterator[None]:
    """The loopback server is asked directly, whatever proxy this machine uses."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NO_PROXY", "*")
        patch.setenv("no_proxy", "*")
        yield
