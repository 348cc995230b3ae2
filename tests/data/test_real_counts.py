"""The counts of the public data sets, exactly, from the files as they are; each twinned with a generated file."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from unveil.data.filters import Filters
from unveil.data.interactions import Interactions, Sequences

Counts = tuple[int, int, int]  # users, items, interactions

FIVE = Filters(min_item=5, min_user=5)
FIVE_CORE = Filters(min_item=5, min_user=5, iterate=True)


@dataclass(frozen=True)
class Case:
    """A file, and what is in it: as it is, and after a filter."""

    file: str
    raw: Counts
    filters: Filters
    left: Counts
    time_column: str | None = None


CASES = [
    Case("ml-100k/u.data", (943, 1_682, 100_000), FIVE, (943, 1_349, 99_287)),
    Case("ml-100k/u.data", (943, 1_682, 100_000), FIVE_CORE, (943, 1_349, 99_287)),
    Case("ml-100k", (943, 1_682, 100_000), FIVE, (943, 1_349, 99_287)),
    Case("ml-100k/ml-100k.inter.gz", (943, 1_682, 100_000), FIVE, (943, 1_349, 99_287)),
    Case("ml-1m/ml-1m.txt.gz", (6_040, 3_416, 999_611), FIVE, (6_040, 3_416, 999_611)),
    Case("ml-1m/ratings-time-rank.csv.gz", (6_040, 3_706, 1_000_209), FIVE, (6_040, 3_416, 999_611), "time_rank"),
    Case("ml-1m/ratings-users-1-2999.dat.gz", (2_999, 3_615, 487_650), FIVE, (2_999, 3_266, 486_907)),
    Case("beauty/beauty.txt.gz", (40_226, 54_542, 353_962), Filters(), (40_226, 54_542, 353_962)),
    Case("beauty/beauty.txt.gz", (40_226, 54_542, 353_962), Filters(min_item=5), (40_136, 17_041, 276_660)),
    Case("beauty/beauty.txt.gz", (40_226, 54_542, 353_962), FIVE_CORE, (22_363, 12_101, 198_502)),
]


def _counts(log: Interactions) -> Counts:
    return len(log.users), len(log.items), len(log)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.file} {case.left}")
def test_counts(case: Case, shared_data: Path) -> None:
    columns = {"time": case.time_column} if case.time_column else None
    log = Interactions.read(shared_data / case.file, columns=columns, time_unit="order" if columns else None)
    assert _counts(log) == case.raw
    assert _counts(case.filters(log)) == case.left


def test_u_data_in_detail(shared_data: Path) -> None:
    log = Interactions.read(shared_data / "ml-100k" / "u.data")
    assert log == Interactions.read(shared_data / "ml-100k" / "ml-100k.inter.gz")
    assert log.time is not None
    assert (log.time.min(), log.time.max()) == (874724710 * 10**6, 893286638 * 10**6)
    assert log.rating is not None
    assert np.unique(log.rating, return_counts=True)[1].tolist() == [6_110, 11_370, 27_145, 34_174, 21_201]
    length_U = Sequences.of(log).length_U
    assert (length_U.min(), length_U.max()) == (20, 737)


def test_beauty_lengths(shared_data: Path) -> None:
    length_U = Sequences.of(Interactions.read(shared_data / "beauty" / "beauty.txt.gz")).length_U
    assert (length_U.min(), length_U.max()) == (5, 293)
    assert np.median(length_U) == 6


def test_kuairand_exposures(shared_data: Path) -> None:
    log = Interactions.read(shared_data / "kuairand-pure" / "log_standard_4_25_to_5_08_pure.csv.gz")
    assert _counts(log) == (25_156, 6_361, 228_329)
    assert len(log.interacted()) == 100_900
    assert len(log.skipped()) == 228_329 - 100_900
    assert log.exposed is not None
    assert log.exposed.all()
    assert log.randomised is not None
    assert not log.randomised.any()
    assert log.time is not None
    assert (log.time.min(), log.time.max()) == (1650812741436000, 1652025130564000)
    clicks = np.bincount(log.interacted().user, minlength=len(log.users))
    assert ((clicks >= 5).sum(), clicks[clicks >= 5].sum()) == (7_926, 70_378)


def _generated(rng: np.random.Generator) -> list[tuple[int, int, int, int]]:
    """Users 1 to 40 with 5 to 30 events, items with a long tail, half of the times tied."""
    rows = [
        (user, int(item) + 1, int(rng.integers(1, 6)), 978_300_000 + int(rng.integers(8)) * 60)
        for user in range(1, 41)
        for item in rng.geometric(0.05, size=rng.integers(5, 31))
    ]
    return [rows[place] for place in rng.permutation(len(rows))]


def _by_hand(rows: list[tuple[int, int, int, int]], least: int) -> Counts:
    """One pass: rare items, then short users."""
    for column in (1, 0):
        counts: dict[int, int] = {}
        for row in rows:
            counts[row[column]] = counts.get(row[column], 0) + 1
        rows = [row for row in rows if counts[row[column]] >= least]
    return len({row[0] for row in rows}), len({row[1] for row in rows}), len(rows)


WRITTEN = {
    "u.data": lambda u, i, r, t: f"{u}\t{i}\t{r}\t{t}",
    "ratings.dat": lambda u, i, r, t: f"{u}::{i}::{r}::{t}",
    "ratings.csv": lambda u, i, r, t: f"{u},{i},{r}.0,{t}",
    "log.inter": lambda u, i, r, t: f"{u}\t{i}\t{r}\t{t}",
    "log_standard.csv": lambda u, i, r, t: f"{u},{i},{t}000,1,0",
    "pairs.txt": lambda u, i, r, t: f"{u} {i}",
}
HEADERS = {
    "ratings.csv": "userId,movieId,rating,timestamp\n",
    "log.inter": "user_id:token\titem_id:token\trating:float\ttimestamp:float\n",
    "log_standard.csv": "user_id,video_id,time_ms,is_click,is_rand\n",
}


@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_counts_of_a_generated_file(name: str, seed: int, tmp_path: Path) -> None:
    rows = _generated(np.random.default_rng(seed))
    path = tmp_path / name
    path.write_text(HEADERS.get(name, "") + "".join(WRITTEN[name](*row) + "\n" for row in rows))
    log = Interactions.read(path)
    assert _counts(log) == _by_hand(rows, 0)
    assert _counts(FIVE(log)) == _by_hand(rows, 5)
    assert log.to_frame().select("user", "item").rows() == [(str(row[0]), str(row[1])) for row in rows]
