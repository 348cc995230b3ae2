"""The one error a user sees: where, what was found, what was expected, what to do. Passwords are never shown."""

import re
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from math import inf
from typing import Annotated, get_args, get_type_hints

#: scheme://name:secret@, or what was meant to be it.
_SECRET = re.compile(r"(\w:?/{1,2}[^\s:@/]*:)\S+@")


class UnveilError(Exception):
    """A problem the user can mend. The command line prints it as one message and exits with code 2.

    >>> str(UnveilError("not a time", where="log.csv, row 3, column ts", found="abc", expected="s, ms, µs or ISO 8601"))
    "log.csv, row 3, column ts: not a time: found 'abc', expected s, ms, µs or ISO 8601."
    """

    def __init__(
        self,
        problem: str,
        *,
        where: object = None,
        found: object = None,
        expected: str | None = None,
        hint: str | None = None,
    ) -> None:
        self.problem, self.where, self.found, self.expected, self.hint = problem, where, found, expected, hint
        parts = ("found", None if found is None else _shown(found)), ("expected", expected)
        contrast = ", ".join(f"{name} {text}" for name, text in parts if text is not None)
        sentence = f"{'' if where is None else f'{where}: '}{problem}{': ' + contrast if contrast else ''}"
        super().__init__(_SECRET.sub(r"\1***@", f"{sentence.rstrip('.')}.{' ' + hint if hint else ''}"))


class UnveilWarning(UserWarning):
    """Something to know before a result is believed. The command line prints it; Python code gets it as a warning."""


def unknown(
    what: str, name: str, known: Iterable[str], *, where: object = None, near: Iterable[str] = ()
) -> UnveilError:
    """The error for a name that nobody knows; it suggests all known names, or those `near`, that begin with it, or
    else the nearest one."""
    names = list(known)
    every = list(dict.fromkeys([*names, *near]))
    meant = [each for each in every if name and each.startswith(name)] or get_close_matches(name, every, n=1)
    return UnveilError(
        f"unknown {what}",
        where=where,
        found=name,
        expected=f"one of {', '.join(names)}" if names else "none: it takes no options",
        hint=f"Did you mean {' or '.join(map(repr, meant))}?" if meant else None,
    )


def check_range(valid: bool, where: str, found: object, expected: str) -> None:
    """A setting out of its range is refused by name."""
    if not valid:
        raise UnveilError("out of range", where=where, found=found, expected=expected)


#: Ranges of settings, in the words of messages.
_RANGES: Mapping[str, Callable[[float], bool]] = {
    "at least 1": lambda value: value >= 1,
    "0 or more": lambda value: 0 <= value < inf,
    "above 0": lambda value: 0 < value < inf,
    "above 0, at most 1": lambda value: 0 < value <= 1,
    "between 0 and 1": lambda value: 0 <= value <= 1,
    "0 or more, below 1": lambda value: 0 <= value < 1,
}


#: Types of settings that are checked: `width: AtLeastOne = 16`.
AtLeastOne = Annotated[int, "at least 1"]
NotNegative = Annotated[float, "0 or more"]
Positive = Annotated[float, "above 0"]
UpToOne = Annotated[float, "above 0, at most 1"]
BelowOne = Annotated[float, "0 or more, below 1"]
Share = Annotated[float, "between 0 and 1"]


def check_ranges(settings: object, where: str, **ranges: str) -> None:
    """Each setting whose type names a range, or that is named here with one, is in it; None is not checked."""
    for name, hint in get_type_hints(type(settings), include_extras=True).items():
        for each in (hint, *get_args(hint)):  # `AtLeastOne | None` has its range inside
            ranges.update((name, word) for word in getattr(each, "__metadata__", ()) if isinstance(word, str))
    for name, expected in ranges.items():
        value = getattr(settings, name, None)
        check_range(value is None or _RANGES[expected](value), f"{where}.{name}".lstrip("."), value, expected)


def _shown(value: object, longest: int = 80) -> str:
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= longest else text[: longest - 1] + "…"
