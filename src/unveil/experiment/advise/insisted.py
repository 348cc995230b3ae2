"""Propensities that were asked for by name: each is tried, or refused with the reason before anything is trained."""

from collections.abc import Mapping, Sequence

import numpy as np

from unveil.data.interactions import Interactions
from unveil.errors import UnveilError
from unveil.experiment.advise.candidates import candidates
from unveil.propensity.base import PROPENSITIES
from unveil.propensity.build import parts
from unveil.simulation.builtin import WorldSpec
from unveil.simulation.world import World
from unveil.studies.arms import family

_REAL, _DRAWN = "this log", "logs that are drawn from a world"


def refuse_unused(propensities: Sequence[str], estimators: Sequence[str]) -> None:
    """Before a log is read: propensities of which no estimator that is tried can make use."""
    for name in propensities:
        if not any("@" in arm for arm in candidates(estimators, (name,), ("",)).usable):
            raise UnveilError(
                "no estimator that is tried can use this propensity",
                where=f"--propensities {name}",
                found=", ".join(estimators),
                hint="Name others with --estimators, or leave it out.",
            )


def refuse_lacking(propensities: Sequence[str], log: Interactions, *, recorded: bool) -> None:
    """Before any work is done: propensities for which a log lacks a column, say. Nothing is fitted.

    They have to be had from the user's log and from drawn ones, which keep impressions if that one does (`recorded`).
    """
    drawn = _drawn(recorded)
    for name in propensities:
        real = [_lacks(each, log) for each in _kinds(name)]
        if all(real):
            raise not_had(name, _REAL, str(real[0]))
        missing = [_lacks(each, drawn) for each in _kinds(name)]
        if missing[0] is not None and all(missing):
            raise not_had(name, _DRAWN, missing[0].problem)


def refuse_probed(propensities: Sequence[str], real: Mapping[str, str], drawn: Mapping[str, str]) -> None:
    """Before the first training: propensities that turned out not to be had when they were fitted."""
    for whose, why in ((_REAL, real), (_DRAWN, drawn)):
        for name in propensities:
            reasons = [why[each] for each in _kinds(name) if each in why]
            if reasons and all(reasons):
                raise not_had(name, whose, reasons[0])


def not_had(name: str, whose: str, why: str) -> UnveilError:
    """The error for a propensity that somebody asked for."""
    return UnveilError(f"cannot be had from {whose}: {why}", where=f"--propensities {name}")


def _kinds(asked: str) -> list[str]:
    """The propensities of the registry that people call so."""
    return [name for name in PROPENSITIES if family(name) == asked]


def _lacks(name: str, log: Interactions) -> UnveilError | None:
    """Why a propensity cannot even be made from a log."""
    try:
        PROPENSITIES.build(name, {}, *parts(PROPENSITIES[name], log, None))
    except UnveilError as error:
        return error
    return None


def _drawn(recorded: bool) -> Interactions:
    """A small log with all that drawn logs have."""
    world = World.builtin(WorldSpec(users=12, items=10, steps=8), seed=0)
    return world.log(np.random.default_rng(0), ratings_noise=1.0, impressions=1.0 if recorded else None)
