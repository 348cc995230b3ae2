"""Commands without options of reading: a hint that names one says which command has it."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from unveil.cli.main import app
from unveil.data.interactions import Interactions
from unveil.data.readers import convert_first
from unveil.errors import UnveilError

SAID = "Convert the log first and name the new file here: `unveil data convert {} -o converted.csv` has the options"


@pytest.fixture
def strange(tmp_path: Path) -> Path:
    path = tmp_path / "our log.csv"
    path.write_text("buyer_id,what\na,x\nb,y\n")
    return path


def test_a_hint_that_names_an_option_of_reading_leads_to_the_command_that_has_it(strange: Path) -> None:
    with pytest.raises(UnveilError) as refused, convert_first(strange):
        Interactions.read(strange)
    said = str(refused.value)
    assert said.startswith(f"{strange}: no user column among 'buyer_id', 'what': expected 'user_id'")
    assert SAID.format(f"'{strange}'") in said
    assert said.endswith("Perhaps --user-col 'buyer_id'? Name it with --user-col, or the file's format with --format.")


@pytest.mark.parametrize("hint", [None, "Check the file.", "Lower --min-item and --min-user."])
def test_any_other_error_is_left_as_it_is(hint: str | None) -> None:
    error = UnveilError("no rows", hint=hint)
    with pytest.raises(UnveilError) as refused, convert_first("log.csv"):
        raise error
    assert refused.value is error


@pytest.mark.parametrize("question", ["rq1", "rq4", "beyond", "recipe", "assumptions"])
def test_questions_name_no_option_that_they_lack(question: str, strange: Path, tmp_path: Path) -> None:
    words = ["reproduce", question, "--data", str(strange), "-o", str(tmp_path / "run")]
    refused = CliRunner().invoke(app, words).exception
    assert isinstance(refused, UnveilError)
    assert SAID.format(f"'{strange}'") in str(refused)
