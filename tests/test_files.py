import errno
import os
import resource
import signal
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from polars.exceptions import ComputeError

from unveil.errors import UnveilError
from unveil.files import atomic_file, atomic_folder, check_free, check_new_file


def test_a_file_appears_whole(tmp_path: Path) -> None:
    target = tmp_path / "new" / "out.txt"
    with atomic_file(target) as draft:
        draft.write_text("whole")
        assert not target.exists()
    assert target.read_text() == "whole"
    assert os.listdir(target.parent) == ["out.txt"]
    assert stat.S_IMODE(target.stat().st_mode) == 0o644 or os.umask(os.umask(0)) != 0o022


def test_a_failure_leaves_the_old_file_and_no_litter(tmp_path: Path) -> None:
    target = tmp_path / "out.txt"
    target.write_text("old")
    with pytest.raises(RuntimeError, match="boom"), atomic_file(target) as draft:
        draft.write_text("half")
        raise RuntimeError("boom")
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["out.txt"]


def test_a_folder_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "run"
    with pytest.raises(RuntimeError, match="boom"), atomic_folder(target) as draft:
        (draft / "a").write_text("half")
        raise RuntimeError("boom")
    assert os.listdir(tmp_path) == []
    with atomic_folder(target) as draft:
        (draft / "a").write_text("whole")
    assert (target / "a").read_text() == "whole"


def test_an_occupied_folder_is_refused_unless_told(tmp_path: Path) -> None:
    target = tmp_path / "run"
    target.mkdir()
    (target / "precious").write_text("mine")
    with pytest.raises(UnveilError, match=r"the output folder is not empty. Name another, or pass --overwrite"):
        atomic_folder(target).__enter__()
    with atomic_folder(target, overwrite=True) as draft:
        (draft / "new").write_text("yours")
    assert os.listdir(target) == ["new"]
    assert os.listdir(tmp_path) == ["run"]


def test_a_file_in_the_place_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("")
    with pytest.raises(UnveilError, match="a file, not a folder"):
        atomic_folder(tmp_path / "run").__enter__()


def test_a_file_in_the_middle_of_the_path(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UnveilError, match="cannot write"), atomic_file(tmp_path / "file" / "out.txt"):
        pass


@contextmanager
def small_files() -> Iterator[None]:
    """No file may grow beyond a few bytes: writing then fails as it does on a full disk.

    Not a fixture: the limit must be gone before the result of the test is written, which may be to a file.
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_no_room_leaves_nothing_behind(tmp_path: Path) -> None:
    refused = pytest.raises(UnveilError, match="cannot write")
    with small_files(), refused, atomic_file(tmp_path / "out.txt") as draft:
        draft.write_bytes(b"x" * 1000)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_what_the_system_says_is_explained(tmp_path: Path, code: int) -> None:
    with pytest.raises(UnveilError, match=r"out\.txt: cannot write: .+\. .+\."), atomic_file(tmp_path / "out.txt"):
        raise OSError(code, os.strerror(code))
    assert os.listdir(tmp_path) == []


def test_what_a_library_says_in_words_alone_is_explained_too(tmp_path: Path) -> None:
    with (
        pytest.raises(UnveilError, match=r"log\.csv: cannot write: the disk is full"),
        atomic_file(tmp_path / "log.csv"),
    ):
        raise OSError("No space left on device (os error 28)")
    with (
        pytest.raises(UnveilError, match=r"log\.parquet: cannot write: the disk is full"),
        atomic_file(tmp_path / "log.parquet"),
    ):
        raise ComputeError("parquet: underlying IO error: No space left on device (os error 28)")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(OSError, match="os error 4242"), atomic_file(tmp_path / "log.csv"):
        raise OSError("something else (os error 4242)")


def test_other_errors_pass_through(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="bad descriptor"), atomic_file(tmp_path / "out.txt"):
        raise OSError(errno.EBADF, "bad descriptor")


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a file system in which nothing can be made")
@pytest.mark.parametrize("name", ["log.csv", "folder/log.csv"])
def test_a_message_names_the_output_and_never_its_draft(name: str) -> None:
    path = Path("/proc") / name
    with pytest.raises(UnveilError) as caught, atomic_file(path):
        pass
    assert str(caught.value).startswith(f"{path}: cannot write: No such file or directory. Choose")
    with pytest.raises(UnveilError, match=f"^{path}: cannot write: "), atomic_folder(path):
        pass


def test_what_nobody_thought_of_still_names_the_output(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    with pytest.raises(UnveilError, match=rf"^{path}: cannot write: Input/output error"), atomic_file(path) as draft:
        raise OSError(errno.EIO, os.strerror(errno.EIO), str(draft))
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_only_read_meanwhile_is_not_taken_for_the_output(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"input\.csv"), atomic_file(tmp_path / "log.csv"):
        (tmp_path / "input.csv").read_bytes()


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a file system in which nothing can be made")
@pytest.mark.parametrize("name", ["out", "folder/out"])
@pytest.mark.parametrize("refuse", [check_new_file, check_free])
def test_a_place_that_cannot_be_written_is_refused_before_any_work(name: str, refuse: Callable[[Path], None]) -> None:
    with pytest.raises(UnveilError, match=f"^/proc/{name}: cannot write: "):
        refuse(Path("/proc") / name)


@pytest.mark.parametrize("refuse", [check_new_file, check_free])
def test_trying_a_place_leaves_nothing(tmp_path: Path, refuse: Callable[[Path], None]) -> None:
    refuse(tmp_path / "new" / "out")
    assert not list(tmp_path.iterdir())
    (tmp_path / "file").touch()
    with pytest.raises(UnveilError, match="a part of the path is a file"):
        refuse(tmp_path / "file" / "out")


def test_what_is_read_is_never_buried(tmp_path: Path) -> None:
    read, elsewhere = tmp_path / "runs" / "a", tmp_path / "elsewhere"
    read.mkdir(parents=True)
    for output in (read, read.parent, read.parent / "b" / ".."):
        with pytest.raises(UnveilError, match=r"the output folder holds what is read: found .*Name another\.$"):
            check_free(output, overwrite=True, inputs=[elsewhere, read])
    check_free(read / "report", inputs=[read])
    check_free(elsewhere, inputs=[read, "postgresql://nobody/nothing"])
