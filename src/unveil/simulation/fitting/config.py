"""How a world is fitted, as a TOML file: written by `unveil tune`, read by `unveil world fit --config`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from unveil.errors import UnveilError
from unveil.settings import changed, flattened, read_toml, toml_value
from unveil.simulation.fit import Fit

#: Settings that both parts of a world share, and that decide which tuples are for test.
_SHARED = ("recipe", "steps", "seed", "negatives", "redraw")


def fit_of(configs: Sequence[Path], changes: Mapping[str, Any]) -> Fit:
    """What the files say, one part of a world in each or all in one; then what was asked for by hand."""
    fit, said = Fit(), dict[str, tuple[Any, Path]]()
    for path in configs:
        for name, value in flattened(read_toml(path, "config")).items():
            fit = changed(fit, {name: value}, where=path)
            if said.setdefault(name, (value, path))[0] != value:
                first, before = said[name]
                found, hint = f"{first} in {before}", "Tune both parts alike, or keep one of the files."
                raise UnveilError(f"two configs differ in {name}", where=path, found=value, expected=found, hint=hint)
    return changed(fit, changes)


def as_toml(fit: Fit, parts: Sequence[str], head: str) -> str:
    """Some parts of a fit with every option of the recipe, none left to defaults."""
    lines = [f"# {line}" if line else "#" for line in head.splitlines()]
    lines += [f"{name} = {toml_value(getattr(fit, name))}" for name in _SHARED]
    for part, recipe in zip(("relevance", "exposure"), fit.recipes(), strict=True):
        if part in parts:
            lines += ["", f"[{part}]", *(f"{name} = {toml_value(value)}" for name, value in vars(recipe).items())]
    return "\n".join(lines) + "\n"
