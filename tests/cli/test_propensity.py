"""`unveil propensity fit` and `describe`, as they are typed."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.pages import faults
from tests.propensity.seen import impressions
from unveil.cli.main import app
from unveil.data.writers import write as write_log

SMALL = ["--set", "width=2", "--set", "epochs=2", "--set", "batch=256"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("propensity")
    write_log(impressions(each=3), place / "log.csv")
    done = CliRunner().invoke(app, ["propensity", "fit", str(place / "log.csv"), "-o", str(place / "learnt"), *SMALL])
    assert done.exit_code == 0, done.output
    assert "popularity: impressions, static" in done.output
    return place / "learnt"


def test_the_folder_holds_a_model_its_worth_and_a_page(folder: Path) -> None:
    assert {path.name for path in folder.iterdir()} == {
        "exposure.json",
        "factors.safetensors",
        "figures",
        "ids.json",
        "index.html",
    }
    about = json.loads((folder / "exposure.json").read_text())
    assert set(about["quality"]["learnt"]) == {"auc", "log_loss", "ece", "mass"}
    assert about["fit"]["learning"]["width"] == 2
    assert len(about["curves"]["learnt"]["predicted"]) > 3
    page = (folder / "index.html").read_text()
    assert faults(page) == []
    assert "calibration" in page.lower()
    assert "unbiased" not in page.lower()


def test_it_can_be_described_again(folder: Path) -> None:
    shown = CliRunner().invoke(app, ["propensity", "describe", str(folder)])
    assert shown.exit_code == 0
    assert "held-out days" in shown.output
    told = CliRunner().invoke(app, ["propensity", "describe", str(folder), "--json"])
    assert json.loads(told.output)["format"] == "unveil exposure 1"


def test_a_folder_in_the_way_is_not_buried(folder: Path) -> None:
    again = CliRunner().invoke(app, ["propensity", "fit", "nothing.csv", "-o", str(folder)])
    assert again.exit_code != 0
    assert "not empty" in str(again.exception)
