"""The demo from end to end, on a world that takes a second: what it writes, and that its figures agree."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from tests.pages import faults
from unveil.cli.main import app
from unveil.data.interactions import Interactions
from unveil.errors import UnveilError
from unveil.report.prose import Prose
from unveil.runs.workers import Inline
from unveil.simulation.builtin import WorldSpec
from unveil.simulation.world import World
from unveil.studies.demo import HEADLINE, HELD_OUT, RELEVANCE, Demo, world_log
from unveil.studies.engine import Answer, Report, run, write
from unveil.studies.results import STANDARD, TRUE, Estimate, Results, frame_of

Written = tuple[Path, Answer, Report]
FEW = "corrected-distilled:estimator.batches=20"
SMALL = ("model.width=8", "model.length=10", "task.batch_size=16", FEW)
ARMS = ("naive", "ips", "itps", "corrected", "corrected-distilled", "wmf-distilled", "ideal")


def small(replicates: int = 1, seed: int = 0) -> Demo:
    spec = WorldSpec(users=40, items=30, steps=12, shortest=5, severity=1.5)
    return Demo(spec=spec, epochs=4, negatives=5, changes=SMALL, replicates=replicates, seed=seed)


def written(folder: Path, study: Demo) -> Written:
    answer = run(study, folder, Inline())
    return folder, answer, write(answer, folder, ["unveil", "demo"])


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Written:
    return written(tmp_path_factory.mktemp("demo") / "out", small())


def results(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "results.json").read_text()))


def test_the_demo_writes_page_results_log_and_world(demo: Written) -> None:
    files = {"README.md", "index.html", "log.csv", "results.csv", "results.json", "results.parquet", "world", "cells"}
    assert files <= {path.name for path in demo[0].iterdir()}
    assert repr(World.load(demo[0] / "world")) == repr(world_log(small(), 0).world)


def test_the_page_is_whole_and_needs_nothing_else(demo: Written) -> None:
    html = (demo[0] / "index.html").read_text(encoding="utf-8")
    assert faults(html) == []
    assert html.count("<svg") == 10
    assert len(list((demo[0] / "figures").glob("*.png"))) == 10
    for row in results(demo[0])["rows"]:
        if row["metric"] == "NDCG" and row["k"] == 10 and row["protocol"] == "full":
            assert f"{row['mean']:.3f} [{row['low']:.3f}, {row['high']:.3f}]".replace("-", "−") in html


def test_results_have_a_row_for_each_estimator_evaluation_protocol_and_metric(demo: Written) -> None:
    rows = results(demo[0])["rows"]
    keys = [(row["estimator"], row["evaluation"], row["protocol"], row["metric"], row["k"]) for row in rows]
    assert len(keys) == len(set(keys))
    assert {key[0] for key in keys} == {"random", "popularity", *ARMS}
    for name in ARMS:
        for by in (TRUE, STANDARD):
            for protocol in ("full", "uniform-5", "popular-5"):
                assert {(name, by, protocol, metric, 10) for metric in ("NDCG", "Recall", "MRR")} <= set(keys)
        assert {(name, TRUE, "truth", metric, 10) for metric in ("Relevance", "Regret")} <= set(keys)
    table = pl.read_csv(demo[0] / "results.csv")
    assert table["mean"].to_list() == [pytest.approx(row["mean"]) for row in rows]


def test_intervals_are_over_users_with_one_replicate(demo: Written) -> None:
    found = demo[1].results
    assert found.units == "users"
    users = len(demo[1].records["r0-itps"]["ranks"][TRUE]["full"])
    for measure in (HEADLINE, HELD_OUT, RELEVANCE):
        estimate = found.estimate("itps", measure)
        assert estimate.n == users
        assert estimate.low is not None
        assert estimate.low <= estimate.mean


def test_the_gap_is_that_of_the_rows(demo: Written) -> None:
    found = results(demo[0])
    mean = {arm: demo[1].results.mean(arm, HEADLINE) for arm in ARMS}
    gap = mean["ideal"] - mean["naive"]
    for name, closed in found["gap_closed"].items():
        assert closed == (pytest.approx((mean[name] - mean["naive"]) / gap) if gap > 0 else None)
    for name, difference in found["less_naive"].items():
        assert difference["difference"] == pytest.approx(mean[name] - mean["naive"])
    assert set(found["weights"]) == {"ips", "itps"}
    assert 1 <= found["weights"]["itps"]["effective_sample_size"] <= found["weights"]["itps"]["slots"]


def test_the_log_on_disk_is_the_log_that_was_drawn(demo: Written) -> None:
    read, drawn = Interactions.read(demo[0] / "log.csv"), world_log(small(), 0).log.compact()
    assert (read.users, read.items) == (drawn.users, drawn.items)
    for name in ("user", "item", "time", "step"):
        np.testing.assert_array_equal(getattr(read, name), getattr(drawn, name))
    assert read.propensity is not None
    assert drawn.propensity is not None
    np.testing.assert_allclose(read.propensity, drawn.propensity, rtol=1e-6)


def test_the_same_seed_gives_the_same_files(demo: Written, tmp_path: Path) -> None:
    again = written(tmp_path / "again", small())[0]
    names = ("results.json", "results.csv", "index.html", "log.csv", "world/world.json", "world/factors.safetensors")
    for name in names:
        assert (again / name).read_bytes() == (demo[0] / name).read_bytes(), name


def test_replicates_differ_in_everything_random_and_are_averaged(demo: Written, tmp_path: Path) -> None:
    both = run(small(replicates=2), tmp_path / "both", Inline())
    other = run(small(seed=1), tmp_path / "other", Inline())
    # The second replicate of one demo is the first of the demo with the next seed.
    assert both.records["r1-itps"]["ranks"] == other.records["r0-itps"]["ranks"]
    assert both.records["r0-itps"]["ranks"] == demo[1].records["r0-itps"]["ranks"]
    means = [answer.results.mean("itps", HEADLINE) for answer in (demo[1], other)]
    estimate = both.results.estimate("itps", HEADLINE)
    assert (both.results.units, estimate.n) == ("replicates", 2)
    assert estimate.mean == pytest.approx(np.mean(means))


def test_the_command_prints_a_table_and_where_the_page_is(tmp_path: Path) -> None:
    command = ["demo", "--output", str(tmp_path / "d"), "--seed", "3", "--users", "60", "--epochs", "2", "--jobs", "1"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    found = results(tmp_path / "d")
    for row in found["rows"]:
        if (row["evaluation"], row["protocol"], row["metric"], row["k"]) == HEADLINE:
            assert f"{row['mean']:.3f} [{row['low']:.3f}, {row['high']:.3f}]".replace("-", "−") in result.stdout
    assert f"open {tmp_path / 'd' / 'index.html'}" in result.stdout
    assert found["study"]["seed"] == 3
    assert found["study"]["spec"]["users"] == 60
    again = CliRunner().invoke(app, [*command[:4], "4", *command[5:]])
    assert isinstance(again.exception, UnveilError)
    assert "another run" in str(again.exception)
    replaced = CliRunner().invoke(app, [*command[:4], "4", *command[5:], "--overwrite"])
    assert replaced.exit_code == 0, replaced.output
    assert results(tmp_path / "d")["study"]["seed"] == 4


def test_other_files_are_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep")
    with pytest.raises(UnveilError, match="something else"):
        run(small(), tmp_path, Inline())
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def findings(true: dict[str, float], standard: dict[str, float], relevance: dict[str, float]) -> list[str]:
    """The demo's paragraphs on means that are given, with twenty users about each."""
    value_AN = 0.01 * np.random.default_rng(0).standard_normal((len(true), 20))
    noise = dict(zip(true, value_AN - value_AN.mean(axis=1, keepdims=True), strict=True))
    frame = frame_of(
        {"estimator": arm, **measure._asdict(), "user": user, "value": means[arm] + noise[arm][user]}
        for measure, means in ((HEADLINE, true), (HELD_OUT, standard), (RELEVANCE, relevance))
        for arm in true
        for user in range(20)
    )
    found = Results.of(frame)
    figures = {
        "results": found,
        "HEADLINE": HEADLINE,
        "RELEVANCE": RELEVANCE,
        "tests": found.against(HEADLINE),
        "gaps": {arm: found.gap_closed(arm, HEADLINE) for arm in found.trained},
        "HELD_OUT": HELD_OUT,
    }
    return Prose(["demo.md.j2"], figures).paragraphs("findings")


def means(popularity: float, naive: float, itps: float, ideal: float) -> dict[str, float]:
    return {"popularity": popularity, "naive": naive, "itps": itps, "ideal": ideal}


@pytest.mark.parametrize(
    ("itps", "naive", "ideal", "said", "closed"),
    [
        (0.4, 0.3, 0.5, "significantly above", "closes 50%"),
        (0.3, 0.4, 0.5, "significantly below", "no significant part"),
        (0.4001, 0.4, 0.5, "not significantly different", "no significant part"),
        (0.6, 0.5, 0.4, "significantly above", ""),
    ],
)
def test_the_sentences_follow_the_figures(itps: float, naive: float, ideal: float, said: str, closed: str) -> None:
    _, _, against, bound, *_ = findings(*[means(0.1, naive, itps, ideal)] * 3)
    assert said in against
    assert closed in against
    assert ("closes" in against) == (ideal > naive)
    assert ("no gap to close" in bound) == (ideal <= naive)


def test_a_naive_model_below_popularity_is_not_better() -> None:
    worse, better = (findings(*[means(popular, 0.3, 0.35, 0.5)] * 3)[3] for popular in (0.4, 0.1))
    assert "is not better than" in worse
    assert "is better than" in better


def test_the_two_evaluations_agree_or_not() -> None:
    one, other = means(0.1, 0.2, 0.3, 0.4), means(0.1, 0.3, 0.2, 0.1)
    assert "agree" in findings(one, one, one)[4]
    assert "select naive and the ground truth selects ITPS" in findings(one, other, one)[4]
    assert "both put ITPS first" in findings(one, means(0.1, 0.2, 0.3, 0.1), one)[4]
    assert "not first" not in findings(one, one, one)[5]
    assert "not first" in findings(one, one, means(0.1, 0.2, 0.9, 0.8))[5]


def test_an_estimate_without_units_has_no_interval() -> None:
    row = {"estimator": "naive", **HEADLINE._asdict(), "value": 0.5}
    assert Results.of(frame_of([row])).estimate("naive", HEADLINE) == Estimate(0.5, None, None, 1)


def test_the_page_says_first_that_the_world_is_simulated(demo: Written) -> None:
    first = findings(*[means(0.1, 0.2, 0.3, 0.4)] * 3)[0]
    assert first.startswith("This world is simulated")
    assert "docs/results/unbiased/README.md" in first
    assert first.split(":")[0] in (demo[0] / "index.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_demo_as_it_is_shown(tmp_path: Path) -> None:
    """Each loss beats popularity by far; the ideal loss is best, and corrected is the best of the others."""
    found = run(Demo(), tmp_path / "demo", Inline()).results
    mean = {arm: found.mean(arm, HEADLINE) for arm in found.arms}
    assert min(mean[name] for name in ARMS) > 2 * mean["popularity"] > 4 * mean["random"]
    assert found.order(HEADLINE)[:2] == ["ideal", "corrected"]
    assert found.against(HEADLINE)["ideal"].p < 0.001
