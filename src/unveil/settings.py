"""Settings as trees of frozen dataclasses: changed by dotted names, read from TOML, checked with nearest-name hints."""

import tomllib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from unveil.errors import UnveilError

T = TypeVar("T")

Tree = dict[str, Any]


def plain(settings: object) -> Tree:
    """The settings as nested dicts, lists, numbers and texts: what JSON and TOML can hold."""
    return dict(TypeAdapter(type(settings)).dump_python(settings, mode="json"))


def changed(settings: T, changes: Mapping[str, Any], *, where: object = None) -> T:
    """The settings with some values replaced. `changes` is nested, has dotted names, or both."""
    tree = plain(settings)
    for name, value in _flat(changes).items():
        _put(tree, settings, name.split("."), value, name, where)
    return built(type(settings), tree, where=where)


def built(kind: type[T], tree: Mapping[str, Any], *, where: object = None) -> T:
    """Settings of a kind from a whole tree of values."""
    try:
        return TypeAdapter(kind).validate_python(tree)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = ".".join(str(part) for part in first["loc"])
        place = f"{where}, {name}" if where is not None else name
        raise UnveilError(
            "not a valid value", where=place, found=first["input"], expected=_wish(first["msg"])
        ) from None


def parsed(assignment: str) -> tuple[str, Any]:
    """`a.b=c` as a name and a value; the value is read as TOML where it is TOML, else as text."""
    name, equals, text = assignment.partition("=")
    if not equals or not name.strip():
        raise UnveilError("not an assignment", found=assignment, expected="name=value, e.g. model.width=128")
    try:
        return name.strip(), tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return name.strip(), None if text.strip() == "none" else text.strip()


def _flat(changes: Mapping[str, Any], prefix: str = "") -> Tree:
    """Dotted names of a nested mapping. An empty mapping is a value."""
    flat: Tree = {}
    for name, value in changes.items():
        if isinstance(value, Mapping) and value:
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value
    return flat


def _put(tree: Tree, settings: object, path: list[str], value: Any, name: str, where: object) -> None:
    head, *rest = path
    if is_dataclass(settings):
        known = [field.name for field in fields(settings)]
        if head not in known:
            close = get_close_matches(head, known, n=1)
            raise UnveilError(
                "unknown setting",
                where=where,
                found=name,
                expected=f"one of {', '.join(known)}",
                hint=f"Did you mean {name.replace(head, close[0])!r}?" if close else None,
            )
    if not rest:
        tree[head] = value
        return
    inner = getattr(settings, head, None)
    if not is_dataclass(inner) and not isinstance(inner, Mapping):
        raise UnveilError("this setting has no parts", where=where, found=name, hint=f"Set {head} itself.")
    tree[head] = dict(tree[head])
    _put(tree[head], inner, rest, value, name, where)


def _wish(message: str) -> str:
    """pydantic's sentence as the end of ours."""
    return message.removeprefix("Input should be ").removeprefix("Value error, ")
