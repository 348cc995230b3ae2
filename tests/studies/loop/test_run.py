import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import stats

from tests.pages import faults
from tests.run_folders import small_frame, small_log
from tests.studies.loop.conftest import REPLICATES, ROUNDS, records, small_study
from unveil.data.filters import LogSource
from unveil.data.interactions import Interactions, Sequences
from unveil.errors import UnveilError
from unveil.runs.workers import Inline
from unveil.studies.engine import Answer, run, write
from unveil.studies.loop import LoopResults


def test_a_row_for_each_replicate_model_and_round(looped: Answer) -> None:
    table = pl.read_csv(looped.folder / "loop.csv")
    assert len(table) == REPLICATES * 3 * (ROUNDS + 1)
    assert table.filter(pl.col("round") == 0)["taken"].null_count() == REPLICATES * 3
    assert table.filter(pl.col("round") > 0)["taken"].null_count() == 0
    assert table.filter(pl.col("model") == "random")["loss"].null_count() == REPLICATES * (ROUNDS + 1)
    events = table.filter((pl.col("model") == "naive") & (pl.col("replicate") == 0))["events"].to_list()
    assert events == [len(small_log()) + round * len(small_log().users) for round in range(ROUNDS + 1)]


def test_replicates_differ_and_a_model_alone_is_the_same(looped: Answer, tmp_path: Path) -> None:
    alone = run(small_study(tmp_path, estimators=("itps",), replicates=1), tmp_path / "alone", Inline())
    assert records(alone, "itps")[0] == records(looped, "itps")[0]
    for model in ("itps", "random"):
        first, second = records(looped, model)
        assert first[0] != second[0]
        assert first[1] != second[1]


def test_means_and_intervals_are_over_replicates(looped: Answer) -> None:
    outcome = looped.results
    assert isinstance(outcome, LoopResults)
    value = np.array([loop[2]["efd"] for loop in records(looped, "naive")], float)
    found = outcome.figure("naive", "efd", 2)
    assert found.mean == pytest.approx(np.mean(value))
    low, high = stats.t.interval(0.95, 1, loc=np.mean(value), scale=stats.sem(value))
    assert (found.low, found.high) == pytest.approx((low, high))
    a, b = (np.array([loop[ROUNDS]["efd"] for loop in records(looped, model)], float) for model in ("itps", "naive"))
    assert outcome.differences()["itps"].difference == pytest.approx((a - b).mean())


def test_a_longer_loop_goes_on_from_a_shorter_one(looped: Answer, tmp_path: Path) -> None:
    shorter = run(small_study(tmp_path, rounds=1, replicates=1), tmp_path / "loop", Inline())
    assert shorter.results.along("round") == [0, 1]
    longer = run(small_study(tmp_path), tmp_path / "loop", Inline())
    assert all(records(longer, model) == records(looped, model) for model in ("naive", "itps", "random"))


def test_a_state_that_was_lost_is_made_again(looped: Answer, tmp_path: Path) -> None:
    run(small_study(tmp_path, rounds=2, replicates=1), tmp_path / "loop", Inline())
    (tmp_path / "loop" / "states" / "itps-r0.safetensors").unlink()
    again = run(small_study(tmp_path, replicates=1), tmp_path / "loop", Inline())
    assert records(again, "itps")[0] == records(looped, "itps")[0]


def test_a_folder_belongs_to_one_loop(looped: Answer, tmp_path: Path) -> None:
    other = small_study(tmp_path, "naive:model.width=4")
    with pytest.raises(UnveilError, match=r"belongs to another run: cells.models.naive.model.width was 8 and is now 4"):
        run(other, looped.folder, Inline())
    small_frame().head(-1).write_csv(tmp_path / "fewer.csv")
    fewer = small_study(tmp_path).model_copy(update={"log": LogSource(str(tmp_path / "fewer.csv"))})
    with pytest.raises(UnveilError, match=r"belongs to another run: cells.log"):
        run(fewer, looped.folder, Inline())


def test_what_cannot_be_looped_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(UnveilError, match="k is out of range"):
        run(small_study(tmp_path, k=31), tmp_path / "loop", Inline())
    assert not (tmp_path / "loop").exists()


def test_the_logs_that_are_kept_are_what_the_last_round_was_trained_on(looped: Answer) -> None:
    before, after = small_log(), Interactions.read(looped.folder / "logs" / "naive-r0.parquet")
    assert len(after) == len(before) + ROUNDS * len(before.users)
    old, new = Sequences.of(before), Sequences.of(after)
    for user in (0, 7, 39):
        raw = after.items.raw(new.history(user)).to_list()
        assert raw[:-ROUNDS] == before.items.raw(old.history(user)).to_list()
        assert len(set(raw)) == len(raw)
    assert after.time is not None
    assert after.step is not None
    assert int(after.step.max()) == old.n_steps + ROUNDS - 1


def test_the_files(looped: Answer, tmp_path: Path) -> None:
    write(looped, tmp_path, ["unveil", "loop", "my log.csv"])
    found = json.loads((tmp_path / "results.json").read_text())
    assert found["question"] == "loop"
    assert found["command"] == "unveil loop 'my log.csv'"
    rows = {(row["estimator"], row["metric"], row["round"]): row for row in found["rows"]}
    outcome = looped.results
    assert isinstance(outcome, LoopResults)
    assert rows["naive", "efd", 2]["mean"] == outcome.figure("naive", "efd", 2).mean
    assert rows["naive", "efd", 2]["replicates"] == REPLICATES
    assert set(rows["naive", "efd", 2]) >= {"preset", "severity", "protocol", "evaluation", "k", "low", "high", "paper"}
    assert ("random", "loss", 0) not in rows
    assert ("naive", "taken", 0) not in rows
    assert found["loop"]["response"] == {"name": "uniform"}
    assert found["models"]["random"] is None
    page = (tmp_path / "index.html").read_text()
    assert page.count("<svg") == len(outcome.plotted)
    assert "my log.csv" in page
    assert faults(page) == []
    readme = (tmp_path / "README.md").read_text()
    assert all(outcome.title(key) in readme for key in outcome.known)
