import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.audit.small import drawn, log_of
from tests.pages import faults
from unveil.audit.timing import positions
from unveil.data.interactions import Interactions, Sequences
from unveil.data.titles import named_items
from unveil.errors import UnveilError
from unveil.studies.fig1 import Fig1, fig1, prose, samples, write
from unveil.studies.fig1_items import pair

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


@pytest.fixture(scope="module")
def found() -> Fig1:
    return fig1(trilogy_log(tied=True), TITLES, draws=20)


def findings(found: Fig1) -> list[str]:
    return prose(found).paragraphs("findings")


def test_items_with_a_time_of_their_own_are_named_and_others_are_not(found: Fig1) -> None:
    assert found.order.tested == ITEMS
    assert found.order.most(-1, 5) == [0]
    assert found.order.most(1, 5) == [2, 1]
    assert 3 <= found.order.certain <= 4
    assert found.shared is not None
    assert found.shared.most(1, 1) == [2]
    assert found.static is not None
    assert found.static.most(-1, 5) == [0]
    assert found.tied == pytest.approx(0.97, abs=0.03)


def test_the_papers_trilogies_are_drawn_where_the_log_has_them(found: Fig1) -> None:
    assert [group.items for group in found.groups] == [(0, 1, 2), (3,)]
    steps, shares = samples(found, found.groups[0])
    sequences = found.sequences
    mine = [u for u, item in zip(positions(sequences), sequences.item_N, strict=True) if item == 1]
    assert shares[1]["med"] == pytest.approx(np.median(mine))
    assert shares[1]["count"] == len(mine)
    places = [n for a, b in pairwise(sequences.offset_U1) for n, i in enumerate(sequences.item_N[a:b], 1) if i == 2]
    assert steps[2]["med"] == pytest.approx(np.median(places))
    assert steps[2]["whislo"] >= 1
    other = fig1(trilogy_log(), [f"film {n}" for n in range(ITEMS)], draws=0)
    assert [group.name for group in other.groups] == ["Earliest", "Latest"]
    assert other.static is None
    assert other.shared is None


def test_which_of_two_is_taken_first() -> None:
    histories = [[0, 1], [0, 2, 1], [1, 0], [0, 1], [1], [0, 0, 1]]
    times = [[1, 2], [1, 2, 3], [1, 2], [4, 4], [1], [1, 2, 2]]
    sequences = Sequences.of(log_of(histories, 3, times))
    both = pair(sequences, 0, 1)
    assert (both.later, both.earlier, both.together) == (3, 1, 1)
    assert both.share == 0.75
    assert both.p == pytest.approx(10 / 16)  # of four coins, three or more, or one or fewer, heads
    assert pair(sequences, 2, 2).share is None


def test_the_findings_follow_the_figures(found: Fig1) -> None:
    said = " ".join(findings(found))
    assert f"Of {ITEMS} items with at least 10 events, {found.order.certain} (" in said
    assert "Earliest: Godfather, The (1972)" in said
    assert "Latest: Godfather: Part III" in said
    assert "neither early nor late" in said
    assert "“Godfather: Part II, The (1974)” after “Godfather, The (1972)” (sign test, p < 0.001" in said
    fair = fig1(log_of(drawn(6, 200, ITEMS, np.ones(ITEMS), (15, 35)), ITEMS), TITLES, draws=5)
    calm = " ".join(findings(fair))
    assert "10 events, 0 (0%) " in calm
    assert "Earliest" not in calm
    assert "No two events of a user share a timestamp" in calm
    again = fig1(log_of([[n % 5 for n in range(20)]] * 20, 5), TITLES[:5])
    assert "does not apply" in " ".join(findings(again))


def test_the_files(found: Fig1, tmp_path: Path) -> None:
    write(found, tmp_path, ["unveil", "reproduce", "fig1", "a log.csv"])
    told = json.loads((tmp_path / "results.json").read_text())
    assert told["command"] == "unveil reproduce fig1 'a log.csv'"
    assert told["tests"]["random_order"]["tested"] == ITEMS
    assert told["groups"][0]["items"][1]["title"] == "Godfather: Part II, The (1974)"
    assert told["pairs"][0]["second"] == "0001"
    table = pl.read_csv(tmp_path / "items.csv", schema_overrides={"item_id": pl.String})
    assert len(table) == ITEMS
    assert table["events"].is_sorted(descending=True)
    row = table.filter(pl.col("item_id") == "0002")
    assert row["order_z"][0] == pytest.approx(found.order.z_V[2])
    page = (tmp_path / "index.html").read_text()
    assert page.count("<svg") == 2 * 2 + 1
    assert faults(page) == []
    assert told["findings"][0] in (tmp_path / "README.md").read_text()


def test_rare_items_are_told_and_not_tested() -> None:
    log = trilogy_log()
    few = log.where(np.flatnonzero((log.item != 7) | (log.user < 12)))
    found = fig1(few, TITLES, draws=0)
    assert found.timing.count_V[7] < 10
    assert not found.order.tested_V[7]
    assert found.table().filter(pl.col("item_id") == "0007")["order_p"].item() is None
    with pytest.raises(
        UnveilError, match="no item has events enough to test: found 3, expected an item with 10 or more"
    ):
        fig1(log_of([[0, 1], [0, 1], [0, 2]], 3), ["a", "b", "c"])


def test_a_real_log(shared_data: Path) -> None:
    path = shared_data / "ml-100k"
    log = Interactions.read(path / "u.data")
    found = fig1(log, named_items(log.items, path / "u.item"), "Godfather", draws=0)
    assert [found.titles[item] for item in found.groups[0].items] == [
        "Godfather, The (1972)",
        "Godfather: Part II, The (1974)",
    ]
    assert found.pairs[0].later + found.pairs[0].earlier == 165
    assert found.pairs[0].share == pytest.approx(0.67, abs=0.005)
    assert found.order.tested == 1152
    assert found.order.certain == 372
    assert found.tied == pytest.approx(0.758, abs=0.001)
    assert found.by_popularity < -0.2
    assert "Popular items come early" in " ".join(findings(found))
