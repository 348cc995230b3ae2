import re
from pathlib import Path

import pytest

from tests.docs import DOCS, ROOT, shown, table_rows
from website.messages import by_folder, in_text, messages

KNOWN = {re.sub("…+", "…", message.problem) for found in by_folder(ROOT / "src").values() for message in found}


def _quoted(text: str) -> list[str]:
    """What stands in the first column of tables of messages."""
    return [said for row in table_rows(text, "message") for said in re.findall(r"`([^`]+)`", row[0])]


@pytest.mark.parametrize("page", sorted((DOCS / "commands").glob("[!R]*.md")), ids=shown)
def test_messages_on_the_page_of_a_command_are_real(page: Path) -> None:
    quoted = _quoted(page.read_text(encoding="utf-8"))
    assert quoted
    assert set(quoted) <= KNOWN


def test_messages_on_the_page_of_trouble_are_real() -> None:
    quoted = _quoted((DOCS / "troubleshooting.md").read_text(encoding="utf-8"))
    assert len(quoted) > 50
    assert set(quoted) <= KNOWN


def test_a_message_is_read_off_the_source() -> None:
    (found,) = in_text('raise UnveilError(f"no {what} here", expected="one", hint=f"Name {what}" + " first.")')
    assert (found.problem, found.expected, found.hint) == ("no … here", "one", "Name … first.")


def test_a_range_is_read_off_the_source() -> None:
    (found,) = in_text('check_range(0 <= clip <= 1, f"{name}.clip", clip, "between 0 and 1")')
    assert (found.problem, found.expected) == ("out of range", "between 0 and 1")


def test_calls_of_others_are_no_messages() -> None:
    assert not in_text('ValueError("no")\nUnveilError(text)\nprint("x")')


def test_the_page_has_messages_by_folder(tmp_path: Path) -> None:
    for path, text in {
        "data/columns.py": 'UnveilError("no such column", expected="a|b", hint="Name it with --user-col.")',
        "cli/deep/er.py": 'unknown("preset", name, known)',
        "files.py": "UnveilError(f'cannot write: {why}')",
    }.items():
        (tmp_path / "unveil" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "unveil" / path).write_text(text)
    logs, commands, everywhere = messages(tmp_path).split("\n## ")[1:]
    assert logs.startswith("Reading logs")
    assert "| no such column | a\\|b | Name it with &#45;&#45;user-col. |" in logs
    assert commands.startswith("The command line")
    assert "| unknown preset |" in commands
    assert "| cannot write: … |" in everywhere
