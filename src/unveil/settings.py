"""Settings as trees of frozen dataclasses: changed by dotted names, read from TOML, checked with nearest-name hints."""

import json
import tomllib
from collections.abc import Hashable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from unveil.errors import UnveilError, unknown

T = TypeVar("T")

Tree = dict[str, Any]


def plain(settings: object) -> Tree:
    """The settings as nested dicts, lists, numbers and texts: what JSON and TOML can hold."""
    return dict(_adapter(cast(Hashable, type(settings))).dump_python(settings, mode="json"))


def changed(settings: T, changes: Mapping[str, Any], *, where: object = None) -> T:
    """The settings with some values replaced. `changes` is nested, has dotted names, or both."""
    tree = plain(settings)
    for name, value in flattened(changes).items():
        names = name.split(".")
        _section(tree, settings, names, where)[names[-1]] = value
    return built(type(settings), tree, where=where)


def built(kind: type[T], tree: Mapping[str, Any], *, where: object = None) -> T:
    """Settings of a kind from a whole tree of values."""
    try:
        settings: T = _adapter(cast(Hashable, kind)).validate_python(tree)
        return settings
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = ".".join(_path(tree, first["loc"]))
        place = f"{where}, {name}" if where is not None else name
        found = "none" if first["input"] is None else first["input"]
        expected = _WISHES.get(first["type"].partition("_")[0], first["msg"].removeprefix("Input should be "))
        raise UnveilError("not a valid value", where=place, found=found, expected=expected) from None


def flattened(changes: Mapping[str, Any], prefix: str = "") -> Tree:
    """Dotted names of a nested mapping. An empty mapping is a value."""
    flat: Tree = {}
    for name, value in changes.items():
        if isinstance(value, Mapping) and value:
            flat |= flattened(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value
    return flat


def parsed(assignment: str) -> tuple[str, Any]:
    """`a.b=c` as a name and a value; the value is read as TOML where it is TOML, else as text."""
    name, equals, text = assignment.partition("=")
    if not equals or not name.strip():
        raise UnveilError("not an assignment", found=assignment, expected="name=value, e.g. model.width=128")
    try:
        return name.strip(), tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):  # Python reads no number of thousands of digits
        return name.strip(), None if text.strip() == "none" else text.strip()


def read_toml(path: Path, kind: str, expected: str = "a TOML file") -> Tree:
    """The content of a TOML file; `kind` is what a missing one is called."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UnveilError(f"no such {kind}", where=path, expected=expected) from None
    except (ValueError, RecursionError) as error:
        raise UnveilError(f"not TOML: {error}", where=path) from None
    except OSError as error:
        raise UnveilError(f"cannot be read: {error.strerror}", where=path) from None


def toml_value(value: object) -> str:
    """A value as TOML writes it."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(str(name))} = {toml_value(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    """Making one takes far longer than using it."""
    return TypeAdapter(kind)


def _section(tree: Any, settings: object, names: list[str], where: object) -> Tree:
    """The part of the tree that holds the last of the names; every name on the way is known, or refused."""
    everything = flattened(plain(settings))
    for depth, name in enumerate(names):
        if not isinstance(tree, dict):
            hint = f"Set {'.'.join(names[:depth])} itself."
            raise UnveilError("this setting has no parts", where=where, found=".".join(names), hint=hint)
        if is_dataclass(settings):
            known = {field.name: ".".join([*names[:depth], field.name]) for field in fields(settings)}
            if name not in known:
                raise unknown("setting", ".".join(names), known.values(), where=where, near=everything)
        section, tree, settings = tree, tree.get(name), getattr(settings, name, None)
    return section


#: What is wanted, in our words, by how the name of pydantic's complaint begins.
_WISHES = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "string": "text",
    "tuple": "a list",
    "missing": "one value more",
    "too": "fewer values",
    "dict": "a group of settings: set its parts by dotted names",
    "dataclass": "a group of settings: set its parts by dotted names",
}


def _path(tree: Any, location: tuple[int | str, ...]) -> list[str]:
    """Where in the tree an error is; the name by which one of several kinds was chosen is no place in it."""
    path = []
    for part in location:
        chosen = isinstance(tree, Mapping) and part not in tree and part == tree.get("name")
        if not chosen:
            path.append(str(part))
            tree = tree.get(part) if isinstance(tree, Mapping) else None
    return path
