"""The commands of the command line, and the tables of their options: read off the program, so that they are true."""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import typer

#: Where a page of docs/commands wants the options of its command.
MARK = "<!-- options -->"

_GENERAL = "Options"
_LETTER = {int: "N", float: "X", Path: "PATH", str: "TEXT"}


def commands() -> dict[str, Any]:
    """Every command by its words: `data describe`."""
    from unveil.cli.main import app

    return dict(_below(typer.main.get_command(app), ()))


def _below(command: Any, words: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    if not hasattr(command, "commands"):
        yield " ".join(words), command
        return
    for name, inner in command.commands.items():
        yield from _below(inner, (*words, name))


def page_of(words: str) -> str:
    """The page of a command, from the root of docs."""
    return f"commands/{words.replace(' ', '-')}.md"


def with_options(markdown: str, path: str) -> str:
    """The page with the options of its command in the place that asks for them."""
    if MARK not in markdown:
        return markdown
    found = {page_of(words): (words, command) for words, command in commands().items()}
    return markdown.replace(MARK, table(*found[path]))


def table(words: str, command: Any) -> str:
    """How a command is called, and its options by group."""
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name == "option" and not each.hidden]
    usage = " ".join(["unveil", words, *map(_called, arguments), "[OPTIONS]"])
    parts = [f"```text\n{usage}\n```"]
    if arguments:
        parts.append(_rows("Argument", [_row(_called(each), each) for each in arguments]))
    by_group = sorted(options, key=lambda each: each.rich_help_panel or "")
    for group, members in groupby(by_group, key=lambda each: each.rich_help_panel or _GENERAL):
        parts.append(_rows(group, [_row(_option(each), each) for each in members]))
    return "\n\n".join(parts)


def _rows(title: str, rows: Sequence[str]) -> str:
    return "\n".join([f"| {title} | | default |", "|---|---|---|", *rows])


def _row(name: str, parameter: Any) -> str:
    cells = (f"`{name}`", parameter.help or "", _default(parameter))
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _called(argument: Any) -> str:
    name = (argument.metavar or argument.name).upper()
    name = f"{name}…" if argument.nargs == -1 else name
    return str(name if argument.required else f"[{name}]")


def _option(option: Any) -> str:
    short_first = sorted(option.opts, key=len, reverse=True)
    names = ", ".join([*short_first, *option.secondary_opts])
    return names if option.is_flag else f"{names} {option.metavar or _kind(option)}"


def _kind(option: Any) -> str:
    """What an option takes, in one word: its choices where it has some."""
    kind = option.type_descriptor.annotation
    if get_origin(kind) is Literal:
        return "|".join(get_args(kind))
    return _LETTER.get(kind, "TEXT")


def _default(parameter: Any) -> str:
    if parameter.required:
        return "needed"
    value = parameter.default
    if value is None or value is False or value == ():
        return ""
    if value is True:
        return "yes"
    shown = f"{value:,}" if type(value) is int else str(value)
    return f"`{re.sub(r'^$', '–', shown)}`"
