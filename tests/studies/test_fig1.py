import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import polars as pl
import pytest

from tests.audit.small import drawn, log_of
from tests.pages import faults
from unveil.audit.motion import PlaceTests, expected_means
from unveil.audit.timing import ALPHA, LEAST, first_interactions, pair, positions
from unveil.data.filters import LogSource
from unveil.data.interactions import Interactions, Sequences
from unveil.data.titles import named_items
from unveil.data.writers import write as write_log
from unveil.errors import UnveilError
from unveil.report.prose import Prose
from unveil.runs.workers import Inline
from unveil.studies.engine import run, write
from unveil.studies.fig1 import Fig1, ItemData, item_table, place_tests

ITEMS = 40


def trilogy_log(seed: int = 0, *, tied: bool = False) -> Interactions:
    """Items at random, but item 1 never before item 0 and item 2 last of all."""
    histories = []
    for history in drawn(seed, 200, ITEMS, np.ones(ITEMS), (15, 35)):
        ordered = [item for item in history if item not in (0, 1, 2)]
        places = [(len(ordered) * share // 4, item) for share, item in ((1, 0), (3, 1)) if item in history]
        for place, item in reversed(places):
            ordered.insert(place, item)
        histories.append([*ordered, *([2] if 2 in history else [])])
    times = [[place // 2 for place in range(len(history))] for history in histories] if tied else None
    return log_of(histories, ITEMS, times)


TITLES = ["Godfather, The (1972)", "Godfather: Part II, The (1974)", "Godfather: Part III, The (1990)"]
TITLES += ["Back to the Future (1985)", *(f"Film {n} (1999)" for n in range(4, ITEMS))]


class Found(NamedTuple):
    """A log's items to draw, and the tests of all."""

    data: ItemData
    tests: PlaceTests


def found_in(log: Interactions, titles: Sequence[str], items: str | None = None, draws: int = 50) -> Found:
    data, mean_V = ItemData.of(log, titles, items), None
    if draws and len(first_interactions(data.sequences)) == len(data.sequences):
        places = positions(data.sequences)
        mean_V = tuple(expected_means(data.sequences, places, draws, np.random.default_rng(0)).tolist())
    return Found(data, place_tests(data, mean_V, draws))


@pytest.fixture(scope="module")
def found() -> Found:
    return found_in(trilogy_log(tied=True), TITLES, draws=20)


def findings(found: Found) -> list[str]:
    order = found.tests.order
    figures = {"found": found.tests, "titles": found.data.titles, "least": LEAST, "alpha": ALPHA}
    figures |= {"ends": {"earliest": order.most(-1, 10), "latest": order.most(1, 10)}}
    figures |= {"answer": SimpleNamespace(source=found.data), "study": SimpleNamespace(draws=20)}
    return Prose(["fig1.md.j2"], figures).paragraphs("findings")


def test_items_with_a_time_of_their_own_are_named_and_others_are_not(found: Found) -> None:
    assert found.tests.order.tested == ITEMS
    assert found.tests.order.most(-1, 5) == [0]
    assert found.tests.order.most(1, 5) == [2, 1]
    assert 3 <= found.tests.order.certain <= 4
    assert found.tests.shared is not None
    assert found.tests.shared.most(1, 1) == [2]
    assert found.tests.static is not None
    assert found.tests.static.most(-1, 5) == [0]
    assert found.tests.tied == pytest.approx(0.97, abs=0.03)


def test_the_papers_trilogies_are_drawn_where_the_log_has_them(found: Found) -> None:
    assert [group.items for group in found.data.groups] == [(0, 1, 2), (3,)]
    steps, shares = found.data.samples(found.data.groups[0])
    sequences = found.data.sequences
    mine = [u for u, item in zip(positions(sequences), sequences.item_N, strict=True) if item == 1]
    assert shares[1]["med"] == pytest.approx(np.median(mine))
    assert shares[1]["count"] == len(mine)
    places = [n for a, b in pairwise(sequences.offset_U1) for n, i in enumerate(sequences.item_N[a:b], 1) if i == 2]
    assert steps[2]["med"] == pytest.approx(np.median(places))
    assert steps[2]["whislo"] >= 1
    other = found_in(trilogy_log(), [f"film {n}" for n in range(ITEMS)], draws=0)
    assert [group.name for group in other.data.groups] == ["Earliest", "Latest"]
    assert other.tests.static is None
    assert other.tests.shared is None


def test_which_of_two_is_taken_first() -> None:
    histories = [[0, 1], [0, 2, 1], [1, 0], [0, 1], [1], [0, 0, 1]]
    times = [[1, 2], [1, 2, 3], [1, 2], [4, 4], [1], [1, 2, 2]]
    sequences = Sequences.of(log_of(histories, 3, times))
    both = pair(sequences, 0, 1)
    assert (both.later, both.earlier, both.together) == (3, 1, 1)
    assert both.share == 0.75
    assert both.p == pytest.approx(10 / 16)  # of four coins, three or more, or one or fewer, heads
    assert pair(sequences, 2, 2).share is None


def test_the_findings_follow_the_figures(found: Found) -> None:
    said = " ".join(findings(found))
    assert f"Of {ITEMS} items with at least 10 events, {found.tests.order.certain} (" in said
    assert "Earliest: Godfather, The (1972)" in said
    assert "Latest: Godfather: Part III" in said
    assert "neither early nor late" in said
    assert "“Godfather: Part II, The (1974)” after “Godfather, The (1972)” (sign test, p < 0.001" in said
    fair = found_in(log_of(drawn(6, 200, ITEMS, np.ones(ITEMS), (15, 35)), ITEMS), TITLES, draws=5)
    calm = " ".join(findings(fair))
    assert "10 events, 0 (0%) " in calm
    assert "Earliest" not in calm
    assert "No two events of a user share a timestamp" in calm
    again = found_in(log_of([[n % 5 for n in range(20)]] * 20, 5), TITLES[:5])
    assert "does not apply" in " ".join(findings(again))


def test_the_files(found: Found, tmp_path: Path) -> None:
    write_log(trilogy_log(tied=True), tmp_path / "a log.csv")
    (tmp_path / "titles.csv").write_text(
        "id,title\n" + "".join(f'{n:04d},"{title}"\n' for n, title in enumerate(TITLES))
    )
    study = Fig1(log=LogSource(str(tmp_path / "a log.csv")), titles=tmp_path / "titles.csv", draws=20)
    folder = tmp_path / "out"
    write(run(study, folder, Inline()), folder, ["unveil", "reproduce", "fig1", "a log.csv"])
    told = json.loads((folder / "results.json").read_text())
    assert told["command"] == "unveil reproduce fig1 'a log.csv'"
    assert told["tests"]["random_order"]["tested"] == ITEMS
    assert found.tests.static is not None
    assert told["tests"]["static_propensity_mean"] == found.tests.static.plain()
    assert told["groups"][0]["items"][1]["title"] == "Godfather: Part II, The (1974)"
    assert told["pairs"][0]["second"] == "0001"
    table = pl.read_csv(folder / "items.csv", schema_overrides={"item_id": pl.String})
    assert len(table) == ITEMS
    assert table["events"].is_sorted(descending=True)
    row = table.filter(pl.col("item_id") == "0002")
    assert row["order_z"][0] == pytest.approx(found.tests.order.z_V[2])
    page = (folder / "index.html").read_text()
    assert page.count("<svg") == 2 * 2 + 1
    assert faults(page) == []
    assert findings(found)[0] in (folder / "README.md").read_text()
    shares = pl.read_parquet(folder / "results.parquet").filter(pl.col("protocol") == "order")
    assert shares["value"].to_list() == [found.tests.order.certain / ITEMS]


def test_rare_items_are_told_and_not_tested() -> None:
    log = trilogy_log()
    few = log.where(np.flatnonzero((log.item != 7) | (log.user < 12)))
    found = found_in(few, TITLES, draws=0)
    assert found.tests.timing.count_V[7] < 10
    assert not found.tests.order.tested_V[7]
    table = item_table(found.data, found.tests)
    assert table.filter(pl.col("item_id") == "0007")["order_p"].item() is None
    with pytest.raises(
        UnveilError, match="no item has events enough to test: found 3, expected an item with 10 or more"
    ):
        found_in(log_of([[0, 1], [0, 1], [0, 2]], 3), ["a", "b", "c"])


def test_a_real_log(shared_data: Path) -> None:
    path = shared_data / "ml-100k"
    log = Interactions.read(path / "u.data")
    found = found_in(log, named_items(log.items, path / "u.item"), "Godfather", draws=0)
    assert [found.data.titles[item] for item in found.data.groups[0].items] == [
        "Godfather, The (1972)",
        "Godfather: Part II, The (1974)",
    ]
    assert found.data.pairs[0].later + found.data.pairs[0].earlier == 165
    assert found.data.pairs[0].share == pytest.approx(0.67, abs=0.005)
    assert found.tests.order.tested == 1152
    assert found.tests.order.certain == 372
    assert found.tests.tied == pytest.approx(0.758, abs=0.001)
    assert found.tests.by_popularity < -0.2
    assert "Popular items come early" in " ".join(findings(found))
