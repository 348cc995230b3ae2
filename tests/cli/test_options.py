import inspect
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from unveil.cli.options import LogOptions, TrainingOptions, takes_options
from unveil.data.readers.table import ROLES
from unveil.settings import plain
from website.commands import commands


@dataclass(frozen=True)
class Whence:
    log: Annotated[str, typer.Argument()]
    format: str = "csv"


@dataclass(frozen=True)
class How:
    model: str | None = None
    changes: Annotated[list[str] | None, typer.Option("--set")] = None


@takes_options
def command(*, options: Whence, output: Annotated[str, typer.Option()], how: How, jobs: int = 1) -> None:
    typer.echo((options, output, how, jobs))


def test_what_is_required_stands_in_its_place_and_the_rest_of_a_group_at_the_end() -> None:
    assert list(inspect.signature(command).parameters) == ["log", "output", "jobs", "format", "model", "changes"]


def test_each_group_is_handed_over_as_one() -> None:
    app = typer.Typer()
    app.command()(command)
    given = "a.csv --output b --set x=1 --set y=2 --jobs 3"
    told = (Whence("a.csv"), "b", How(None, ["x=1", "y=2"]), 3)
    assert CliRunner().invoke(app, given, catch_exceptions=False).output == f"{told}\n"


def _columns(command: Any) -> dict[str, str]:
    """role → what is said of the option that names its column."""
    return {each.name.removesuffix("_col"): each.help for each in command.params if each.name.endswith("_col")}


def test_every_column_says_what_is_in_it() -> None:
    told = _columns(commands()["train"])
    assert set(told) == set(ROLES)
    assert len(set(told.values())) == len(ROLES)
    assert all("'none' to ignore it" in said for role, said in told.items() if role not in ("user", "item"))


@pytest.mark.parametrize("preset", [None, "quick", "converged", "paper"])
def test_tune_and_train_have_one_default_network(preset: str | None) -> None:
    experiment = TrainingOptions(preset=preset).experiment(LogOptions(log="a.csv"))
    assert plain(experiment.model)["name"] == ("bert4rec" if preset == "paper" else "sasrec")


def test_histories_have_the_same_words() -> None:
    told = _columns(commands()["recommend"])
    assert set(told) == {"user", "item", "time"}
    assert told.items() <= _columns(commands()["train"]).items()
