"""Rows of a random policy are no part of training: they are a test without exposure bias."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from unveil.data.interactions import Interactions, Sequences
from unveil.data.packed import pack
from unveil.errors import UnveilError, UnveilWarning
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


def kuairand(rows: list[tuple[int, int, int, int, int]]) -> str:
    """A log of KuaiRand: date, time and signals beside who saw what."""
    head = "user_id,video_id,date,hourmin,time_ms,is_click,is_like,is_rand,tab"
    lines = [f"{user},{video},20220422,0,{time},{click},0,{rand},1" for user, video, time, click, rand in rows]
    return "\n".join([head, *lines, ""])


@pytest.fixture
def both(tmp_path: Path) -> tuple[Path, Path, Path]:
    """As downloaded, the logs of the standard and of the random policy; and both in one file, mixed."""
    rng, base = np.random.default_rng(1), 1_650_000_000_000
    standard = [
        (user, int(item), base + 10 * at + user, int(at % 3 != 0), 0)
        for user in range(14)
        for at, item in enumerate(rng.permutation(20)[:12])
    ]
    random = [
        (user, int(item), base + 500 + at, at % 2, 1)
        for user in range(14)
        for at, item in enumerate(rng.permutation(20)[:6])
    ]
    one = sorted([*standard, *random], key=lambda row: row[2])
    parts = {
        "log_standard_4_22_to_5_08_pure.csv": standard,
        "log_random_4_22_to_5_08_pure.csv": random,
        "both.csv": one,
    }
    for name, rows in parts.items():
        (tmp_path / name).write_text(kuairand(rows))
    standard_file, random_file, both = (tmp_path / name for name in parts)
    return standard_file, random_file, both


def test_one_file_of_both_policies_is_as_good_as_two(both: tuple[Path, Path, Path]) -> None:
    standard, random, mixed = both
    alone = DataConfig(log=str(standard)).load()
    with pytest.warns(UnveilWarning, match="84 rows shown at random"):
        split = DataConfig(log=str(mixed)).load()
    assert sorted(split.to_frame().rows()) == sorted(alone.to_frame().rows())
    tests = [
        read_test(source, log.users, log.items, Sequences.of(log), seen="skip")
        for source, log in ((random, alone), (mixed, split))
    ]
    assert tests[0].fingerprint == tests[1].fingerprint
    assert tests[0].skipped.keys() == {"in the user's history"}
    with pytest.raises(UnveilError, match="own histories"):
        read_test(random, alone.users, alone.items, Sequences.of(alone))


def test_a_packed_log_of_both_is_refused(both: tuple[Path, Path, Path], tmp_path: Path) -> None:
    for path in both[:2]:
        Interactions.read(path).to_frame().write_parquet(path.with_suffix(".parquet"))
    pack([path.with_suffix(".parquet") for path in both[:2]], tmp_path / "packed")
    with pytest.raises(UnveilError, match="packed log holds rows shown at random"):
        DataConfig(log=str(tmp_path / "packed")).load()
    pack([both[0].with_suffix(".parquet")], tmp_path / "standard")
    assert len(DataConfig(log=str(tmp_path / "standard")).load()) == 14 * 12
