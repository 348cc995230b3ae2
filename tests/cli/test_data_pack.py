"""`unveil data pack`, and a run on what it wrote: the same as on the log in memory, byte for byte."""

from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.run_folders import Finished, options, small_frame


@pytest.fixture
def packed(unveil: Command, tmp_path: Path) -> Path:
    (tmp_path / "log").mkdir()
    for nth in range(3):
        small_frame()[100 * nth : 100 * (nth + 1) if nth < 2 else None].write_parquet(tmp_path / f"log/{nth}.parquet")
    done = unveil("data", "pack", tmp_path / "log" / "[01].parquet", tmp_path / "log/2.parquet", "-o", tmp_path / "p")
    assert done.code == 0, done.err
    assert done.out.startswith(f"{tmp_path / 'p'}: {len(small_frame())} events, 40 users, 30 items; columns user, item")
    return tmp_path / "p"


def test_a_run_on_a_packed_log_is_a_run_on_the_log(
    unveil: Command, finished: Finished, packed: Path, tmp_path: Path
) -> None:
    done = unveil("train", packed, "-o", tmp_path / "run", "-e", "itps", *options())
    assert done.code == 0, done.err
    for line in finished.told:
        assert line in done.out.splitlines()
    for name in ("metrics.json", "model.safetensors", "histories.safetensors", "cases.safetensors", "users.parquet"):
        assert (tmp_path / "run" / name).read_bytes() == (finished.folder / name).read_bytes(), name


def test_a_packed_log_is_described_converted_and_checked(
    unveil: Command, finished: Finished, packed: Path, tmp_path: Path
) -> None:
    described = [unveil("data", "describe", log, "--json").out for log in (packed, finished.log)]
    assert described[0] == described[1]
    assert unveil("data", "convert", packed, "-o", tmp_path / "again.csv").code == 0
    assert unveil("data", "convert", finished.log, "-o", tmp_path / "plain.csv").code == 0
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "plain.csv").read_bytes()
    assert unveil("data", "pack", "--check", packed).out.endswith("as it was packed\n")


def test_mistakes(unveil: Command, packed: Path, tmp_path: Path) -> None:
    assert "nowhere to write to" in unveil("data", "pack", tmp_path / "log").failure()
    assert "only Parquet files are packed" in unveil("data", "pack", packed, "-o", "x", "--format", "csv").failure()
    assert "not a packed log" in unveil("data", "pack", "--check", tmp_path).failure()
    assert "filtered when it was packed" in unveil("train", packed, "-o", tmp_path / "r", "--min-user", 5).failure()
    (tmp_path / "log/1.parquet").write_bytes(b"PAR1")
    told = unveil("data", "pack", tmp_path / "log", "-o", tmp_path / "q").failure()
    assert "1.parquet: not a whole Parquet file" in told
    assert not (tmp_path / "q").exists()
