"""What a person can get wrong about packed logs: one clear message, and nothing half-written."""

import json
import os
import resource
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from unveil.data.filters import Filters, LogSource
from unveil.data.interactions import Interactions
from unveil.data.packed import PackedLog, pack
from unveil.data.packed.log import MANIFEST
from unveil.errors import UnveilError

FRAME = pl.DataFrame(
    {
        "user_id": ["a", "a", "a", "b", "b", "b"],
        "item_id": [1, 2, 3, 1, 2, 1],
        "timestamp": [1_700_000_000, 1_700_000_001, 1_700_000_001, 1_700_000_000, 1_700_000_009, 1_700_000_010],
    }
)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A folder with one file; a test adds the one that does not fit."""
    (tmp_path / "log").mkdir()
    FRAME.write_parquet(tmp_path / "log" / "1.parquet")
    return tmp_path / "log"


@pytest.fixture
def whole(log: Path, tmp_path: Path) -> Path:
    """A packed log."""
    pack([log], tmp_path / "whole")
    return tmp_path / "whole"


def check_message(log: Path, message: str, *, where: str = "2.parquet") -> None:
    """Packing fails with one message that names the file, and leaves nothing behind."""
    before = sorted(os.listdir(log.parent))
    with pytest.raises(UnveilError, match=message) as caught:
        pack([log], log.parent / "packed")
    assert where in str(caught.value)
    assert sorted(os.listdir(log.parent)) == before


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (FRAME.drop("timestamp"), r"the time differs: found 'none', expected timestamp \(whole numbers\), as in"),
        (FRAME.with_columns(rating=1.0), r"the rating differs: found 'rating \(numbers\)', expected none, as in"),
        (FRAME.with_columns(pl.col("user_id").cast(pl.Categorical)), None),
        (FRAME.with_columns(pl.col("item_id").cast(pl.Int16)), None),
        (FRAME.with_columns(pl.col("item_id").cast(pl.String)), r"the item differs: found 'item_id \(text\)'"),
        (FRAME.rename({"user_id": "uid"}), r"the user differs: found 'uid \(text\)', expected user_id \(text\)"),
        (FRAME.drop("item_id"), "no item column"),
        (FRAME.with_columns(user_id=pl.lit(None, pl.String)), "row 1, column user_id: no user, the cell is empty"),
        (FRAME.with_columns(user_id=pl.lit("")), "row 1, column user_id: no user, the cell is empty"),
        (FRAME.with_columns(pl.col("timestamp") * 1000), "1.parquet, row 1, column timestamp: a time too small for ms"),
        (FRAME.clear(), None),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_files_that_do_not_belong_together(log: Path, other: pl.DataFrame, message: str | None) -> None:
    other.write_parquet(log / "2.parquet")
    if message is None:
        assert len(pack([log], log.parent / "packed")) == len(FRAME) + len(other)
    else:
        check_message(log, message, where="parquet")


def test_files_that_are_no_parquet(log: Path) -> None:
    (log / "2.parquet").write_bytes(b"")
    check_message(log, "the file is empty")
    (log / "2.parquet").write_bytes((log / "1.parquet").read_bytes()[:-20])
    check_message(log, "not a whole Parquet file")
    (log / "2.parquet").write_text("user_id,item_id\na,1\n")
    check_message(log, "not a Parquet file: found \"a file that begins with 'user_id,item_id'\"")


def test_a_file_whose_pages_are_damaged(log: Path) -> None:
    FRAME.write_parquet(log / "2.parquet", compression="zstd")
    content = bytearray((log / "2.parquet").read_bytes())
    content[4:60] = bytes(56)
    (log / "2.parquet").write_bytes(content)
    check_message(log, "not a whole Parquet file")


def test_nothing_there(tmp_path: Path, log: Path) -> None:
    (tmp_path / "empty").mkdir()
    for source, message in (
        (tmp_path / "empty", "a folder without Parquet files"),
        (tmp_path / "none.parquet", "no such file, and no file fits it as a pattern"),
        (tmp_path / "log" / "9*.parquet", "no file fits it as a pattern"),
    ):
        with pytest.raises(UnveilError, match=message):
            pack([source], tmp_path / "packed")
    (tmp_path / "other.parquet").symlink_to(log / "1.parquet")
    for again in (log / "1.parquet", tmp_path / "empty" / ".." / "log" / "1.parquet", tmp_path / "other.parquet"):
        with pytest.raises(UnveilError, match="named twice: its events would count double"):
            pack([log, again], tmp_path / "packed")
    assert not (tmp_path / "packed").exists()


@pytest.mark.parametrize("aside", ["_temporary/0/2.parquet", ".part/2.parquet", "_2.parquet", ".2.parquet"])
def test_what_others_are_still_writing_is_not_read(tmp_path: Path, log: Path, aside: str) -> None:
    (log / aside).parent.mkdir(parents=True, exist_ok=True)
    FRAME.write_parquet(log / aside)
    assert len(pack([log], tmp_path / "packed")) == len(FRAME)


def test_one_user_or_one_item_only(tmp_path: Path) -> None:
    FRAME.filter(user_id="a").write_parquet(tmp_path / "one.parquet")
    with pytest.raises(UnveilError, match="one user only"):
        pack([tmp_path / "one.parquet"], tmp_path / "packed")
    assert os.listdir(tmp_path) == ["one.parquet"]


def test_ratings_that_are_not_there(log: Path) -> None:
    with pytest.raises(UnveilError, match="the log has no rating column"):
        pack([log], log.parent / "packed", filters=Filters(min_rating=3))


@contextmanager
def no_large_files(most: int) -> Iterator[None]:
    """No file may grow beyond this: writing then fails as it does on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.parametrize("most", [140, 400])  # in the columns; in the ids
def test_no_room(log: Path, most: int) -> None:
    with no_large_files(most), pytest.raises(UnveilError, match="cannot write: the file would be larger than allowed"):
        pack([log], log.parent / "packed")
    assert os.listdir(log.parent) == ["log"]


def test_a_disk_that_is_full(log: Path, tmp_path: Path) -> None:
    """A real one, of a few pages; only where this process may mount it."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if (
        shutil.which("mount") is None
        or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", disk], capture_output=True).returncode
    ):
        pytest.skip("this process may not mount a disk of its own")
    try:
        with pytest.raises(UnveilError, match="cannot write: the disk is full"):
            pack([log], disk / "packed")
        assert os.listdir(disk) == []
    finally:
        subprocess.run(["umount", disk], check=True)


def test_an_occupied_folder_is_not_buried(log: Path, whole: Path) -> None:
    with pytest.raises(UnveilError, match="the output folder is not empty"):
        pack([log], whole)
    assert len(pack([log], whole, overwrite=True)) == len(FRAME)


def test_a_folder_that_is_not_packed(log: Path, tmp_path: Path) -> None:
    with pytest.raises(UnveilError, match="Pack its Parquet files: unveil data pack"):
        Interactions.read(log)
    with pytest.raises(UnveilError, match=r"not a packed log: expected packed\.json"):
        PackedLog.open(tmp_path)


def test_a_manifest_that_does_not_match(whole: Path) -> None:
    path, written = whole / MANIFEST, (whole / MANIFEST).read_text()
    path.write_text(written.replace('"events": 6', '"events": 5'))
    with pytest.raises(UnveilError, match=r"packed\.json: not as it was written"):
        Interactions.read(whole)
    path.write_text(json.dumps(json.loads(written) | {"format": "unveil packed log 9"}))
    with pytest.raises(UnveilError, match="not a packed log of this version"):
        Interactions.read(whole)
    for broken in ("{", "[]", ""):
        path.write_text(broken)
        with pytest.raises(UnveilError, match=r"not a manifest|not a packed log"):
            Interactions.read(whole)


def _as_before(whole: Path) -> None:
    """The manifest as an earlier version wrote it, without checksums of files."""
    content = json.loads((whole / MANIFEST).read_text())
    old = {name: each for name, each in content.items() if name not in ("format", "seal", "crc32")}
    seal = sha256(json.dumps(old, sort_keys=True).encode()).hexdigest()
    (whole / MANIFEST).write_text(json.dumps({"format": content["format"], **old, "sha256": seal}))


def test_a_flipped_bit_in_any_file_is_named(whole: Path) -> None:
    for path in sorted(whole.iterdir()):
        written = path.read_bytes()
        path.write_bytes(written[:-2] + bytes([written[-2] ^ 1]) + written[-1:])
        with pytest.raises(UnveilError, match=rf"{path.name}: (not as it was written|not a manifest)"):
            PackedLog.open(whole).histories()
        path.write_bytes(written)
    log = PackedLog.open(whole)
    _as_before(whole)
    assert PackedLog.open(whole) == log


def test_files_that_are_not_as_the_manifest_says(whole: Path) -> None:
    column, written = whole / "history-item.npy", (whole / "history-item.npy").read_bytes()
    column.write_bytes(written[:-4])
    with pytest.raises(UnveilError, match=r"history-item.npy: not as the manifest says: found '148 bytes'"):
        Interactions.read(whole)
    other = np.lib.format.open_memmap(column, mode="w+", dtype=np.int64, shape=(3,))  # as many bytes
    del other
    _as_before(whole)
    with pytest.raises(UnveilError, match=r"not as the manifest says: found .*\(3,\) of int64"):
        PackedLog.open(whole).histories()
    column.write_bytes(written[:-4] + b"\1\0\0\0")
    with pytest.raises(UnveilError, match="the content is not what was packed"):
        PackedLog.open(whole).verify()
    column.write_bytes(written)
    PackedLog.open(whole).verify()
    column.unlink()
    with pytest.raises(UnveilError, match="a file of the packed log is missing"):
        Interactions.read(whole)


def test_what_was_said_when_the_log_was_packed_is_not_said_again(whole: Path) -> None:
    with pytest.raises(UnveilError, match="how to read a packed log was said when it was packed"):
        Interactions.read(whole, time_unit="s")
    with pytest.raises(UnveilError, match="a packed log was filtered when it was packed"):
        LogSource(str(whole), min_user=2).load()
    assert len(LogSource(str(whole)).load()) == len(FRAME)
