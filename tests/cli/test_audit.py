"""`unveil audit` as it is typed."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.audit.logs import generated
from unveil.cli.main import app
from unveil.errors import UnveilError

RUN = CliRunner()


@pytest.fixture(scope="module")
def csv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("log") / "log.csv"
    generated(users=60).to_frame().rename({"user": "user_id", "item": "item_id", "time": "timestamp"}).write_csv(path)
    return path


def test_a_verdict_five_figures_and_a_page(csv: Path, tmp_path: Path) -> None:
    page, titles = tmp_path / "audit.html", tmp_path / "titles.csv"
    titles.write_text("id,title\n" + "".join(f"{n:04d},Film {n}\n" for n in range(60)))
    asked = ["audit", str(csv), "-o", str(page), "--min-item", "2", "--titles", str(titles)]
    done = RUN.invoke(app, asked, catch_exceptions=False)
    assert done.exit_code == 0
    assert "This log says what users took" in " ".join(done.output.split())
    assert "Warning Only popularity can stand in for exposure" in " ".join(done.output.split())
    assert f"open {page}" in done.output
    assert json.loads(page.with_suffix(".json").read_text())["log"]["users"] == 60
    assert "log.csv: " in page.read_text()
    assert "Film " in page.read_text()
    with pytest.raises(UnveilError, match="there already"):
        RUN.invoke(app, ["audit", str(csv), "-o", str(page)], catch_exceptions=False)


@pytest.mark.parametrize("content", ["", "user_id,item_id,timestamp\n"])
def test_an_empty_file_is_refused_and_nothing_is_written(content: str, tmp_path: Path) -> None:
    log, page = tmp_path / "log.csv", tmp_path / "audit.html"
    log.write_text(content)
    with pytest.raises(UnveilError):
        RUN.invoke(app, ["audit", str(log), "-o", str(page)], catch_exceptions=False)
    assert list(tmp_path.iterdir()) == [log]
