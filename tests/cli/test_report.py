from pathlib import Path

from tests.cli.conftest import Command
from tests.run_folders import Finished, content


def test_a_report_of_one_run_and_what_is_refused(unveil: Command, finished: Finished, tmp_path: Path) -> None:
    arguments = ["report", finished.folder, "-o", tmp_path / "report", "--no-dial", "--users", "0001, 0002"]
    done = unveil(*arguments)
    assert done.code == 0, done.err
    assert "Among all items, run has an NDCG@10 of" in done.out.replace("\n", " ")
    assert f"open {tmp_path / 'report' / 'index.html'}" in done.out
    assert sorted(path.name for path in (tmp_path / "report").iterdir()) == [
        "figures",
        "index.html",
        "results.csv",
        "results.json",
    ]
    html = (tmp_path / "report" / "index.html").read_text()
    assert "User 0001: asked for" in html
    assert "Novelty against accuracy" not in html
    assert "not empty" in unveil(*arguments).failure()
    assert "not a run folder" in unveil("report", tmp_path, "-o", tmp_path / "x").failure()
    assert not (tmp_path / "x").exists()


def test_a_report_does_not_take_the_place_of_its_runs(unveil: Command, finished: Finished) -> None:
    before = content(finished.folder)
    for output in (finished.folder, finished.folder.parent):
        message = unveil("report", finished.folder, "-o", output, "--overwrite").failure()
        assert "the output folder holds what is read" in message
    assert content(finished.folder) == before
