"""What the options of a LOG say of themselves."""

from typing import Any

from unveil.data.readers.columns import ROLES
from website.commands import commands


def _columns(command: Any) -> dict[str, str]:
    """role → what is said of the option that names its column."""
    return {each.name.removesuffix("_col"): each.help for each in command.params if each.name.endswith("_col")}


def test_every_column_says_what_is_in_it() -> None:
    told = _columns(commands()["train"])
    assert set(told) == set(ROLES)
    assert len(set(told.values())) == len(ROLES)
    assert all("'none' to ignore it" in said for role, said in told.items() if role not in ("user", "item"))


def test_histories_have_the_same_words() -> None:
    told = _columns(commands()["recommend"])
    assert set(told) == {"user", "item", "time"}
    assert told.items() <= _columns(commands()["train"]).items()
