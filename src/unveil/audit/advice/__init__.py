"""Plain advice, drawn from the figures and from nothing else."""

from unveil.audit.advice.base import Advice
from unveil.audit.advice.evaluation import evaluation_advice
from unveil.audit.advice.exposure import exposure_advice
from unveil.audit.advice.modelling import modelling_advice
from unveil.audit.advice.verdict import verdict
from unveil.audit.advice.weighting import weighting_advice
from unveil.audit.figures import Figures

__all__ = ["Advice", "advice", "verdict"]


def advice(found: Figures) -> tuple[Advice, ...]:
    """All that applies to this log, warnings first."""
    parts = (exposure_advice, evaluation_advice, weighting_advice, modelling_advice)
    every = [each for part in parts for each in part(found)]
    return tuple(sorted(every, key=lambda each: not each.warning))
