"""What an estimator's weights do to a sample."""

from dataclasses import replace

from unveil.data.slots import Slots
from unveil.estimators.base import Estimator, Signal
from unveil.estimators.inverse import InversePropensity
from unveil.estimators.learning import blocks
from unveil.propensity.weights import WeightDiagnostics, diagnose_parts


def weight_diagnostics(estimator: Estimator, slots: Slots) -> WeightDiagnostics | None:
    """Of these slots; None where weights do not come from a propensity, or are not all that is made of it."""
    if estimator.needs not in ("static", "temporal") or not len(slots):
        return None
    weighted, imputes = _form(estimator(slots.part(0, 1)))
    if not weighted:
        return None
    weights = (estimator(part).weight_M for part in blocks(slots))
    if not isinstance(estimator, InversePropensity):
        return diagnose_parts(weights, float("inf"))
    found = diagnose_parts(weights, estimator.ceiling)
    if not imputes:
        return found
    # What an imputation leaves of a weight is below the ceiling even where its propensity was clipped.
    whole = diagnose_parts((estimator.inverse(part) for part in blocks(slots)), estimator.ceiling)
    return replace(found, clipped=whole.clipped)


def _form(signal: Signal) -> tuple[bool, bool]:
    """Whether all that is known of exposure is in the weights, and whether something is imputed beside."""
    return signal.weighted, signal.imputed_MV is not None
