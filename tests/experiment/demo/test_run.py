"""The demo from end to end, on a world that takes a second: what it writes, and that it is all of one piece."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from tests.experiment.demo.small import tiny_demo
from tests.pages import faults
from unveil.cli.main import app
from unveil.data.interactions import Interactions
from unveil.errors import UnveilError
from unveil.experiment.demo.run import ESTIMATORS, Demo, Shown, run_demo, show
from unveil.simulation.world import World
from unveil.training.checkpoint import Best, Epoch
from unveil.training.progress import Silent
from unveil.training.trainer import Stopped

Written = tuple[Path, Shown]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Written:
    folder = tmp_path_factory.mktemp("demo") / "out"
    return folder, run_demo(folder, tiny_demo())


def results(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "results.json").read_text()))


def test_the_demo_writes_page_results_log_and_world(demo: Written) -> None:
    folder, shown = demo
    assert sorted(path.name for path in folder.iterdir()) == [
        "figures",
        "index.html",
        "log.csv",
        "results.csv",
        "results.json",
        "world",
    ]
    assert repr(World.load(folder / "world")) == repr(shown.truth.world)


def test_the_page_is_whole_and_needs_nothing_else(demo: Written) -> None:
    html = (demo[0] / "index.html").read_text(encoding="utf-8")
    assert faults(html) == []
    assert html.count("<svg") == 12
    assert len(list((demo[0] / "figures").glob("*.png"))) == 12


def test_results_have_a_row_for_each_estimator_evaluation_protocol_and_metric(demo: Written) -> None:
    rows = results(demo[0])["results"]
    keys = [(row["estimator"], row["evaluation"], row["protocol"], row["metric"], row["k"]) for row in rows]
    assert len(keys) == len(set(keys))
    assert {key[0] for key in keys} == {"random", "popularity", *ESTIMATORS}
    for name in ESTIMATORS:
        for by in ("true relevance", "standard"):
            for protocol in ("full", "uniform-5", "popular-5"):
                assert {(name, by, protocol, metric, 10) for metric in ("NDCG", "Recall", "MRR")} <= set(keys)
        assert (name, "true relevance", "truth", "Relevance", 10) in keys
        assert (name, "true relevance", "truth", "Regret", 10) in keys
    for row in rows:
        assert row["low"] is None or row["low"] - 1e-9 <= row["mean"] <= row["high"] + 1e-9


def test_the_page_shows_the_results_that_are_written(demo: Written) -> None:
    html = (demo[0] / "index.html").read_text(encoding="utf-8")
    wanted = [("true relevance", "full"), ("true relevance", "uniform-5"), ("standard", "full")]
    shown = [row for row in results(demo[0])["results"] if (row["evaluation"], row["protocol"]) in wanted]
    for row in shown:
        if (row["metric"], row["k"]) == ("NDCG", 10):
            assert f"{row['mean']:.3f} [{row['low']:.3f}, {row['high']:.3f}]" in html


def test_csv_and_json_tell_the_same(demo: Written) -> None:
    table = pl.read_csv(demo[0] / "results.csv")
    rows = results(demo[0])["results"]
    assert table.columns == list(rows[0])
    assert table["mean"].to_list() == [pytest.approx(row["mean"]) for row in rows]


def test_the_gap_is_that_of_the_rows(demo: Written) -> None:
    found = results(demo[0])
    mean = {
        row["estimator"]: row["mean"]
        for row in found["results"]
        if (row["evaluation"], row["protocol"], row["metric"], row["k"]) == ("true relevance", "full", "NDCG", 10)
    }
    gap = mean["ideal"] - mean["naive"]
    for name, closed in found["gap_closed"].items():
        assert closed == (pytest.approx((mean[name] - mean["naive"]) / gap) if gap > 0 else None)
    for name, difference in found["less_naive"].items():
        assert difference["difference"] == pytest.approx(mean[name] - mean["naive"])


def test_weights_are_told_where_there_are_any(demo: Written) -> None:
    weights = results(demo[0])["weights"]
    assert set(weights) == {"ips", "itps"}
    assert 1 <= weights["itps"]["effective_sample_size"] <= weights["itps"]["slots"]


def test_the_log_on_disk_is_the_log_that_was_drawn(demo: Written) -> None:
    read, drawn = Interactions.read(demo[0] / "log.csv"), demo[1].truth.log.compact()
    assert (read.users, read.items) == (drawn.users, drawn.items)
    for name in ("user", "item", "time", "step"):
        np.testing.assert_array_equal(getattr(read, name), getattr(drawn, name))
    assert read.propensity is not None
    assert drawn.propensity is not None
    np.testing.assert_allclose(read.propensity, drawn.propensity, rtol=1e-6)


def test_the_same_seed_gives_the_same_files(demo: Written, tmp_path: Path) -> None:
    run_demo(tmp_path / "again", tiny_demo())
    names = ("results.json", "results.csv", "index.html", "log.csv", "world/world.json", "world/factors.safetensors")
    for name in names:
        assert (tmp_path / "again" / name).read_bytes() == (demo[0] / name).read_bytes(), name


def test_replicates_differ_in_everything_random_and_are_averaged() -> None:
    shown, other = show(tiny_demo(replicates=2)), show(tiny_demo(seed=1))
    first, second = shown.outcome.trials
    assert first.split.whole.item_N.tolist() != second.split.whole.item_N.tolist()
    # The second replicate of one demo is the first of the demo with the next seed.
    assert second.arm("itps").truth.frame.equals(other.outcome.trials[0].arm("itps").truth.frame)
    both = [trial.arm("itps").truth.value("full", "NDCG", 10) for trial in (first, second)]
    estimate = shown.outcome.estimate("itps")
    assert estimate.n == 2
    assert estimate.mean == pytest.approx(np.mean(both))
    assert estimate.low is not None
    assert estimate.low <= estimate.mean


def test_an_occupied_folder_is_refused_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep")
    with pytest.raises(UnveilError, match="not empty"):
        run_demo(tmp_path, tiny_demo(), watch=Impatient())
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


class Impatient(Silent):
    """Interrupts the second training."""

    names: list[str]

    def __init__(self) -> None:
        self.names = []

    def next(self, name: str) -> None:
        self.names.append(name)

    def epoch(self, epoch: Epoch, best: Best | None) -> None:
        if len(self.names) == 2:
            raise KeyboardInterrupt


def test_an_interrupted_demo_leaves_nothing(tmp_path: Path) -> None:
    watch = Impatient()
    with pytest.raises(Stopped):
        run_demo(tmp_path / "out", tiny_demo(), watch=watch)
    assert watch.names == ["naive", "ips"]
    assert list(tmp_path.iterdir()) == []


def test_the_command_prints_a_table_a_reading_and_where_the_page_is(tmp_path: Path) -> None:
    command = ["demo", "--output", str(tmp_path / "d"), "--seed", "3", "--users", "60", "--epochs", "2"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    found = results(tmp_path / "d")
    for row in found["results"]:
        if (row["evaluation"], row["protocol"], row["metric"], row["k"]) == ("true relevance", "full", "NDCG", 10):
            assert f"{row['mean']:.3f} [{row['low']:.3f}, {row['high']:.3f}]" in result.stdout
    assert "the naive loss on true favourites" in " ".join(result.stdout.split())
    assert f"open {tmp_path / 'd' / 'index.html'}" in result.stdout
    assert "4/4 ideal · epoch 2/2" in result.stderr
    assert found["demo"]["seed"] == 3
    assert json.loads((tmp_path / "d" / "world" / "world.json").read_text())["origin"]["spec"]["users"] == 60


@pytest.mark.slow
def test_the_demo_as_it_is_shown(tmp_path: Path) -> None:
    """The models learn: each loss beats popularity by far, and the ideal loss is best on true favourites."""
    outcome = run_demo(tmp_path / "demo", Demo()).outcome
    mean = {arm: outcome.estimate(arm).mean for arm in outcome.arms}
    assert min(mean[name] for name in ESTIMATORS) > 2 * mean["popularity"] > 4 * mean["random"]
    assert outcome.ranking()[0] == "ideal"
    assert outcome.differences["ideal"].p < 0.001
