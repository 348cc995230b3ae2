"""An estimator by its name, made from what it needs."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from unveil.data.interactions import Interactions
from unveil.data.sequences import Sequences
from unveil.errors import UnveilError
from unveil.estimators.base import ESTIMATORS, Estimator, Learns
from unveil.estimators.naive import Truth
from unveil.propensity.base import Kind, PropensityModel


def build(
    name: str,
    options: Mapping[str, object],
    *,
    propensity: PropensityModel | None = None,
    world: Truth | None = None,
    train: Sequences | None = None,
    log: Interactions | None = None,
) -> Estimator:
    """The estimator `name` with its options, given the propensity, world, training part or log that it needs."""
    made = ESTIMATORS.build(name, options, *parts(name, propensity, world, log))
    if not isinstance(made, Learns):
        return made
    if train is None:
        hint = "Pass the training part (train=)."
        raise UnveilError(f"the estimator {name!r} learns from the training part, and none is given", hint=hint)
    return made.fit(train)


@dataclass(frozen=True)
class _StandIn:
    """In the place of a propensity that is not there yet, for an estimator that is made to have its options checked."""

    kind: Kind
    name: str = "a stand-in"


def check_options(name: str, options: Mapping[str, object]) -> None:
    """Before anything is fitted or trained: options of an estimator that it does not have, or that are out of range."""
    needs = ESTIMATORS[name].needs
    if needs == "truth":
        return
    stand_ins: list[object] = [_StandIn(needs)] if needs in ("static", "temporal") else [None] * (needs == "ratings")
    with suppress(AttributeError):  # of somebody's own that asks its parts for more when it is made: it has to wait
        ESTIMATORS.build(name, options, *stand_ins)


def parts(name: str, propensity: PropensityModel | None, world: Truth | None, log: Interactions | None) -> list[object]:
    """What an estimator is made from, of what is at hand; whatever is not there is named."""
    needs = ESTIMATORS[name].needs
    if needs == "nothing":
        return []
    if needs == "ratings":
        rated = None if log is None or log.rating is None else log
        return [_given(rated, name, "a log with ratings", "Use 'ever', which needs none.")]
    if needs == "truth":
        what, hint = (
            "a world whose truth is known",
            "Name the world of the log with --world (in Python, world=), or choose another estimator.",
        )
        return [_given(world, name, what, hint)]
    hint = (
        f"Name one, such as 'recorded-{needs}', which learns exposure from impressions; popularity is the last resort."
    )
    return [_given(propensity, name, f"a {needs} propensity", hint)]


def _given(part: object | None, name: str, what: str, hint: str) -> object:
    if part is None:
        raise UnveilError(f"the estimator {name!r} needs {what}, and none is given", hint=hint)
    return part
