import sys
from pathlib import Path

import pytest

from unveil.data.fetch import check_no_repository, data_home
from unveil.errors import UnveilError


def test_the_environment_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNVEIL_DATA", str(tmp_path))
    assert data_home() == tmp_path


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {}, "{home}/.local/share/unveil"),
        ("linux", {"XDG_DATA_HOME": "/far/away"}, "/far/away/unveil"),
        ("linux", {"XDG_DATA_HOME": "not/absolute"}, "{home}/.local/share/unveil"),
        ("darwin", {}, "{home}/Library/Application Support/unveil"),
        ("win32", {"LOCALAPPDATA": "/c/local"}, "/c/local/unveil"),
        ("win32", {}, "{home}/AppData/Local/unveil"),
    ],
)
def test_each_platform_has_its_place(
    platform: str, variables: dict[str, str], expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    for name in ("UNVEIL_DATA", "XDG_DATA_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert str(data_home()) == expected.format(home=tmp_path)


@pytest.mark.parametrize("worktree", [False, True])
def test_a_repository_is_no_place_for_data(tmp_path: Path, worktree: bool) -> None:
    mark = tmp_path / "project" / ".git"
    mark.parent.mkdir()
    mark.write_text("gitdir: elsewhere") if worktree else mark.mkdir()
    with pytest.raises(UnveilError, match="not fetched into a source repository"):
        check_no_repository(tmp_path / "project" / "deep" / "inside")


def test_a_link_into_a_repository_is_seen_through(tmp_path: Path) -> None:
    (tmp_path / "project" / ".git").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "project")
    with pytest.raises(UnveilError, match="git working tree"):
        check_no_repository(tmp_path / "link" / "data")


def test_elsewhere_is_fine(tmp_path: Path) -> None:
    check_no_repository(tmp_path / "anywhere")
