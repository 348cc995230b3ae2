"""What makes a run the same run: a checkpoint goes on only with the settings it began with."""

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from math import isfinite
from typing import Any

from unveil.errors import UnveilError


def settings(thing: object) -> dict[str, Any]:
    """The numbers, words and choices of a dataclass, by field name; data and parts of other kinds are left out."""
    if not is_dataclass(thing):
        return {}
    named = {field.name: getattr(thing, field.name) for field in fields(thing)}
    return {name: _plain(value) for name, value in named.items() if isinstance(value, _SIMPLE)}


_SIMPLE = (bool, int, float, str, tuple, type(None))


def _plain(value: object) -> object:
    """As JSON has it: it knows no infinity, which a clip may well be."""
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return str(value) if isinstance(value, float) and not isfinite(value) else value


def refuse_other_run(saved: Mapping[str, Any], now: Mapping[str, Any], where: object) -> None:
    """Compare two identities, and name the first thing that differs."""
    for name, before, after in differences(saved, now):
        raise UnveilError(
            f"the run began with {name} = {before}, and now it is {after}",
            where=where,
            hint="Resume with the settings the run began with, or start another run.",
        )


def differences(saved: Mapping[str, Any], now: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """What differs between two identities: its dotted name, what it was and what it is, in the order of names."""
    before, after = dict(_flat(saved)), dict(_flat(now))
    return [
        (name, _shown(before.get(name)), _shown(after.get(name)))
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    ]


def _shown(value: object) -> str:
    return "nothing" if value is None else str(value)


def _flat(nested: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, object]]:
    for name, value in nested.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
