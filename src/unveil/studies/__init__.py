"""Studies: one engine, and one file for each question that is answered with it. Their data are TOML files here."""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def shipped(name: str) -> Mapping[str, Any]:
    """The content of `name`.toml in this folder."""
    return tomllib.loads(files(__name__).joinpath(f"{name}.toml").read_text(encoding="utf-8"))
