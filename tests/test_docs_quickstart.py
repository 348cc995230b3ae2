import re
import shlex
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.docs import DOCS, blocks
from unveil.cli.main import run

PAGE = (DOCS / "quickstart.md").read_text(encoding="utf-8")
WRITTEN = ("audit.html", "audit.json", "runs/auto/metrics.json", "lists.csv", "runs/gru4rec/model.onnx", "model")


def _commands() -> list[list[str]]:
    lines = [line for block in blocks(PAGE) if block.language == "sh" for line in block.body.splitlines()]
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("unveil ")]


def _log(path: Path) -> None:
    """Interactions of fifty users with forty items, the ids of the page among them; and clicks on random items."""
    rng = np.random.default_rng(0)
    items = ["B00120", "B00077", *(f"B{number:05d}" for number in range(1, 39))]
    weight = 1 / np.arange(3, len(items) + 3)
    rows = [
        (f"{user:04d}", items[item], 1_719_847_200 + 1000 * place + user, int(rng.integers(1, 6)))
        for user in range(50)
        for place, item in enumerate(rng.choice(len(items), 10 + user % 9, replace=False, p=weight / weight.sum()))
    ]
    pl.DataFrame(rows, schema=["user_id", "item_id", "timestamp", "rating"], orient="row").write_csv(path)
    chosen = {(user, item) for user, item, *_ in rows}
    random = [(user, item) for user in sorted({user for user, _ in chosen}) for item in items[int(user) % 9 :: 9]]
    clicks = [pair for pair in random if pair not in chosen]
    pl.DataFrame(clicks, schema=["user_id", "item_id"], orient="row").write_csv(path.with_name("random_clicks.csv"))


def test_the_page_has_commands() -> None:
    assert len(_commands()) >= 10
    assert [words for words in _commands() if words[0] == "serve"]


def test_every_command_of_the_page_works_in_its_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    _log(tmp_path / "ratings.csv")
    for words in _commands():
        if words[0] != "serve":
            monkeypatch.setattr(sys, "argv", ["unveil", *words])
            with pytest.raises(SystemExit) as ended:
                run()
            assert not ended.value.code, capsys.readouterr().err
    for block in blocks(PAGE):
        if block.language == "python":
            exec(compile(block.body, "quickstart.md", "exec"), {})
    assert all((tmp_path / name).exists() for name in WRITTEN)
    assert pl.read_csv("lists.csv")["rank"].max() == 10


@pytest.mark.slow
def test_the_server_of_the_page_answers_and_ends(tmp_path: Path) -> None:
    _log(tmp_path / "ratings.csv")
    command = [sys.executable, "-m", "unveil"]
    for words in _commands():
        if words[0] == "train":
            subprocess.run([*command, *words, "--set", "training.epochs=1"], cwd=tmp_path, check=True)
    (serve,) = (words for words in _commands() if words[0] == "serve")
    with _started([*command, *serve, "--port", "0"], tmp_path) as address, urllib.request.urlopen(address) as answer:
        assert b"<title>" in answer.read()


@contextmanager
def _started(command: list[str], folder: Path) -> Iterator[str]:
    """A server under way, by its address; it ends well when asked to."""
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        found = (re.search(r"http://127\.0\.0\.1:\d+", line) for line in server.stderr)
        yield next(match[0] for match in found if match)
        server.send_signal(signal.SIGTERM)
        assert server.wait(timeout=60) == 0
