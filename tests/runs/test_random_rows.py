"""Rows of a random policy are no part of training: they are a test without exposure bias."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from unveil.data.interactions import Sequences
from unveil.errors import UnveilWarning
from unveil.runs.config import DataConfig
from unveil.runs.labelled import read_test


@pytest.fixture
def log(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    rows = [(f"u{u}", f"i{i}", t, int(t % 2 == 0), 0) for u in range(12) for t, i in enumerate(rng.permutation(20)[:8])]
    rows += [(f"u{u}", f"i{19 - u - k}", 100 + k, k, 1) for u in range(12) for k in range(2)]
    columns = ["user_id", "item_id", "timestamp", "clicked", "is_rand"]
    pl.DataFrame(rows, schema=columns, orient="row").write_csv(tmp_path / "log.csv")
    return tmp_path / "log.csv"


def test_training_leaves_them_out_and_the_test_has_nothing_else(log: Path) -> None:
    with pytest.warns(UnveilWarning, match="24 rows shown at random"):
        standard = DataConfig(log=str(log)).load()
    assert len(standard) == 12 * 8
    assert standard.randomised is not None
    assert not standard.randomised.any()
    test = read_test(log, standard.users, standard.items, Sequences.of(standard), seen="skip")
    shown = {(f"u{u}", f"i{19 - u - k}") for u in range(12) for k in range(2)}
    kept = zip(standard.users.raw(test.user_R), standard.items.raw(test.item_R), strict=True)
    assert set(kept) <= shown
    assert test.label_R.any()
    assert not test.label_R.all()


@pytest.mark.parametrize("share", [0, 1])
def test_a_log_of_one_policy_stays_whole(log: Path, share: int) -> None:
    pl.read_csv(log).with_columns(pl.lit(share).alias("is_rand")).write_csv(log)
    assert len(DataConfig(log=str(log)).load()) == 12 * 10
