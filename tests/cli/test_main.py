"""The entry point: what ends a command before its end is one message, and leaves nothing behind."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runs import write_log
from unveil.cli.main import run
from unveil.files import atomic_file


@pytest.fixture
def handler() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def ended(arguments: list[object], monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["unveil", *map(str, arguments)])
    with pytest.raises(SystemExit) as end:
        run()
    return int(end.value.code or 0)


def test_being_told_to_stop_leaves_no_draft(
    handler: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(["--version"], monkeypatch) == 0
    with pytest.raises(SystemExit) as end, atomic_file(tmp_path / "lists.csv") as draft:
        draft.write_text("half")
        os.kill(os.getpid(), signal.SIGTERM)
        signal.sigtimedwait([], 10)
    assert end.value.code == 143
    assert not list(tmp_path.iterdir())
    assert capsys.readouterr().err == "unveil: stopped.\n"


def test_a_model_that_no_memory_holds(
    handler: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log, folder = write_log(tmp_path / "log.csv"), tmp_path / "run"
    assert ended(["train", log, "-o", folder, "--set", "model.width=100000000000000"], monkeypatch) == 2
    assert "unveil: there is not enough memory. Take a smaller model (model.width" in capsys.readouterr().err
    assert not folder.exists()
