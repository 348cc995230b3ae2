"""How a world is fitted, as a TOML file: written by `unveil tune`, read by `unveil world fit --config`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from unveil.errors import UnveilError
from unveil.settings import changed, flattened, read_toml, toml_value
from unveil.simulation.fit import Fit

_PARTS = ("relevance", "exposure")
#: Settings that both parts of a world share, and that decide which tuples are for test and how parts are learnt.
_SHARED = ("recipe", "steps", "seed", "negatives", "redraw")
#: Settings of the world that the parts are put together to.
_WHOLE = ("centre", "real_lengths", "severity")


def fit_of(configs: Sequence[Path], changes: Mapping[str, Any]) -> Fit:
    """What the files say, one part of a world in each or all in one; then what was asked for by hand."""
    fit, said = Fit(), dict[str, tuple[Any, Path]]()
    for path in configs:
        for name, value in flattened(read_toml(path, "config")).items():
            if name in _PARTS and value == {}:
                continue  # a part of which nothing is said takes nothing back
            fit = changed(fit, {name: value}, where=path)
            if name in said and said[name][0] != value:
                first, before = said[name]
                found, hint = f"{first} in {before}", "Tune both parts alike, or keep one of the files."
                raise UnveilError(f"two configs differ in {name}", where=path, found=value, expected=found, hint=hint)
            said[name] = value, path
    return changed(fit, changes)


def shared(fit: Fit) -> dict[str, Any]:
    """What a fit says beside its parts; of the whole only what is not usual."""
    unusual = [name for name in _WHOLE if getattr(fit, name) != getattr(Fit(), name)]
    return {name: getattr(fit, name) for name in (*_SHARED, *unusual)}


def as_toml(fit: Fit, parts: Sequence[str], head: str) -> str:
    """Some parts of a fit with every option of the recipe, none left to defaults."""
    lines = [f"# {line}" if line else "#" for line in head.splitlines()]
    lines += [f"{name} = {toml_value(value)}" for name, value in shared(fit).items()]
    for part, recipe in zip(_PARTS, fit.recipes(), strict=True):
        if part in parts:
            lines += ["", f"[{part}]", *(f"{name} = {toml_value(value)}" for name, value in vars(recipe).items())]
    return "\n".join(lines) + "\n"
