"""The entry point: what ends a command before its end is one message, and leaves nothing behind."""

import io
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.run_folders import Finished, write_log
from unveil.cli import main
from unveil.cli.main import run
from unveil.errors import UnveilWarning
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
    assert "unveil: there is not enough memory. Use a smaller model (model.width" in capsys.readouterr().err
    assert not folder.exists()


def test_a_terminal_that_lacks_a_character(handler: None, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(screen, encoding="latin-1", write_through=True))
    assert ended(["--version"], monkeypatch) == 0
    print("half a ± and a whole …")
    assert screen.getvalue().decode("latin-1").endswith("half a ± and a whole \\u2026\n")


def test_an_argument_that_is_no_text(
    handler: None, finished: Finished, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(["recommend", finished.folder, "--history", "\udcff"], monkeypatch) == 2
    assert capsys.readouterr().err == "unveil: not text in UTF-8: found '\\udcff'.\n"


def test_a_warning_to_users_is_one_line_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main, "_PRINTED", set())
    printed = [main._formatted(each, UnveilWarning, "registry.py", 1) for each in ("old", "old", "another")]
    assert printed == ["unveil: old\n", "", "unveil: another\n"]
