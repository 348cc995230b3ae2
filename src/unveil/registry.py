"""Registries that fill themselves: a class in a file of the package, or behind an entry point, is found by its name."""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from importlib import import_module
from importlib.metadata import entry_points
from inspect import Parameter, signature
from pkgutil import iter_modules
from typing import Any, ClassVar, Generic, Protocol, TypeVar, get_args
from warnings import warn

from unveil.errors import UnveilError, UnveilWarning, unknown


class Named(Protocol):
    """Anything that goes by a name."""

    name: ClassVar[str]


#: The kinds of values that are checked, as people call them.
_KINDS: Mapping[object, str] = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}

T = TypeVar("T", bound=Named)
C = TypeVar("C", bound=Named)


class Registry(Generic[T]):
    """The classes of one kind, by name. Nothing is imported before the first question.

    `package` is one module, or searched module by module; other distributions add theirs under the entry-point group
    `group`. `aliases` maps old names to today's: an old one is found, with a warning, and listed nowhere.
    """

    def __init__(self, kind: str, *, package: str, group: str, aliases: Mapping[str, str] | None = None) -> None:
        self.kind, self.package, self.group, self.aliases = kind, package, group, dict(aliases or {})
        self._classes: dict[str, type[T]] = {}

    def register(self, cls: type[C]) -> type[C]:
        """Class decorator: make a class known by its `name`. A name has one owner."""
        owner = self._classes.setdefault(cls.name, cls)  # type: ignore[arg-type]
        if (owner.__module__, owner.__qualname__) != (cls.__module__, cls.__qualname__):
            raise ValueError(f"two classes call themselves the {self.kind} {cls.name!r}: {owner} and {cls}")
        return cls

    def current_name(self, name: str) -> str:
        """Today's name of a class, with a warning where an old one was given; an unknown name is an error."""
        if name in self._found:
            return name
        if name not in self.aliases:
            raise unknown(self.kind, name, self)
        new = self.aliases[name]
        warn(f"the {self.kind} {name!r} is now called {new!r}; the old name will go.", UnveilWarning, stacklevel=1)
        return new

    def current_words(self, value: Any) -> Any:
        """Old names, alone or at the head of an arm or a setting (old@known, old:width=8), as they are now."""
        if isinstance(value, list | tuple):
            return [self.current_words(each) for each in value]
        head = re.match(r"[\w-]+(?=$|[@+:])", value) if isinstance(value, str) else None
        return self.aliases.get(head[0], head[0]) + value[head.end() :] if head else value

    def older_spellings(self, key: str) -> list[str]:
        """What a file name with today's name in it may have been before."""
        return [key.replace(new, old) for old, new in self.aliases.items() if new in key]

    def __getitem__(self, name: str) -> type[T]:
        return self._found[self.current_name(name)]

    def __contains__(self, name: object) -> bool:
        return name in self._found or name in self.aliases

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._found))

    def __len__(self) -> int:
        return len(self._found)

    def options(self, name: str) -> list[str]:
        """The names of the options of a class: its parameters that have a default."""
        parameters = signature(self[name]).parameters.values()
        return [each.name for each in parameters if each.default is not Parameter.empty]

    def check(self, name: str, options: Mapping[str, object]) -> None:
        """Before one is made: refuse a value of another kind than its option's. Names that are no options are not."""
        known = signature(self[name]).parameters
        for option, value in options.items():
            if option in known:
                _check(known[option], value, f"{name}.{option}")

    def build(self, name: str, options: Mapping[str, object], *parts: object) -> T:
        """One of the class of that name, from the parts it takes first and options checked by name and kind."""
        make: Callable[..., T] = self[name]
        known = list(signature(make).parameters)[len(parts) :]
        for option in options:
            if option not in known:
                raise unknown(f"option of the {self.kind} {name!r}", option, known)
        self.check(name, options)
        return make(*parts, **options)

    @cached_property
    def _found(self) -> dict[str, type[T]]:
        for module in iter_modules(getattr(import_module(self.package), "__path__", [])):
            import_module(f"{self.package}.{module.name}")
        for point in entry_points(group=self.group):
            self.register(point.load())
        return self._classes


def _check(option: Parameter, value: object, where: str) -> None:
    """A value is of the kind of the option's default or, where that is None, of its type; whole numbers do for
    fractions. A seed is one that every generator takes."""
    types = get_args(option.annotation) if option.default is None else [type(option.default)]
    kind = next((kind for each in types if (kind := getattr(each, "__origin__", each)) in _KINDS), None)
    fits = type(value) is kind or (kind is float and type(value) is int) or value is option.default is None
    if kind is not None and not fits:
        found = "none" if value is None else value
        raise UnveilError("not a valid value", where=where, found=found, expected=_KINDS[kind])
    if option.name == "seed" and isinstance(value, int) and not 0 <= value < 2**63:
        raise UnveilError("out of range", where=where, found=value, expected="0 or more, below 2^63")
