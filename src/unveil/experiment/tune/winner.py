"""The winning settings as a TOML file that `unveil train --config` takes: every setting, none left to defaults."""

import json
from collections.abc import Mapping
from typing import Any

from unveil.data.sources.database import shown
from unveil.errors import UnveilError
from unveil.runs.config import Experiment
from unveil.settings import flattened, plain, toml_value
from unveil.training.recipe import PRESETS


def as_toml(experiment: Experiment, head: str) -> str:
    """TOML cannot say "none": where that differs from the default, the file extends a preset that says it."""
    tree = plain(experiment)
    tree["data"]["log"] = shown(tree["data"]["log"])
    lines = [f"# {line}" if line else "#" for line in head.splitlines()]
    ground = _ground(tree)
    if ground is not None:
        lines.append(f"extends = {json.dumps(ground)}")
    for section, values in tree.items():
        lines += ["", f"[{section}]"]
        lines += [f"{name} = {toml_value(value)}" for name, value in values.items() if value is not None]
    return "\n".join(lines) + "\n"


def _ground(tree: Mapping[str, Any]) -> str | None:
    nothing = {name for name, value in flattened(tree).items() if value is None}
    for preset in (None, *PRESETS):
        base = Experiment() if preset is None else Experiment.of(preset)
        base = base.changed({"model.name": tree["model"]["name"]})
        if all(flattened(plain(base)).get(name) is None for name in nothing):
            return preset
    raise UnveilError("these settings cannot be written as TOML", found=", ".join(sorted(nothing)))
