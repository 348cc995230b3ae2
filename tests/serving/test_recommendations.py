from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from tests.run_folders import Finished
from unveil.data.filters import LogSource
from unveil.errors import UnveilError
from unveil.serving.recommendations import COLUMNS, ListRequest, recommend_all, recommendations
from unveil.serving.recommender import Recommender


def test_a_history_is_ids_with_commas_between_them(finished: Finished) -> None:
    expected = Recommender.load(finished.folder).recommend_for([["001", "002"]], 3).frame.drop("user_id")
    assert recommendations(finished.folder, ListRequest(history=" 001 ,002,,", k=3)).frame.equals(expected)


def test_an_id_with_a_comma_stands_in_quotes(finished: Finished) -> None:
    with pytest.raises(UnveilError, match="found '07, b 1'"):
        recommendations(finished.folder, ListRequest(history="07,b 1"))
    expected = recommendations(finished.folder, ListRequest(history="001,002", k=3)).frame
    for history in ('"07,b 1", "001",002', "001\n002\r\n", '001,"002'):
        lists = recommendations(finished.folder, ListRequest(history=history, k=3))
        assert lists.frame.equals(expected)
        assert lists.unknown_items == (("07,b 1",) if "07" in history else ())
    with pytest.raises(UnveilError, match="the history: not ids with commas between them"):
        recommendations(finished.folder, ListRequest(history="x" * 200_000))


def test_a_history_of_nothing_is_a_new_users(finished: Finished) -> None:
    assert len(recommendations(finished.folder, ListRequest(history="", k=30)).frame) == 30


@pytest.mark.parametrize("text", ["0003\n0001\n", "\ufeff0003\r\n\r\n 0001 \r\n"])
def test_a_file_of_users_has_one_a_line(text: str, finished: Finished, tmp_path: Path) -> None:
    (tmp_path / "users.txt").write_text(text, newline="")
    frame = recommendations(finished.folder, ListRequest(users=tmp_path / "users.txt", k=1)).frame
    assert frame["user_id"].to_list() == ["0003", "0001"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\n \n", "the file is empty: expected one user id per line"),
        ("é".encode("latin-1"), "not text in UTF-8"),
        (None, "cannot be read: No such file"),
        (b"nobody\n", "none of the users is known"),
    ],
)
def test_a_file_that_names_nobody(content: bytes | None, message: str, finished: Finished, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "users.txt").write_bytes(content)
    with pytest.raises(UnveilError, match=message):
        recommendations(finished.folder, ListRequest(users=tmp_path / "users.txt"))


def test_one_or_the_other(tmp_path: Path) -> None:
    with pytest.raises(UnveilError, match="history and users were both given"):
        ListRequest(history="001", users=tmp_path / "users.txt")


def test_the_lists_of_everybody_are_written_as_they_are_made(finished: Finished, tmp_path: Path) -> None:
    path = tmp_path / "lists.parquet"
    assert recommend_all(finished.folder, ListRequest(k=3, reasons=2), path) == 3 * 40
    whole = recommendations(finished.folder, ListRequest(k=3, reasons=2)).frame
    assert_frame_equal(pl.read_parquet(path), whole)
    assert whole.columns == ["user_id", "item_id", "score", "rank", *COLUMNS]
    assert whole["reasons"].str.count_matches(r"0\d\d [×÷] \d").to_list() == [2] * len(whole)


def test_strangers_get_what_is_popular_where_that_is_asked_for(finished: Finished, tmp_path: Path) -> None:
    (tmp_path / "users.txt").write_text("ghost\n0003\n")
    lists = recommendations(finished.folder, ListRequest(users=tmp_path / "users.txt", k=2, fallback=True))
    assert lists.frame["user_id"].to_list() == ["0003", "0003", "ghost", "ghost"]
    assert (lists.fallback_users, lists.unknown_users) == (("ghost",), ())
    best = max(range(30), key=lambda v: (finished.run.recommender.count_V[v], -v))
    assert lists.frame["item_id"][2] == f"0{best:02d}"
    assert lists.frame["fallback"].to_list() == [None, None, "popularity", "popularity"]
    after = recommendations(finished.folder, ListRequest(history="x,y", k=2, fallback=True))
    assert after.frame["item_id"].to_list() == lists.frame["item_id"].to_list()[2:]
    assert (after.unknown_items, after.fallback_users) == (("x", "y"), ("",))
    assert after.frame["fallback"].to_list() == ["popularity"] * 2
    assert recommendations(finished.folder, ListRequest(history="001", k=1, fallback=True)).frame[
        "fallback"
    ].to_list() == [None]
    everybody = ListRequest(k=1, fallback=True, reasons=1)
    recommend_all(finished.folder, everybody, tmp_path / "all.parquet")
    assert_frame_equal(pl.read_parquet(tmp_path / "all.parquet"), recommendations(finished.folder, everybody).frame)


def test_only_strangers(finished: Finished, tmp_path: Path) -> None:
    (tmp_path / "users.txt").write_text("ghost\n")
    lists = recommendations(finished.folder, ListRequest(users=tmp_path / "users.txt", k=1, fallback=True, reasons=1))
    assert lists.frame["user_id"].to_list() == ["ghost"]
    assert lists.frame["reasons"].to_list() == [""]


def test_candidates_exclusions_and_conditions(finished: Finished, tmp_path: Path) -> None:
    (tmp_path / "some.txt").write_text("001\n002\n003\n004\nstranger\n")
    (tmp_path / "not.txt").write_text("003\n")
    (tmp_path / "items.csv").write_text("item_id,kind\n001,a\n002,b\n003,b\n004,b\n")
    asked = ListRequest(
        history="001",
        k=9,
        filter_seen=False,
        candidates=tmp_path / "some.txt",
        exclude=tmp_path / "not.txt",
        items=tmp_path / "items.csv",
        where=["kind=b"],
    )
    assert set(recommendations(finished.folder, asked).frame["item_id"]) == {"002", "004"}
    told: list[str] = []
    recommendations(finished.folder, replace(asked, warn=told.append))
    assert told == ["unknown candidates skipped (1 of 5): stranger"]
    with pytest.raises(UnveilError, match="conditions need item attributes"):
        ListRequest(where=["kind=b"])
    (tmp_path / "some.txt").write_text("stranger\n")
    with pytest.raises(UnveilError, match="no item is left to recommend"):
        recommendations(finished.folder, asked)


def test_novelty_lists_what_is_less_popular(finished: Finished) -> None:
    recommender = finished.run.recommender

    def popularity(novelty: float) -> float:
        frame = recommendations(finished.folder, ListRequest(k=5, novelty=novelty)).frame
        return float(recommender.count_V[recommender.items.index(frame["item_id"])].mean())

    assert popularity(0.0) > popularity(0.5) > popularity(1.0)


def test_a_file_of_histories_gives_a_list_for_each_of_them(finished: Finished, tmp_path: Path) -> None:
    path = tmp_path / "sessions.csv"
    path.write_text(
        "user_id,item_id,timestamp\nnew,002,2\nnew,001,1\n0003,005,1\nnew,stranger,3\nghost,stranger,1\n0003,006,2\n"
    )
    recommender = Recommender.load(finished.folder)
    expected = recommender.recommend_for([["005", "006"], ["001", "002"]], recommender.choice(3, novelty=0.4)).frame
    asked = ListRequest(histories=LogSource(str(path)), k=3, novelty=0.4, reasons=1)
    lists = recommendations(finished.folder, asked)
    assert lists.frame["user_id"].to_list() == ["0003"] * 3 + ["new"] * 3
    assert_frame_equal(lists.frame.select("item_id", "score", "rank"), expected.drop("user_id"))
    assert (lists.unknown_items, lists.unknown_users) == (("stranger",), ("ghost",))
    share = recommender.count_V / recommender.count_V.sum()
    assert lists.frame["popularity"].to_list() == [share[int(item)] for item in lists.frame["item_id"]]
    assert set(lists.frame["reasons"].str.slice(0, 3)) <= {"001", "002", "005", "006"}
    both = recommendations(finished.folder, replace(asked, fallback=True))
    assert both.fallback_users == ("ghost",)
    assert both.frame["user_id"].to_list()[-3:] == ["ghost"] * 3


def test_histories_are_read_as_logs_are(finished: Finished, tmp_path: Path) -> None:
    """Also with columns that have to be named; `unveil recommend` has the options."""
    path = tmp_path / "sessions.csv"
    path.write_text("kunde;artikel;am\nnew;001;1\nnew;002;2\n")
    columns = {"user": "kunde", "item": "artikel", "time": "am"}
    lists = recommendations(finished.folder, ListRequest(histories=LogSource(str(path), columns=columns), k=3))
    expected = recommendations(finished.folder, ListRequest(history="001,002", k=3)).frame
    assert lists.frame.drop("user_id").equals(expected)


def test_a_file_of_histories_that_nobody_knows(finished: Finished, tmp_path: Path) -> None:
    path = tmp_path / "sessions.csv"
    path.write_text("user_id,item_id,timestamp\na,x,1\nb,y,2\n")
    with pytest.raises(UnveilError, match="no item of the histories is known: found 'x, y'"):
        recommendations(finished.folder, ListRequest(histories=LogSource(str(path))))
    lists = recommendations(finished.folder, ListRequest(histories=LogSource(str(path)), k=1, fallback=True))
    assert (lists.frame["user_id"].to_list(), lists.fallback_users) == (["a", "b"], ("a", "b"))
    with pytest.raises(UnveilError, match="history and histories were both given"):
        ListRequest(histories=LogSource(str(path)), history="001")
