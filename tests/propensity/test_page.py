"""The page of propensities: every option that there is stands on it, with its default."""

import re
from inspect import Parameter, signature
from pathlib import Path

import pytest

from unveil.propensity.base import PROPENSITIES

PAGE = (Path(__file__).parents[2] / "docs" / "propensities.md").read_text(encoding="utf-8")
ROWS: dict[str, str] = dict(re.findall(r"^\| `([\w-]+(?:…)?)` \| (`\w+` [^|]+) \|$", PAGE, re.M))


def row_of(name: str) -> str:
    return ROWS[name] if name in ROWS else ROWS[f"{name.removesuffix(PROPENSITIES[name].kind)}…"]


@pytest.mark.parametrize("name", [name for name in PROPENSITIES if set(PROPENSITIES.options(name)) - {"path"}])
def test_every_option_has_its_default(name: str) -> None:
    said = dict(re.findall(r"`(\w+)` ([\w.]+)", row_of(name)))
    parameters = signature(PROPENSITIES[name]).parameters.values()
    defaults = {each.name: each.default for each in parameters if each.default is not Parameter.empty}
    assert said == {option: "none" if value is None else f"{value:g}" for option, value in defaults.items()}


def test_every_option_has_its_meaning() -> None:
    explained = set(re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| (?!`)", PAGE, re.M))))
    assert {option for name in PROPENSITIES for option in PROPENSITIES.options(name)} - {"path"} <= explained
