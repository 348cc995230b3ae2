from pathlib import Path

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
        ("items.csv", b"name,genre\nx,y\n", "no column of item ids: found 'name, genre'"),
        ("items.xlsx", b"", "unknown kind of file: found '.xlsx'"),
        ("items.parquet", b"no", "cannot be read"),
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
