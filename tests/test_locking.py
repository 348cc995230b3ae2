import errno
import subprocess
import sys
from pathlib import Path

import pytest

from unveil.errors import UnveilError
from unveil.files import alone_in, check_idle

HOLDER = """
import sys, time
from pathlib import Path
from unveil.files import alone_in
with alone_in(Path(sys.argv[1])):
    print("in", flush=True)
    time.sleep(60)
"""


def test_only_one_is_in_and_the_next_comes_in_when_it_has_left(tmp_path: Path) -> None:
    with alone_in(tmp_path):
        with pytest.raises(UnveilError, match=f"^{tmp_path}: another process is at work in this folder"):
            check_idle(tmp_path)
        with pytest.raises(UnveilError, match="another process"), alone_in(tmp_path):
            pass
    check_idle(tmp_path)
    with alone_in(tmp_path):
        assert not list(tmp_path.iterdir())


def test_another_process_is_kept_out_until_this_one_dies(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "in\n"
        with pytest.raises(UnveilError, match="another process"):
            check_idle(tmp_path)
        holder.kill()
    check_idle(tmp_path)


def test_a_folder_that_is_not_there_is_not_busy(tmp_path: Path) -> None:
    check_idle(tmp_path / "nowhere")
    assert not list(tmp_path.iterdir())


def test_without_locks_nobody_is_kept_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)
    with alone_in(tmp_path), alone_in(tmp_path):
        check_idle(tmp_path)


def test_a_file_system_without_locks_keeps_nobody_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fcntl = pytest.importorskip("fcntl")

    def refuse(handle: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with alone_in(tmp_path), alone_in(tmp_path):
        pass
