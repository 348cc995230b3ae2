from pathlib import Path

import polars as pl
import pytest

from tests.cli.conftest import Command
from tests.run_folders import Finished, content


def test_everything_at_once(unveil: Command, finished: Finished, tmp_path: Path) -> None:
    before = content(finished.folder)
    asked = ["export", finished.folder, "--onnx", "--embeddings", "--weights", "--as", "csv", "-o", tmp_path / "out"]
    done = unveil(*asked)
    assert done.code == 0, done.err
    names = {"model.onnx", "item_vectors.parquet", "query_vectors.parquet", "weights.csv"}
    assert {path.name for path in (tmp_path / "out").iterdir()} == names
    assert len(done.out.splitlines()) == 4
    assert "parity" in done.out
    assert "popularity stands in for exposure" in done.err
    assert content(finished.folder) == before
    assert pl.read_csv(tmp_path / "out" / "weights.csv")["weight"].mean() == pytest.approx(1)
    assert "the output is there already" in unveil(*asked).failure()
    assert unveil(*asked, "--overwrite").code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "nothing to export was named: expected --onnx, --embeddings or --weights"),
        (["--weights", "--as", "xlsx"], "cannot tell the format to write from the name"),
        (["--weights", "--set", "estimator.clip=2"], "clip: out of range: found 2, expected between 0 and 1"),
        (["--weights", "--set", "estimator.name=isp"], "Did you mean 'ips'?"),
    ],
)
def test_what_is_wrong_is_one_message(
    arguments: list[str], message: str, unveil: Command, finished: Finished, tmp_path: Path
) -> None:
    assert message in unveil("export", finished.folder, *arguments, "-o", tmp_path / "out").failure()
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())


def test_a_folder_that_holds_no_run(unveil: Command, tmp_path: Path) -> None:
    assert "not the folder of a trained model" in unveil("export", tmp_path, "--onnx").failure()
    assert "not a run folder" in unveil("export", tmp_path, "--weights").failure()
