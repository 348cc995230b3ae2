"""Options that several commands share: written once as a dataclass, and taken by a command as one parameter."""

import inspect
from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from functools import wraps
from typing import Any, get_type_hints

Command = Callable[..., None]


def takes(group: type[Any]) -> Callable[[Command], Command]:
    """Replace a command's `options: group` by one command-line parameter for each field of the group.

    The group's first field comes first, then the command's own parameters, then the rest of the group.
    """
    hints = get_type_hints(group, include_extras=True)
    shared = [_parameter(field, hints[field.name]) for field in fields(group)]

    def decorate(command: Command) -> Command:
        own = [p for p in inspect.signature(command, eval_str=True).parameters.values() if p.name != "options"]

        @wraps(command)
        def expanded(**given: Any) -> None:
            options = group(**{parameter.name: given.pop(parameter.name) for parameter in shared})
            command(options=options, **given)

        expanded.__dict__["__signature__"] = inspect.Signature([shared[0], *own, *shared[1:]])
        expanded.__annotations__ = {p.name: p.annotation for p in (*shared, *own)}
        return expanded

    return decorate


def _parameter(field: Field[Any], hint: object) -> inspect.Parameter:
    default = inspect.Parameter.empty if field.default is MISSING else field.default
    return inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)
