"""`unveil theory`: prints tables with their verdicts, writes files where asked, refuses what makes no sense."""

from pathlib import Path

from tests.cli.conftest import Command


def test_it_prints_claims_and_verdicts_and_writes_the_page(unveil: Command, tmp_path: Path) -> None:
    done = unveil("theory", "--draws", 2, "--severity", 2, "--seed", 3, "-o", tmp_path / "out")
    assert done.code == 0, done.err
    said = " ".join(done.out.split())
    for part in ("does not hold", "Proposition 3", "corrected", "drawn logs"):
        assert part in said
    assert (tmp_path / "out" / "index.html").exists()
    assert '"severity": 2.0' in (tmp_path / "out" / "results.json").read_text()
    assert "belongs to another run" in unveil("theory", "--draws", 2, "-o", tmp_path / "out").failure()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "mine.txt").write_text("mine")
    assert "holds something else" in unveil("theory", "--draws", 2, "-o", tmp_path / "mine").failure()


def test_overwriting_keeps_the_old_results_until_the_new_are_there(unveil: Command, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    assert unveil("theory", "--draws", 2, "-o", folder).code == 0
    before = (folder / "results.json").read_bytes()
    assert unveil("theory", "--severity", 0, "-o", folder, "--overwrite").code == 2
    assert (folder / "results.json").read_bytes() == before
    assert unveil("theory", "--draws", 3, "-o", folder, "--overwrite").code == 0
    assert (folder / "results.json").read_bytes() != before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]


def test_a_severity_of_nothing_is_refused(unveil: Command) -> None:
    assert (
        "the severity is out of range: found 0.0, expected a number above 0"
        in unveil("theory", "--severity", 0).failure()
    )
