"""A study of fifty lines has resume, workers, Ray, a page, CSV, JSON, Parquet and README for free."""

import csv
import json
from pathlib import Path

import polars as pl
import pytest

from tests.studies.test_cells import Counting
from tests.studies.toy import Toy
from unveil.cli.terminal import print_report
from unveil.errors import UnveilError
from unveil.runs.workers import Engine, Inline, Processes
from unveil.studies.cells import Interrupted
from unveil.studies.engine import Report, run, write
from unveil.studies.results import frame_of

COMMAND = ["unveil", "toy"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("toy") / "run"
    write(run(Toy(), made, Inline()), made, COMMAND)
    return made


def test_a_stopped_study_goes_on_where_it_was_and_may_grow(tmp_path: Path) -> None:
    first, second, third = Counting(interrupted_at=4), Counting(), Counting()
    with pytest.raises(Interrupted, match="4 of 18 cells are done and kept"):
        run(Toy(), tmp_path, first)
    answer = run(Toy(), tmp_path, second)
    assert (len(first.asked), len(second.asked), answer.made) == (4, 14, 14)
    assert run(Toy(levels=(1.0, 2.0, 3.0)), tmp_path, third).made == 9
    with pytest.raises(UnveilError, match=r"cells\.seed was 0 and is now 7"):
        run(Toy(seed=7), tmp_path, Inline())


def test_cells_are_copied_from_a_folder_of_the_same_study(folder: Path, tmp_path: Path) -> None:
    assert run(Toy(replicates=4), tmp_path / "more", Inline(), copy_from=folder).made == 6


def test_every_engine_gives_the_same_files(folder: Path, tmp_path: Path) -> None:
    same_everywhere(folder, tmp_path, Processes(2))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_ray_gives_the_same_files(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'unveil[ray]'")
    from unveil.runs.on_ray import OnRay

    same_everywhere(folder, tmp_path, OnRay(cores=1))


def same_everywhere(folder: Path, other: Path, engine: Engine) -> None:
    write(run(Toy(), other, engine), other, COMMAND)
    for name in ("results.json", "results.csv", "results.parquet", "index.html"):
        assert (folder / name).read_bytes() == (other / name).read_bytes(), name


def test_figures_are_in_every_file(folder: Path) -> None:
    found = json.loads((folder / "results.json").read_text())
    assert found["question"] == "toy"
    assert found["study"] == {"seed": 0}
    assert found["levels"] == [1.0, 2.0]
    assert found["gap_closed"] == pytest.approx(0.5)
    rows = list(csv.DictReader((folder / "results.csv").read_text().splitlines()))
    assert len(rows) == len(found["rows"]) == 6
    assert float(rows[1]["mean"]) == pytest.approx(1.2)
    frame = pl.read_parquet(folder / "results.parquet")
    assert frame.columns[0] == "level"
    assert len(frame) == 18
    assert json.loads((folder / "about.json").read_text())["cells"] == 18


def test_the_template_decides_what_is_said_and_shown(folder: Path) -> None:
    readme, page = (folder / "README.md").read_text(), (folder / "index.html").read_text()
    assert readme.startswith("# How high is it?\n\nITPS closes 50% of the gap.\n\nIt is 1.200 [0.703, 1.697] high.")
    assert "| ITPS | 1.2000\\* [0.7032, 1.6968] |" in readme
    for piece in ("Along the levels", "Higher and higher", "note warning", "this is a toy.", "unveil toy"):
        assert piece in page
    assert (folder / "figures" / "band-full-height-0.svg").is_file()


def test_an_unknown_name_in_a_template_is_an_error(folder: Path) -> None:
    class Wrong(Toy):
        template = "\n{% block findings %}{{ nowhere }}{% endblock %}"

    with pytest.raises(Exception, match="'nowhere' is undefined"):
        Report(run(Wrong(), folder, Inline())).readme()


def test_the_terminal_shows_tables_and_findings(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    print_report(Report(run(Toy(), folder, Inline()), "unveil toy"), folder)
    shown = capsys.readouterr().out
    assert "Heights at level 1" in shown
    assert "ITPS closes 50% of the gap." in shown
    assert "index.html" in shown


def test_a_frame_has_every_column() -> None:
    frame = frame_of([{"metric": "height", "value": 1.0, "estimator": "naive"}])
    assert frame.columns == [
        "estimator", "world", "replicate", "user", "evaluation", "protocol", "metric", "k", "value",
    ]  # fmt: skip
