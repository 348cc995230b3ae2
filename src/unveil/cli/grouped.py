"""Options that several commands share: written once as a dataclass, and taken by a command as one parameter."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, fields
from functools import wraps
from typing import Any, get_type_hints

Command = Callable[..., None]


def takes(group: type[Any]) -> Callable[[Command], Command]:
    """Replace a command's `options: group` by one command-line parameter for each field of the group.

    The group's first field comes first, then the command's own parameters, then the rest of the group.
    """
    first, *rest = _parameters(group)

    def decorate(command: Command) -> Command:
        own = [parameter for parameter in _signature(command) if parameter.name != "options"]
        return _expanded(command, "options", group, [first, *own, *rest])

    return decorate


def takes_also(name: str, group: type[Any]) -> Callable[[Command], Command]:
    """Replace a command's parameter of that name by one for each field of the group, in its place."""

    def decorate(command: Command) -> Command:
        spread = [_parameters(group) if own.name == name else [own] for own in _signature(command)]
        return _expanded(command, name, group, [parameter for some in spread for parameter in some])

    return decorate


def _signature(command: Command) -> Sequence[inspect.Parameter]:
    return list(inspect.signature(command, eval_str=True).parameters.values())


def _expanded(command: Command, name: str, group: type[Any], parameters: Sequence[inspect.Parameter]) -> Command:
    """A command with these parameters, which hands those of the group to `command` as one."""

    @wraps(command)
    def expanded(**given: Any) -> None:
        gathered = group(**{field.name: given.pop(field.name) for field in fields(group)})
        command(**{name: gathered}, **given)

    expanded.__dict__["__signature__"] = inspect.Signature(parameters)
    expanded.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return expanded


def _parameters(group: type[Any]) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [_parameter(field, hints[field.name]) for field in fields(group)]


def _parameter(field: Field[Any], hint: object) -> inspect.Parameter:
    default = inspect.Parameter.empty if field.default is MISSING else field.default
    return inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)
