import re
import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import typer

from tests.docs import DOCS, ROOT, blocks, pages, shown, spans
from unveil.cli.main import app
from unveil.errors import UnveilError
from unveil.runs.config import Experiment
from unveil.settings import parsed
from website.commands import MARK, commands, page_of, table

COMMANDS = commands()
UNVEIL = typer.main.get_command(app)
GROUPS = {" ".join(words.split()[:-1]) for words in COMMANDS} | {""}
ENDS = {"&", "&&", "|", ">", ";"}


def _lines(page: Path) -> list[str]:
    """The command lines in a page's blocks of code, continued ones joined."""
    text = "\n".join(block.body for block in blocks(page.read_text(encoding="utf-8")) if block.language != "python")
    joined = re.sub(r"\\\n\s*", "", text)
    found = (re.search(r"(?:^\s*|-m )(unveil .+)", line) for line in joined.splitlines())
    return [match[1] for match in found if match]


def _arguments(line: str) -> list[str]:
    """The words after `unveil`, without a comment and what the shell does next."""
    words = shlex.split(line, comments=True)[1:]
    stop = next((place for place, word in enumerate(words) if word in ENDS), len(words))
    return words[:stop]


def _refusal(arguments: list[str]) -> str:
    """What the real command line has against these arguments; nothing is run."""
    command: Any = UNVEIL
    context = None
    try:
        while True:
            context = command.make_context(command.name or "unveil", arguments, parent=context)
            if not hasattr(command, "commands"):
                return ""
            _, command, arguments = command.resolve_command(context, [*context._protected_args, *context.args])
    except typer.Exit:  # --help, --version
        return ""
    except Exception as error:  # whatever it raises is a refusal
        return str(getattr(error, "message", error)) or "a group of commands alone"


@pytest.mark.parametrize("page", [page for page in pages() if _lines(page)], ids=shown)
def test_every_command_line_is_understood(page: Path) -> None:
    refused = {line: said for line in _lines(page) if "…" not in line and (said := _refusal(_arguments(line)))}
    assert not refused


def _unknown_settings(line: str) -> str:
    """What is wrong with the settings of a training that a command line asks for."""
    words = _arguments(line)
    given = dict(parsed(value) for option, value in pairwise(words) if option == "--set")
    named = {"-e": "estimator.name", "--estimator": "estimator.name", "--model": "model.name"}
    given |= {named[option]: value for option, value in pairwise(words) if option in named}
    try:
        Experiment.of("quick", given)
    except UnveilError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("page", [page for page in pages() if page.name != "extending.md"], ids=shown)
def test_settings_of_trainings_exist(page: Path) -> None:
    trainings = [line for line in _lines(page) if line.startswith("unveil train ") and "…" not in line]
    assert not {line: said for line in trainings if (said := _unknown_settings(line))}


def test_a_setting_that_does_not_exist_is_seen() -> None:
    assert "model.wdith" in _unknown_settings("unveil train log.csv -o run --set model.wdith=8")
    assert "itsp" in _unknown_settings("unveil train log.csv -o run --estimator itsp")
    assert not _unknown_settings("unveil train log.csv -o run -e itps --set estimator.clip=0.1 --set model.width=8")


@pytest.mark.parametrize("line", ["unveil trian log.csv", "unveil train log.csv -o x --oops", "unveil train log.csv"])
def test_a_wrong_command_line_is_seen(line: str) -> None:
    assert _refusal(_arguments(line))


@pytest.mark.parametrize("page", pages(), ids=shown)
def test_commands_named_in_passing_exist(page: Path) -> None:
    named = [span for span in spans(page.read_text(encoding="utf-8")) if span.startswith("unveil ")]
    assert not [span for span in named if not _exists(span)]


def test_a_command_that_does_not_exist_is_seen() -> None:
    assert not _exists("unveil trian")
    assert not _exists("unveil train --oops")
    assert _exists("unveil train --model N")
    assert _exists("unveil data")


def _exists(span: str) -> bool:
    """Whether a command, or a beginning of one, and all its options are known."""
    words = [word for word in shlex.split(span.replace("…", ""))[1:] if word]
    if words and words[0].startswith("--"):
        return not _refusal(words[:1])
    for end in range(len(words), -1, -1):
        name = " ".join(words[:end])
        if name in COMMANDS:
            known = {option for each in COMMANDS[name].params for option in (*each.opts, *each.secondary_opts)}
            return {word for word in words[end:] if re.match(r"--?[a-z]", word)} <= known | {"--help"}
        if name in GROUPS:
            return not words[end:]
    return False


@pytest.mark.parametrize("words", COMMANDS)
def test_every_command_has_its_page(words: str) -> None:
    page = DOCS / page_of(words)
    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"# unveil {words}\n")
    assert [line for line in _lines(page) if line.startswith(f"unveil {words}")]
    for part in (MARK, "writes", "## Exit codes", "## Common errors"):
        assert part in text
    assert page.name in (DOCS / "commands" / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("words", COMMANDS)
def test_the_table_has_every_option(words: str) -> None:
    rows = table(words, COMMANDS[words])
    for each in (each for each in COMMANDS[words].params if not getattr(each, "hidden", False)):
        names = each.opts if each.param_type_name == "option" else [(each.metavar or each.name).upper()]
        assert all(name in rows for name in names)
        assert (each.help or "").replace("|", "\\|") in rows


def test_no_page_is_of_a_command_that_is_gone() -> None:
    there = {path.relative_to(DOCS).as_posix() for path in (DOCS / "commands").glob("*.md")}
    assert there == {page_of(words) for words in COMMANDS} | {"commands/README.md"}


@pytest.mark.parametrize("page", pages(), ids=shown)
def test_modules_and_targets_named_in_passing_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    code = "\n".join([*spans(text), *(block.body for block in blocks(text))])
    assert set(re.findall(r"^make ([a-z]+)", code, re.MULTILINE)) <= targets
    for module in re.findall(r"python -m (benchmarks\.\w+)", code):
        assert (ROOT / module.replace(".", "/")).with_suffix(".py").exists(), module
