"""What could be trained on a log: every estimator with every propensity that can be had for it, and every clip."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from unveil.data.interactions import Interactions
from unveil.data.sequences import Sequences
from unveil.errors import UnveilError
from unveil.estimators.base import estimator
from unveil.estimators.inverse import InversePropensity
from unveil.experiment.outcome import BASE, BOUND
from unveil.propensity.base import OF_EVENTS, PROPENSITIES
from unveil.propensity.build import build
from unveil.studies.arms import TRUE_THETA, registered


@dataclass(frozen=True)
class Candidates:
    """The arms that are tried: those that could be used, and those that show what knowing the truth would give."""

    usable: tuple[str, ...]
    ceilings: tuple[str, ...]

    @property
    def arms(self) -> tuple[str, ...]:
        """All of them, naive first."""
        return (*self.usable, *self.ceilings)


def candidates(estimators: Sequence[str], propensities: Sequence[str], clips: Sequence[str]) -> Candidates:
    """Naive and every combination that fits together; beside them each estimator with the truth, and the ideal loss."""
    named = [name for name in dict.fromkeys(estimators) if name not in (BASE, BOUND)]
    usable = [arm for name in named for arm in _arms(name, propensities, clips)]
    ceilings = [f"{name}@{TRUE_THETA}" for name in named if estimator(name).needs in ("static", "temporal")]
    return Candidates((BASE, *dict.fromkeys(usable)), (*ceilings, BOUND))


def _arms(name: str, propensities: Sequence[str], clips: Sequence[str]) -> list[str]:
    needs = estimator(name).needs
    if needs not in ("static", "temporal"):
        return [name]
    found = [each for each in propensities if _has(each, needs, for_all=not weights(name))]
    clipped = [f"+clip={clip}" if clip else "" for clip in clips] if _clippable(name) else [""]
    return [f"{name}@{each}{clip}" for each in found for clip in clipped]


def weights(name: str) -> bool:
    """Whether an estimator weights events, and so needs θ of the taken item alone."""
    return issubclass(estimator(name), InversePropensity)


def _clippable(name: str) -> bool:
    """Whether it has weights to clip, and does not cut them by itself."""
    chosen = estimator(name)
    return issubclass(chosen, InversePropensity) and not chosen.cuts


def _has(propensity: str, kind: str, *, for_all: bool) -> bool:
    try:
        name = registered(propensity, kind)
    except UnveilError:
        return False
    return not (for_all and PROPENSITIES[name].source in OF_EVENTS)


def probe(names: Sequence[str], train: Sequences, log: Interactions, window: int) -> Mapping[str, str]:
    """name → why it cannot be had from this log; empty where it can. Names are those of the registry."""
    return {name: _refusal(name, train, log, window) for name in names}


def _refusal(name: str, train: Sequences, log: Interactions, window: int) -> str:
    try:
        build(name, {}, train, window=window, log=log)
    except UnveilError as error:
        return str(error)
    return ""


def from_a_log() -> list[str]:
    """The propensities of the registry that do not need a world."""
    return [name for name in PROPENSITIES if PROPENSITIES[name].source != "truth"]
