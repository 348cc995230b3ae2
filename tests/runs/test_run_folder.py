"""The files of a run that nobody but us should write, and somebody did."""

from pathlib import Path

import pytest

from unveil.errors import UnveilError
from unveil.runs.config import Experiment
from unveil.runs.run_folder import ABOUT, check_same, read_json
from unveil.studies.cells import Store


@pytest.mark.parametrize("text", ["{}", "[]", '{"log": null}', '{"log": {"events": 3}}'])
def test_a_run_that_does_not_say_its_log_is_not_resumed(text: str, tmp_path: Path) -> None:
    (tmp_path / ABOUT).write_text(text)
    with pytest.raises(UnveilError, match=r"about\.json: does not say which log the run began with"):
        check_same(tmp_path, Experiment(), "abc", None)


@pytest.mark.parametrize("text", ["", "null", "3", "{", "[" * 100_000, "[1]"])
def test_what_is_no_object_is_told(text: str, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(text)
    for read in (lambda: read_json(path), Store(tmp_path, {}).open):
        with pytest.raises(UnveilError, match=r"run\.json: cannot be read"):
            read()
