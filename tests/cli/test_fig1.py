"""`unveil reproduce fig1` on files in the form of ml-1m's."""

from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import Command
from tests.studies.test_fig1 import TITLES, trilogy_log


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """ratings.dat, movies.dat (latin-1), and the pairs of ids of a log that was renumbered."""
    folder, log = tmp_path_factory.mktemp("ml"), trilogy_log(tied=True)
    assert log.time is not None
    rows = zip(log.user + 1, 1000 + log.item, 970_000_000 + log.time // 1_000_000, strict=True)
    lines = [f"{user}::{item}::4::{time}" for user, item, time in rows]
    (folder / "ratings.dat").write_text("\n".join(np.random.default_rng(0).permutation(lines)) + "\n")
    titles = [*TITLES[:-1], "Misérables, Les (1995)"]
    movies = [f"{1000 + n}::{title}::Drama" for n, title in enumerate(titles)]
    (folder / "movies.dat").write_bytes(("\n".join(movies) + "\n").encode("latin-1"))
    return folder


def test_from_the_papers_files_to_a_page(data: Path, unveil: Command, tmp_path: Path) -> None:
    arguments = ["reproduce", "fig1", data / "ratings.dat", "--titles", data / "movies.dat", "-o", tmp_path / "fig1"]
    done = unveil(*arguments, "--draws", 3)
    assert done.code == 0, done.err
    assert "Godfather: Part III, The (1990)" in done.out
    assert f"open {tmp_path / 'fig1' / 'index.html'}" in done.out
    assert sorted(path.name for path in (tmp_path / "fig1").iterdir()) == [
        "README.md",
        "figures",
        "index.html",
        "items.csv",
        "results.json",
    ]
    assert "not empty" in unveil(*arguments).failure()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--items", "Godfahter"], "The nearest titles: Godfather"),
        (["--titles", "nowhere.dat"], "nowhere.dat: cannot be read"),
        (["--title-ids", "nowhere.txt"], "nowhere.txt: cannot be read"),
        (["--min-item", "100000"], "no events"),
    ],
)
def test_what_is_refused(arguments: list[str], message: str, data: Path, unveil: Command, tmp_path: Path) -> None:
    known = ["--titles", data / "movies.dat"] if "--titles" not in arguments else []
    failure = unveil("reproduce", "fig1", data / "ratings.dat", "-o", tmp_path / "fig1", *known, *arguments).failure()
    assert message in failure
    assert not (tmp_path / "fig1").exists()
