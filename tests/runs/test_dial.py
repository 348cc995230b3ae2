import shutil
from pathlib import Path

import polars as pl
import pytest

from tests.run_folders import Finished
from unveil.evaluation.result import Evaluation
from unveil.runs.dial import measured
from unveil.serving.model_files import read_dial, write_dial


def test_at_zero_it_is_the_evaluation_of_the_run_and_turned_up_lists_are_less_popular(
    finished: Finished, tmp_path: Path
) -> None:
    run = Path(shutil.copytree(finished.folder, tmp_path / "run"))
    points = measured(run, (0.0, 1.0))
    summary = Evaluation.read(run).summary.filter(pl.col("protocol").is_in(["full", "lists"]))
    figures = {(row["metric"], row["k"]): row["mean"] for row in summary.iter_rows(named=True)}
    first, last = points
    assert first["recall"] == pytest.approx(figures["Recall", 10])
    assert first["ndcg"] == pytest.approx(figures["NDCG", 10])
    assert first["coverage"] == pytest.approx(figures["Coverage", 10])
    assert first["recall_low"] <= first["recall"] <= first["recall_high"]
    assert last["popularity"] < first["popularity"]
    write_dial(run, points)
    assert read_dial(run) == points
    manifest = run / "manifest.json"
    manifest.write_text(manifest.read_text() + " ")  # as another model's would be
    assert read_dial(run) == []
