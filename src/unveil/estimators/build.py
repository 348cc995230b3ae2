"""An estimator by its name, built from what it needs."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from unveil.data.interactions import Interactions
from unveil.data.sequences import Sequences
from unveil.errors import UnveilError
from unveil.estimators.base import ESTIMATORS, Estimator, Learns
from unveil.propensity.base import Kind, PropensityModel
from unveil.propensity.known import TrueWorld


def build(
    name: str,
    options: Mapping[str, object],
    *,
    propensity: PropensityModel | None = None,
    world: TrueWorld | None = None,
    train: Sequences | None = None,
    log: Interactions | None = None,
) -> Estimator:
    """The estimator `name` with its options, given the propensity, world, training part or log that it needs."""
    built = ESTIMATORS.build(name, options, *parts(name, propensity, world, log))
    if not isinstance(built, Learns):
        return built
    if train is None:
        hint = "Pass the training part (train=)."
        raise UnveilError(f"the estimator {name!r} learns from the training part, and none is given", hint=hint)
    return built.fit(train)


@dataclass(frozen=True)
class _StandIn:
    """In the place of a propensity, for an estimator that is built to have its options checked."""

    kind: Kind
    name: str = "a stand-in"


def check_options(name: str, options: Mapping[str, object]) -> None:
    """Before anything is fitted or trained: options of an estimator that it does not have, or that are out of range."""
    needs = ESTIMATORS[name].needs
    if needs == "truth":
        return
    stand_ins: list[object] = [_StandIn(needs)] if needs in ("static", "temporal") else [None] * (needs == "ratings")
    with suppress(AttributeError):  # a plug-in that needs more of its parts when it is built
        ESTIMATORS.build(name, options, *stand_ins)


#: What is missing, and what to do, where an estimator needs more than a propensity.
_MISSING = {
    "ratings": ("a log with ratings", "Use 'wmf-distilled', which needs none."),
    "truth": (
        "a world whose truth is known",
        "Name the world of the log with --world (in Python, world=), or choose another estimator.",
    ),
}


def parts(
    name: str, propensity: PropensityModel | None, world: TrueWorld | None, log: Interactions | None
) -> list[object]:
    """What an estimator is built from; an error names what is missing."""
    needs = ESTIMATORS[name].needs
    if needs == "nothing":
        return []
    rated = None if log is None or log.rating is None else log
    part = {"ratings": rated, "truth": world}.get(needs, propensity)
    if part is None:
        instead = f"Name one, such as 'recorded-{needs}', learnt from impressions; popularity is the last resort."
        what, hint = _MISSING.get(needs, (f"a {needs} propensity", instead))
        raise UnveilError(f"the estimator {name!r} needs {what}, and none is given", hint=hint)
    return [part]
