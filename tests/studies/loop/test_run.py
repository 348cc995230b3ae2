import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import stats

from tests.pages import faults
from tests.run_folders import small_log
from tests.studies.loop.conftest import REPLICATES, ROUNDS, Place, plan_of
from unveil.data.interactions import Interactions
from unveil.data.sequences import Sequences
from unveil.errors import UnveilError
from unveil.runs.workers import Inline
from unveil.studies.loop import run_loop, state_path
from unveil.studies.loop_report import write


def test_a_row_for_each_replicate_model_and_round(looped: Place) -> None:
    table = looped.looped.outcome.table()
    assert len(table) == REPLICATES * 3 * (ROUNDS + 1)
    assert table.filter(pl.col("round") == 0)["taken"].null_count() == REPLICATES * 3
    assert table.filter(pl.col("round") > 0)["taken"].null_count() == 0
    assert table.filter(pl.col("model") == "random")["loss"].null_count() == REPLICATES * (ROUNDS + 1)
    events = table.filter((pl.col("model") == "naive") & (pl.col("replicate") == 0))["events"].to_list()
    assert events == [len(small_log()) + round * len(small_log().users) for round in range(ROUNDS + 1)]


def test_replicates_differ_and_a_model_alone_is_the_same(looped: Place, tmp_path: Path) -> None:
    alone = run_loop(plan_of(models=("itps",), replicates=1), small_log(), tmp_path / "alone", Inline())
    assert alone.outcome.records["itps"][0] == looped.looped.outcome.records["itps"][0]
    for model in ("itps", "random"):
        first, second = looped.looped.outcome.records[model]
        assert first[0] != second[0]
        assert first[1] != second[1]


def test_means_and_intervals_are_over_replicates(looped: Place) -> None:
    outcome = looped.looped.outcome
    value = np.array([loop[2]["efd"] for loop in outcome.records["naive"]], float)
    found = outcome.estimate("naive", "efd", 2)
    assert found.mean == pytest.approx(np.mean(value))
    low, high = stats.t.interval(0.95, 1, loc=np.mean(value), scale=stats.sem(value))
    assert (found.low, found.high) == pytest.approx((low, high))
    a, b = (np.array([loop[ROUNDS]["efd"] for loop in outcome.records[model]], float) for model in ("itps", "naive"))
    assert outcome.differences("efd", "naive")["itps"].difference == pytest.approx((a - b).mean())


def test_a_longer_loop_goes_on_from_a_shorter_one(looped: Place, tmp_path: Path) -> None:
    shorter = run_loop(plan_of(rounds=1, replicates=1), small_log(), tmp_path / "loop", Inline())
    assert shorter.outcome.rounds == 1
    longer = run_loop(plan_of(), small_log(), tmp_path / "loop", Inline(), resume=True)
    assert longer.outcome.records == looped.looped.outcome.records


def test_a_state_that_was_lost_is_made_again(looped: Place, tmp_path: Path) -> None:
    plan = plan_of(replicates=1)
    run_loop(plan_of(rounds=2, replicates=1), small_log(), tmp_path / "loop", Inline())
    state_path(tmp_path / "loop", "itps", 0).unlink()
    again = run_loop(plan, small_log(), tmp_path / "loop", Inline(), resume=True)
    assert again.outcome.records["itps"][0] == looped.looped.outcome.records["itps"][0]


def test_a_folder_belongs_to_one_loop(looped: Place, tmp_path: Path) -> None:
    with pytest.raises(UnveilError, match=r"not empty.*pass --resume"):
        run_loop(plan_of(), small_log(), looped.folder, Inline())
    with pytest.raises(UnveilError, match="there is no loop to resume"):
        run_loop(plan_of(), small_log(), tmp_path, Inline(), resume=True)
    other = plan_of(settings=("naive:model.width=4",))
    with pytest.raises(UnveilError, match=r"belongs to another run: cells.models.naive.model.width was 8 and is now 4"):
        run_loop(other, small_log(), looped.folder, Inline(), resume=True)
    fewer = small_log().where(np.arange(len(small_log()) - 1))
    with pytest.raises(UnveilError, match=r"belongs to another run: cells.log"):
        run_loop(plan_of(), fewer, looped.folder, Inline(), resume=True)


def test_what_cannot_be_looped_leaves_no_folder(tmp_path: Path) -> None:
    small = small_log().where(np.arange(8)).compact()
    assert len(small.items) < 9
    with pytest.raises(UnveilError, match="k is out of range"):
        run_loop(plan_of(), small.where(np.arange(4)).compact(), tmp_path / "loop", Inline())
    assert not (tmp_path / "loop").exists()


def test_the_logs_that_are_kept_are_what_the_last_round_was_trained_on(looped: Place) -> None:
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


def test_the_files(looped: Place, tmp_path: Path) -> None:
    write(looped.looped, tmp_path, ["unveil", "loop", "my log.csv"])
    told = json.loads((tmp_path / "results.json").read_text())
    assert told["question"] == "loop"
    assert told["command"] == "unveil loop 'my log.csv'"
    rows = {(row["estimator"], row["metric"], row["round"]): row for row in told["rows"]}
    outcome = looped.looped.outcome
    assert rows["naive", "efd", 2]["mean"] == outcome.estimate("naive", "efd", 2).mean
    assert rows["naive", "efd", 2]["replicates"] == REPLICATES
    assert set(rows["naive", "efd", 2]) >= {"preset", "severity", "protocol", "evaluation", "k", "low", "high", "paper"}
    assert ("random", "loss", 0) not in rows
    assert ("naive", "taken", 0) not in rows
    page = (tmp_path / "index.html").read_text()
    assert page.count("<svg") == len([key for key in outcome.figures if len(outcome.rounds_of(key)) > 1])
    assert "my log.csv" in page
    assert faults(page) == []
    readme = (tmp_path / "README.md").read_text()
    assert all(paragraph in readme for paragraph in told["findings"])
    assert len(pl.read_csv(tmp_path / "loop.csv")) == REPLICATES * 3 * (ROUNDS + 1)
