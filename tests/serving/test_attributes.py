from pathlib import Path

import numpy as np
import polars as pl
import pytest

from unveil.errors import UnveilError
from unveil.serving.attributes import Attributes

TEXT = "movieId,title,genre,year\n01,Alien,Horror|Sci-Fi,1979\n02,Fargo,Crime|Drama,1996\n03,Unknown,,\n"


@pytest.fixture
def films(tmp_path: Path) -> Attributes:
    (tmp_path / "films.csv").write_text(TEXT)
    return Attributes.read(tmp_path / "films.csv")


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        (["genre=Drama"], ["02"]),
        (["genre=Dram"], []),
        (["genre!=Drama"], ["01", "03"]),
        ([" year >= 1979 "], ["01", "02"]),
        (["year>1979"], ["02"]),
        (["year<=1979.0"], ["01"]),
        (["year<1979"], []),
        (["year>=1900", "genre=Sci-Fi"], ["01"]),
        (["title=Fargo"], ["02"]),
        ([], ["01", "02", "03"]),
    ],
)
def test_conditions(conditions: list[str], expected: list[str], films: Attributes) -> None:
    assert films.matching(conditions) == expected


SEVERAL = "item_id,genre,year\n1,Drama,1990\n2,Drama,2001\n1,Crime,1990\n3,Crime,\n2,Horror,1980\n4,,2005\n"


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        (["genre!=Drama"], ["3", "4"]),  # 1 and 2 have other rows too, and are dramas all the same
        (["genre!=Drama", "genre!=Crime"], ["4"]),
        (["genre=Drama"], ["1", "2"]),
        (["genre=Drama", "genre=Crime"], ["1"]),  # in different rows, as in one cell Crime|Drama
        (["genre=Drama", "genre!=Horror"], ["1"]),
        (["year>=2000"], ["2", "4"]),
        (["year>=2000", "year<2000"], ["2"]),
        (["year!=1990"], ["2", "3", "4"]),
        ([], ["1", "2", "3", "4"]),
    ],
)
def test_an_item_is_all_its_rows(conditions: list[str], expected: list[str], tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text(SEVERAL)
    assert Attributes.read(tmp_path / "items.csv").matching(conditions) == expected


@pytest.mark.parametrize(
    "text",
    [
        "sku;kind;price\n01;a,b;1\n02;c;2\n",  # as spreadsheets write it where the comma stands in numbers
        "Product ID,item_id_of_maker,kind\n01,x,a\n02,y,c\n",
        "id,item,kind\n01,cup,a\n02,pot,c\n",
        "Item ID,item_id,kind\n01,x,a\n02,y,c\n",
    ],
)
def test_ids_have_the_names_that_logs_know(text: str, tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text(text)
    assert Attributes.read(tmp_path / "items.csv").matching(["kind=c"]) == ["02"]


def test_rows_of_lists_are_taken_together(tmp_path: Path) -> None:
    frame = pl.DataFrame({"item_id": ["a", "a", "b"], "tags": [["x"], ["y", "z"], ["x"]], "price": [1.0, 5.0, None]})
    items = Attributes(frame)
    assert items.matching(["tags!=z"]) == ["b"]
    assert items.matching(["tags=x", "tags=z"]) == ["a"]
    assert items.matching(["price!=5"]) == ["b"]


def test_parquet_keeps_its_types(tmp_path: Path) -> None:
    frame = pl.DataFrame({"item_id": [7, 8], "tags": [["a", "b"], ["c"]], "price": [1.5, None]})
    frame.write_parquet(tmp_path / "items.parquet")
    items = Attributes.read(tmp_path / "items.parquet")
    assert items.matching(["tags=b"]) == ["7"]
    assert items.matching(["tags!=b"]) == ["8"]
    assert items.matching(["price=1.50"]) == ["7"]
    assert items.matching(["price<9"]) == ["7"]


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("genre", "not a condition: found 'genre', expected an attribute, a sign and a value"),
        ("=Drama", "not a condition"),
        ("gender=x", "unknown attribute: found 'gender', expected one of title, genre, year. Did you mean 'genre'?"),
        ("year>soon", "year>soon: not a number: found 'soon'"),
    ],
)
def test_conditions_that_mean_nothing(condition: str, message: str, films: Attributes) -> None:
    with pytest.raises(UnveilError) as error:
        films.matching([condition])
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("items.csv", b"name,genre\nx,y\n", "no column of item ids: found 'name, genre'.*Call it item_id"),
        ("items.xlsx", b"", "unknown kind of file: found '.xlsx'"),
        ("items.parquet", b"no", "not a whole Parquet file"),
        ("gone.csv", None, "cannot be read"),
    ],
)
def test_files_that_are_none(name: str, content: bytes | None, message: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UnveilError, match=message):
        Attributes.read(tmp_path / name)


def test_what_is_no_number_is_not_the_largest_one() -> None:
    ids = ["1", "2", "3"]
    for year in (pl.Series([1990.0, float("nan"), None]), pl.Series(["1990", "NaN", None])):
        assert Attributes(pl.DataFrame({"item_id": ids, "year": year})).matching(["year>=1980"]) == ["1"]


def test_lists_and_bytes_that_cannot_be_compared_are_told(tmp_path: Path) -> None:
    path = tmp_path / "items.parquet"
    pl.DataFrame({"item_id": ["a"], "genres": [["Drama"]], "raw": [b"\xff"]}).write_parquet(path)
    films = Attributes.read(path)
    for condition in ("genres>=1990", "raw=x"):
        with pytest.raises(UnveilError, match=f"^{condition}: values that cannot be compared"):
            films.matching([condition])
    pl.DataFrame({"item_id": [["a"]]}).write_parquet(path)
    with pytest.raises(UnveilError, match=r"column item_id: not ids: found 'List\(String\)'"):
        Attributes.read(path)


def test_a_damaged_parquet_file_is_one_message(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Polars gives up some of them in a panic, which no `except Exception` catches and of which its threads speak."""
    path, rng, refused = tmp_path / "items.parquet", np.random.default_rng(0), 0
    frame = pl.DataFrame({"item_id": [f"i{n % 977}" for n in range(3000)], "genre": [f"g{n % 7}" for n in range(3000)]})
    frame.write_parquet(path)
    whole = path.read_bytes()
    for _ in range(300):
        damaged = bytearray(whole)
        for place in rng.integers(len(damaged), size=3):
            damaged[place] = rng.integers(256)
        path.write_bytes(damaged)
        try:
            Attributes.read(path)
        except UnveilError as error:
            assert "\n" not in str(error)  # noqa: PT017
            refused += 1
    assert refused > 100
    assert capfd.readouterr().err == ""
