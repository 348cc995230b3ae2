"""The estimators under test, by the names of the registry, with what they are told."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from unveil.estimators.base import Estimator, estimator
from unveil.estimators.build import build
from unveil.propensity.base import PROPENSITIES, PropensityModel
from unveil.simulation.world import World


@dataclass(frozen=True, eq=False)
class Variant:
    """An estimator with its options; it is told the true propensities unless others are named."""

    label: str
    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    propensity: str | None = None
    told: Mapping[str, Any] = field(default_factory=dict)

    def build(self, world: World) -> Estimator:
        """The estimator as training would build it."""
        return build(self.name, self.options, propensity=self.theta(world), world=world)

    def theta(self, world: World) -> PropensityModel | None:
        """The propensity that the estimator is told."""
        needs = estimator(self.name).needs
        if needs not in ("static", "temporal"):
            return None
        return PROPENSITIES.build(self.propensity or f"known-{needs}", self.told, world)


def clipped(clip: float) -> Variant:
    """ITPS with no propensity below the clip."""
    return Variant(f"ITPS, θ ≥ {clip:g}", "itps", {"clip": clip})


def mistaken(sd: float) -> Variant:
    """ITPS told propensities that are off by a normal number of logits."""
    return Variant(f"ITPS, θ ± {sd:g} logit", "itps", propensity="noisy-temporal", told={"sd": sd})


NAIVE = Variant("naive", "naive")
IPS = Variant("IPS", "ips")
ITPS = Variant("ITPS", "itps")
IDEAL = Variant("ideal", "ideal")
CORRECTED = Variant("corrected", "corrected")
NORMALISED = Variant("ITPS normalised", "itps", {"self_normalised": True})
