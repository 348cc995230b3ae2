"""A claim, what was computed, and the verdict that follows."""

from dataclasses import dataclass
from typing import Literal

from unveil.experiment.theory.enumerated import Compared

#: Propensities are single-precision numbers: below this relative bias there is none.
TOLERANCE = 1e-5

Kind = Literal["unbiased", "biased"]


@dataclass(frozen=True)
class Finding:
    """What is said of a loss, and what its expectation over all logs says. The verdict is computed, never given."""

    topic: str
    claim: str
    setting: str
    claimed: Kind
    compared: Compared
    formula: float | None = None  # the same bias by closed form, where there is one

    @property
    def bias(self) -> float:
        """(E[L] − L_ideal) / L_ideal."""
        return self.compared.bias

    @property
    def found(self) -> Kind:
        """Biased beyond rounding, or not."""
        return "biased" if abs(self.bias) > TOLERANCE else "unbiased"

    @property
    def holds(self) -> bool:
        """Whether the claim is borne out, and the closed form with it."""
        return self.found == self.claimed and self.agrees is not False

    @property
    def agrees(self) -> bool | None:
        """Whether enumeration and closed form give the same number."""
        return None if self.formula is None else abs(self.bias - self.formula) <= TOLERANCE * (1 + abs(self.formula))

    @property
    def verdict(self) -> str:
        """In two words or three."""
        if self.agrees is False:
            return "formula off"
        return "holds" if self.holds else "does not hold"
