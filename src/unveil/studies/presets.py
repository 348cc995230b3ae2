"""How the networks of studies are trained: the presets of `presets.toml`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from unveil.errors import unknown
from unveil.settings import flattened
from unveil.studies import shipped
from unveil.training.recipe import PRESETS as OF_TRAINING

Settings = Mapping[str, Any]
#: The same figures everywhere, however many processes there are.
ALWAYS: Settings = {"training.device": "cpu", "training.threads": 1, "model.length": 100}


@dataclass(frozen=True)
class Preset:
    """Settings that all estimators share, those that one has for itself, and the ranking that validation uses."""

    about: str
    shared: Settings
    own: Mapping[str, Settings]
    of_network: Mapping[str, Settings] = field(default_factory=dict)  # where a network wants something else
    validation: Literal["uniform", "full"] = "full"
    revision: int = 1  # raised when its settings change: cells of an earlier one are not gone on with

    def called(self, name: str) -> str:
        """The name that tells it from what it was before."""
        return name if self.revision == 1 else f"{name}, revision {self.revision}"

    def settings(self, estimator: str, network: str | None = None) -> dict[str, Any]:
        """An estimator that the preset does not name is trained as ITPS, but for the options of that."""
        like = {name: value for name, value in self.own["itps"].items() if not name.startswith("estimator.")}
        return {
            **ALWAYS,
            **self.shared,
            **self.of_network.get(network or "bert4rec", {}),
            **self.own.get(estimator, like),
        }


def _read(about: str, base: str = "", shared: Settings | None = None, **parts: Any) -> Preset:
    own, networks = (
        {name: flattened(settings) for name, settings in parts.pop(part, {}).items()} for part in ("own", "of_network")
    )
    return Preset(about, {**OF_TRAINING.get(base, {}), **flattened(shared or {})}, own, networks, **parts)


PRESETS: Mapping[str, Preset] = {name: _read(**each) for name, each in shipped("presets").items()}


def preset(name: str) -> Preset:
    """The preset of that name; an unknown name suggests the nearest."""
    if name not in PRESETS:
        raise unknown("preset", name, PRESETS)
    return PRESETS[name]
