"""From propensities to weights, and what the weights do to a sample. Shapes: M slots."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from unveil.wording import quantity

#: Above this effective share the weights are all but equal; below the other they have collapsed.
EQUAL, COLLAPSED = 0.999, 0.01
#: One slot dominates when it holds this share of all weight and this many times its fair share.
DOMINANT, FAIR = 0.05, 10.0


def inverse(theta_M: Tensor, clip: float = 0.0, exponent: float = 1.0) -> Tensor:
    """w = max(θ, clip)^−exponent: the plain inverse propensity with no clip and exponent 1."""
    return theta_M.clamp_min(clip).pow(-exponent)


@dataclass(frozen=True)
class WeightDiagnostics:
    """What weighting does to M slots: how many equally weighted slots they are worth, and who holds the weight."""

    slots: int
    mean: float
    effective_sample_size: float  # (Σ w)² / Σ w²
    largest_share: float  # max w / Σ w
    spread: float  # max w / min w
    clipped: float  # share of the slots whose propensity was clipped

    @property
    def ess_share(self) -> float:
        return self.effective_sample_size / self.slots

    def __str__(self) -> str:
        sample = f"effective sample size {self.effective_sample_size:,.0f} ({self.ess_share:.1%})"
        rest = f"largest share {self.largest_share:.2g}, spread {self.spread:.3g}, clipped {self.clipped:.1%}"
        return f"{quantity(self.slots, 'target')}, {sample}, {rest}"

    def warnings(self) -> list[str]:
        equal = (
            f"The weights are all but equal (effective sample size {self.ess_share:.2%} of {self.slots:,} targets): "
            "this run will hardly differ from naive. Raise the exponent or lower the clip."
        )
        collapsed = (
            f"The weights have collapsed: {self.slots:,} targets have an effective sample size of only "
            f"{self.effective_sample_size:,.0f}. Clip the propensities, lower the exponent, or smooth them."
        )
        one = f"One target of {self.slots:,} holds {self.largest_share:.0%} of all weight. Clip the propensities."
        dominated = self.largest_share > DOMINANT and self.largest_share * self.slots > FAIR
        found = {equal: self.ess_share > EQUAL, collapsed: self.ess_share < COLLAPSED, one: dominated}
        return [text for text, holds in found.items() if holds]


def diagnose(weight_M: Tensor, ceiling: float = float("inf")) -> WeightDiagnostics:
    """Effective sample size (Σ w)² / Σ w² and its kin; a weight at the `ceiling` comes from a clipped propensity."""
    return diagnose_parts([weight_M], ceiling)


def diagnose_parts(parts: Iterable[Tensor], ceiling: float = float("inf")) -> WeightDiagnostics:
    """The same of weights that come in parts, of which one is held at a time."""
    slots, total, square, clipped, largest, smallest = 0, 0.0, 0.0, 0, 0.0, float("inf")
    for part in parts:
        w_M = part.to("cpu", torch.float64)
        slots, total, square = slots + len(w_M), total + float(w_M.sum()), square + float(w_M.square().sum())
        # The weights are single precision: equal up to its rounding.
        clipped += int((w_M >= ceiling * (1 - 1e-6)).sum())
        if len(w_M):
            largest, smallest = max(largest, float(w_M.max())), min(smallest, float(w_M.min()))
    if not slots:
        raise ValueError("no weights to diagnose")
    return WeightDiagnostics(
        slots=slots,
        mean=total / slots,
        effective_sample_size=total**2 / square if square else 0.0,
        largest_share=largest / total if total else 0.0,
        spread=largest / smallest if smallest else float("inf"),
        clipped=clipped / slots,
    )
