"""Storages that cannot be used: told at once, in one message."""

import json
from pathlib import Path

import optuna
import pytest

from unveil.errors import UnveilError
from unveil.runs.tune.storage import opened
from unveil.runs.tune.study_report import check_folder

LINE = '{"op_code": 0, "worker_id": "a", "study_name": "s", "directions": [2]}\n'


@pytest.mark.parametrize("url", ["s.db", "postgresql://me:secret@127.0.0.1:port/db", "postgresql://[::1/db"])
def test_what_is_no_url_of_a_database(url: str, tmp_path: Path) -> None:
    with pytest.raises(UnveilError, match="--storage: not a database URL") as told, opened(url, tmp_path):
        pass
    assert "secret" not in str(told.value)


@pytest.mark.parametrize(
    "text", ["null\n", "1\n", "[]\n", "{}\n", LINE + '{"op_code": 99, "worker_id": "a"}\n', "[" * 100_000 + "\n"]
)
def test_lines_that_optuna_never_wrote(text: str, tmp_path: Path) -> None:
    (tmp_path / "journal.log").write_text(text)
    with pytest.raises(UnveilError, match="the study's journal is damaged"), opened(None, tmp_path):
        pass


@pytest.mark.parametrize("content", [{}, {"study": "s"}])
def test_a_folder_that_does_not_say_where_its_study_is(content: object, tmp_path: Path) -> None:
    (tmp_path / "study.json").write_text(json.dumps(content))
    with pytest.raises(UnveilError, match=r"study\.json: does not say where the study is kept"):
        check_folder(tmp_path, "journal")


def test_half_a_line_that_a_full_disk_left_is_written_anew(tmp_path: Path) -> None:
    """Else the next line would stand right behind it, and nobody could read the study any more."""
    path = tmp_path / "journal.log"
    with opened(None, tmp_path) as storage:
        study = optuna.create_study(storage=storage, study_name="s")
        study.set_user_attr("first", 1)
    whole = path.read_bytes()
    path.write_bytes(whole + whole[: len(whole) // 3])
    with opened(None, tmp_path) as storage:
        again = optuna.load_study(storage=storage, study_name="s")
        again.set_user_attr("second", 2)
    assert path.read_bytes().startswith(whole)
    with opened(None, tmp_path) as storage:
        assert optuna.load_study(storage=storage, study_name="s").user_attrs == {"first": 1, "second": 2}


def test_a_journal_that_is_damaged_while_it_is_used(tmp_path: Path) -> None:
    with pytest.raises(UnveilError, match="the study's journal is damaged"), opened(None, tmp_path) as storage:
        study = optuna.create_study(storage=storage, study_name="s")
        with (tmp_path / "journal.log").open("a") as journal:
            journal.write("{half\n{}\n")
        study.set_user_attr("first", 1)
