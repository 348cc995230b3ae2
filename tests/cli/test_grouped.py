"""Options written once and taken as one parameter: each has its place on the command line, and none is lost."""

import inspect
from dataclasses import dataclass
from typing import Annotated

import typer
from typer.testing import CliRunner

from unveil.cli.grouped import takes, takes_also


@dataclass(frozen=True)
class Whence:
    log: Annotated[str, typer.Argument()]
    format: str = "csv"


@dataclass(frozen=True)
class How:
    model: str | None = None
    changes: Annotated[list[str] | None, typer.Option("--set")] = None


@takes(Whence)
@takes_also("how", How)
def command(*, options: Whence, output: Annotated[str, typer.Option()], how: How, jobs: int = 1) -> None:
    typer.echo((options, output, how, jobs))


def test_a_group_stands_where_its_parameter_stood_and_the_other_around_all() -> None:
    assert list(inspect.signature(command).parameters) == ["log", "output", "model", "changes", "jobs", "format"]


def test_each_group_is_handed_over_as_one() -> None:
    app = typer.Typer()
    app.command()(command)
    given = "a.csv --output b --set x=1 --set y=2 --jobs 3"
    told = (Whence("a.csv"), "b", How(None, ["x=1", "y=2"]), 3)
    assert CliRunner().invoke(app, given, catch_exceptions=False).output == f"{told}\n"
