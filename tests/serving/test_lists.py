from pathlib import Path

import pytest

from tests.runs import Finished
from unveil.errors import UnveilError
from unveil.serving.lists import lists_for
from unveil.serving.recommender import Recommender


def test_a_history_is_ids_with_commas_between_them(finished: Finished) -> None:
    expected = Recommender.load(finished.folder).recommend_for([["001", "002"]], 3).frame.drop("user_id")
    assert lists_for(finished.folder, history=" 001 ,002,,", k=3).frame.equals(expected)


def test_a_history_of_nothing_is_a_new_users(finished: Finished) -> None:
    assert len(lists_for(finished.folder, history="", k=30).frame) == 30


@pytest.mark.parametrize("text", ["0003\n0001\n", "\ufeff0003\r\n\r\n 0001 \r\n"])
def test_a_file_of_users_has_one_a_line(text: str, finished: Finished, tmp_path: Path) -> None:
    (tmp_path / "users.txt").write_text(text, newline="")
    frame = lists_for(finished.folder, users=tmp_path / "users.txt", k=1).frame
    assert frame["user_id"].to_list() == ["0003", "0001"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\n \n", "the file is empty: expected one user id a line"),
        ("é".encode("latin-1"), "not text in UTF-8"),
        (None, "cannot be read: No such file"),
        (b"nobody\n", "none of the users is known"),
    ],
)
def test_a_file_that_names_nobody(content: bytes | None, message: str, finished: Finished, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "users.txt").write_bytes(content)
    with pytest.raises(UnveilError, match=message):
        lists_for(finished.folder, users=tmp_path / "users.txt")


def test_one_or_the_other(finished: Finished, tmp_path: Path) -> None:
    with pytest.raises(UnveilError, match="a history and a file of users were both given"):
        lists_for(finished.folder, history="001", users=tmp_path / "users.txt")
