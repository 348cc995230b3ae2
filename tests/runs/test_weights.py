from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from tests.run_folders import Finished
from unveil.errors import UnveilError
from unveil.runs.train import export_weights


def test_weights_are_the_inverse_of_counts_by_item_and_step(finished: Finished, tmp_path: Path) -> None:
    """Worked out again from the log alone: the last two events are held out, the model reads the eight before."""
    told = export_weights(finished.folder, tmp_path / "weights.parquet")
    assert (told.estimator, told.propensity, told.by_proxy) == ("itps", "popularity-temporal", True)
    frame = pl.read_parquet(tmp_path / "weights.parquet")
    log = pl.read_csv(finished.log, infer_schema=False)
    assert frame["user_id"].to_list() == log["user_id"].to_list()
    assert frame["item_id"].to_list() == log["item_id"].to_list()

    place = frame.with_columns(
        left=pl.len().over("user_id") - pl.col("timestamp").rank("ordinal").over("user_id").cast(pl.Int64)
    )["left"].to_list()  # events that come after, in the history
    part = ["held-out" if left < 2 else "train" if left < 10 else "older" for left in place]
    assert frame["part"].to_list() == part
    cells = Counter(
        (item, left) for item, left, where in zip(frame["item_id"], place, part, strict=True) if where == "train"
    )
    train = frame.with_columns(left=pl.Series(place)).filter(pl.col("part") == "train")
    raw = [1 / cells[item, left] for item, left in zip(train["item_id"], train["left"], strict=True)]
    mean = sum(raw) / len(raw)
    assert train["weight"].to_list() == pytest.approx([weight / mean for weight in raw], rel=1e-5)
    assert frame.filter(pl.col("part") != "train")["weight"].null_count() == len(frame) - len(train)


def test_a_clip_makes_them_even(finished: Finished, tmp_path: Path) -> None:
    export_weights(finished.folder, tmp_path / "w.csv", {"estimator.clip": 1.0})
    frame = pl.read_csv(tmp_path / "w.csv")
    assert frame["weight"].drop_nulls().to_list() == pytest.approx([1.0] * frame["weight"].count())


def test_ips_where_asked_for(finished: Finished, tmp_path: Path) -> None:
    told = export_weights(finished.folder, tmp_path / "w.csv", {"estimator.name": "ips"})
    assert (told.estimator, told.propensity) == ("ips", "popularity-static")


def test_a_run_without_weights_is_given_those_of_itps(finished: Finished, tmp_path: Path) -> None:
    told = export_weights(finished.folder, tmp_path / "a.parquet", {"estimator.name": "naive"})
    export_weights(finished.folder, tmp_path / "b.parquet")
    assert told.estimator == "itps"
    assert pl.read_parquet(tmp_path / "a.parquet").equals(pl.read_parquet(tmp_path / "b.parquet"))


def test_those_of_itps_are_changed_as_asked_too(finished: Finished, tmp_path: Path) -> None:
    asked = {"estimator.clip": 0.05, "propensity": {"name": "popularity-temporal", "half_width": 1}}
    for name, changes in (("a", {"estimator.name": "naive"}), ("b", {}), ("c", {"estimator.name": "corrected"})):
        own = asked if name != "c" else {"propensity": asked["propensity"]}
        export_weights(finished.folder, tmp_path / f"{name}.parquet", {**changes, **own})
    export_weights(finished.folder, tmp_path / "d.parquet", {"propensity": asked["propensity"]})
    a, b, c, d = (pl.read_parquet(tmp_path / f"{name}.parquet") for name in "abcd")
    assert a.equals(b)
    assert c.equals(d)
    assert not a.equals(c)


def test_another_log_is_refused(finished: Finished, tmp_path: Path) -> None:
    before = finished.log.read_bytes()
    try:
        finished.log.write_bytes(b"\n".join(before.splitlines()[:-1]))
        with pytest.raises(UnveilError, match="the log has changed since the run"):
            export_weights(finished.folder, tmp_path / "w.csv")
    finally:
        finished.log.write_bytes(before)
