import gzip
from pathlib import Path

import pytest

from unveil.data.indexing import Vocabulary
from unveil.data.titles import named_items, read_ids, read_titles
from unveil.errors import UnveilError

TITLES = [
    "Godfather, The (1972)",
    "Godfather: Part III, The (1990)",
    "Godfather: Part II, The (1974)",
    "Misérables, Les (1995)",
    "Back to the Future (1985)",
]
ITEMS = Vocabulary(["1", "2", "3", "4", "5"])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("movies.dat", "\n".join(f"{n}::{title}::Drama|War" for n, title in enumerate(TITLES, 1)).encode("latin-1")),
        (
            "u.item",
            "\n".join(f"{n}|{title}|01-Jan-1995||url|0|1" for n, title in enumerate(TITLES, 1)).encode("latin-1"),
        ),
        (
            "movies.csv",
            ("movieId,title,genres\n" + "\n".join(f'{n},"{t}",x' for n, t in enumerate(TITLES, 1))).encode(),
        ),
        ("items.tsv", ("Title\tyear\tItem ID\n" + "\n".join(f"{t}\t1\t{n}" for n, t in enumerate(TITLES, 1))).encode()),
        (
            "shop.csv",
            ("sku,brand name,Product Name\n" + "\n".join(f'{n},x,"{t}"' for n, t in enumerate(TITLES, 1))).encode(),
        ),
        ("bom.csv", ("\ufeffid;name\n" + "\n".join(f"{n};{t}" for n, t in enumerate(TITLES, 1))).encode()),
        ("movies.dat.gz", gzip.compress("\n".join(f"{n}::{t}::x" for n, t in enumerate(TITLES, 1)).encode("latin-1"))),
    ],
)
def test_the_files_that_data_sets_bring_along(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    assert named_items(ITEMS, tmp_path / name) == TITLES


def test_an_item_without_a_title_keeps_its_id_and_renumbered_logs_are_looked_up(tmp_path: Path) -> None:
    (tmp_path / "movies.dat").write_text("700::Heat (1995)::Action\n800::Sabrina (1995)::Comedy\n")
    (tmp_path / "ids.txt").write_text("1 800\n2 700\n3 5\n")
    assert named_items(ITEMS, tmp_path / "movies.dat", tmp_path / "ids.txt") == [
        "Sabrina (1995)",
        "Heat (1995)",
        "3",
        "4",
        "5",
    ]
    assert named_items(ITEMS, None) == ["1", "2", "3", "4", "5"]
    with pytest.raises(
        UnveilError,
        match=r"none of the log's items has a title: found 'items such as 1, 2, 3', expected ids "
        r"such as 700, 800.*--title-ids",
    ):
        named_items(ITEMS, tmp_path / "movies.dat")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "the file is empty"),
        ("a,b\n1,2\n", "no columns with ids and titles: found 'a, b'.*Call them item_id and title"),
        ("1::A::x\n2\n", "row 2: no title in the line"),
        ("id,title\n", "the file has no titles"),
    ],
)
def test_what_is_no_file_of_titles(content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "titles").write_text(content)
    with pytest.raises(UnveilError, match=message):
        read_titles(tmp_path / "titles")


def test_files_that_are_not_there_or_not_pairs(tmp_path: Path) -> None:
    with pytest.raises(UnveilError, match="cannot be read: No such file"):
        read_titles(tmp_path / "nothing")
    (tmp_path / "ids").write_text("1 2\n3\n")
    with pytest.raises(UnveilError, match="row 2: not a pair of ids"):
        read_ids(tmp_path / "ids")
    with pytest.raises(UnveilError, match="and no titles"):
        named_items(ITEMS, None, tmp_path / "ids")


def test_control_characters_have_no_place_on_a_page() -> None:
    items = Vocabulary(["a\x00b", "c\x1bd", "ém\u200d\xa0\u3042$"])
    assert named_items(items, None) == ["a�b", "c�d", "ém\u200d\xa0\u3042$"]


def test_a_quote_that_is_never_closed(tmp_path: Path) -> None:
    path = tmp_path / "titles.csv"
    path.write_text('id,title\n1,"open\n' + f"2,{'long' * 1000}\n" * 40)
    with pytest.raises(UnveilError, match=r"titles\.csv, row \d+: unreadable row: .* quote that is not closed"):
        read_titles(path)


def test_a_header_longer_than_any_field(tmp_path: Path) -> None:
    (tmp_path / "titles.csv").write_text(f"item_id,title,{'x' * (1 << 18)}\n1,One,\n")
    with pytest.raises(UnveilError, match=r"titles\.csv, row 1: unreadable row: field larger than field limit"):
        read_titles(tmp_path / "titles.csv")
