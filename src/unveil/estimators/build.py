"""An estimator by its name, made from what it needs; and what its weights do to a sample."""

from collections.abc import Mapping

import torch

from unveil.data.slots import Slots
from unveil.errors import UnveilError
from unveil.estimators.base import ESTIMATORS, Estimator
from unveil.estimators.ideal import Truth
from unveil.propensity.base import PropensityModel
from unveil.propensity.weights import WeightDiagnostics, diagnose

#: Slots looked at together when weights are diagnosed: signals may hold a row of all items for each.
_BLOCK = 4096


def build(
    name: str, options: Mapping[str, object], *, propensity: PropensityModel | None = None, world: Truth | None = None
) -> Estimator:
    """The estimator `name` with its options, given the propensity or the world that it needs."""
    needs = ESTIMATORS[name].needs
    if needs == "nothing":
        return ESTIMATORS.build(name, options)
    if needs == "truth":
        what, hint = (
            "a world whose truth is known",
            "Name the world of the log with --world (in Python, world=), or choose another estimator.",
        )
        return ESTIMATORS.build(name, options, _given(world, name, what, hint))
    what, hint = f"a {needs} propensity", f"Name one, such as 'popularity-{needs}'."
    return ESTIMATORS.build(name, options, _given(propensity, name, what, hint))


def weight_diagnostics(estimator: Estimator, slots: Slots) -> WeightDiagnostics | None:
    """What the estimator's weights do to these slots; None where they do not come from a propensity."""
    if estimator.needs not in ("static", "temporal") or not len(slots):
        return None
    first = estimator(slots.part(0, 1))
    if first.offset_MV is not None or first.rival_MV is not None:  # the propensity is not in the weights
        return None
    weight_M = torch.cat([estimator(slots.part(at, at + _BLOCK)).weight_M for at in range(0, len(slots), _BLOCK)])
    return diagnose(weight_M, getattr(estimator, "ceiling", float("inf")))


def _given(part: object | None, name: str, what: str, hint: str) -> object:
    if part is None:
        raise UnveilError(f"the estimator {name!r} needs {what}, and none is given", hint=hint)
    return part
