"""What a log allows: some of its users, its shape, and the estimators and propensities that can be tried on it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unveil.data.describe import gini
from unveil.data.filters import LogSource
from unveil.data.interactions import Interactions
from unveil.data.sequences import Sequences
from unveil.data.splits import leave_one_out
from unveil.errors import UnveilError
from unveil.estimators.base import estimator
from unveil.estimators.inverse import InversePropensity
from unveil.propensity.base import OF_EVENTS, PROPENSITIES
from unveil.propensity.build import build, parts
from unveil.propensity.impressions import training_skips
from unveil.simulation.builtin import WorldSpec
from unveil.simulation.world import World
from unveil.studies.arms import TRUE_THETA, Variant, family, registered
from unveil.studies.results import BASE, BOUND
from unveil.training.recipe import Recipe

#: A history of fewer events has nothing left to train on after two are held out.
_FEWEST_EVENTS = 3
#: Fewer impressions say nothing, and drawn logs that record as many might record none.
_FEWEST_IMPRESSIONS = 30
#: Lists of so many items are evaluated.
_LIST = 10
_REAL, _DRAWN = "this log", "logs that are drawn from a world"


@dataclass(frozen=True)
class LogShape:
    """A log in a few figures, or several logs in their means: to compare drawn logs with the real one."""

    users: float
    items: float
    events: float
    length: float  # events of a user, on average
    gini: float  # of the items' counts: 0 all alike, 1 one has all
    head: float  # share of the events that are of the most popular tenth of the items

    @classmethod
    def of(cls, log: Interactions) -> "LogShape":
        """Of the interactions."""
        events = log.interacted()
        count_V = np.sort(np.bincount(events.item, minlength=1))[::-1]
        count_V = count_V[count_V > 0]
        users = len(np.unique(events.user))
        head = count_V[: max(1, len(count_V) // 10)].sum() / max(1, count_V.sum())
        length = len(events) / max(1, users)
        return cls(users, len(count_V), len(events), length, float(gini(count_V)), round(float(head), 6))


def read_users(source: LogSource, most: int, seed: int) -> Interactions:
    """The rows of at most so many users, with their impressions of items that have an interaction."""
    return some_users(source.load(), most, seed).within_interacted()


def some_users(log: Interactions, most: int, seed: int) -> Interactions:
    """The rows of users with a history, drawn at random where there are more than `most`."""
    count_U = np.bincount(log.interacted().user, minlength=len(log.users))
    able_U = np.flatnonzero(count_U >= _FEWEST_EVENTS)
    if not len(able_U):
        raise UnveilError("no user has a history of three events or more: there is nothing to hold out")
    if len(able_U) > most:
        able_U = np.random.default_rng([seed, most]).choice(able_U, most, replace=False)
    return log.where(np.isin(log.user, able_U)).compact()


def impressions_per_event(log: Interactions) -> float:
    """Impressions without a click that can be learnt from, for each training event; 0 where they are too few."""
    train = leave_one_out(Sequences.of(log)).train
    left = training_skips(log, train)
    return left / len(train) if left >= _FEWEST_IMPRESSIONS else 0.0


def has_ratings(log: Interactions) -> bool:
    """Whether every event has a rating."""
    return log.rating is not None and bool(np.isfinite(log.rating).all())


def repeat_share(log: Interactions) -> float:
    """The share of the events that repeat an item of their user."""
    pairs = len(np.unique(log.user.astype(np.int64) * len(log.items) + log.item))
    return 1 - pairs / max(1, len(log))


def check_impressions(log: Interactions, kept: float, left: float) -> None:
    """The share of impressions that a log records matters only where there are some to learn from."""
    if kept == 1 or left > 0:
        return
    rows = 0 if log.clicked is None else int((~log.clicked).sum())
    raise UnveilError(
        "the log has too few impressions without a click for this to matter",
        where="--impressions",
        found=f"{rows:,} such rows",
        expected=f"at least {_FEWEST_IMPRESSIONS} to learn from",
        hint="Leave the option out, or name the column that says whether a row was clicked with --clicked-col.",
    )


def check_items(items: int, whose: str) -> None:
    """Before the first training: enough items to fill a list."""
    if items < _LIST:
        raise UnveilError(
            f"too few items to be ranked in {whose}",
            found=items,
            expected=f"at least {_LIST}",
            hint="Take more users with --users, or a log or world with more items.",
        )


@dataclass(frozen=True)
class Candidates:
    """The arms that are tried: those that could be used, and those that know the ground truth."""

    usable: tuple[str, ...]
    ceilings: tuple[str, ...]

    @property
    def arms(self) -> tuple[str, ...]:
        """All of them, naive first."""
        return (*self.usable, *self.ceilings)


def candidates(estimators: Sequence[str], propensities: Sequence[str], clips: Sequence[str]) -> Candidates:
    """Naive and every combination that fits; beside them each estimator with the true θ, and the ideal loss."""
    named = [name for name in dict.fromkeys(estimators) if name not in (BASE, BOUND)]
    usable = [arm for name in named for arm in _arms(name, propensities, clips)]
    ceilings = [f"{name}@{TRUE_THETA}" for name in named if estimator(name).needs in ("static", "temporal")]
    return Candidates((BASE, *dict.fromkeys(usable)), (*ceilings, BOUND))


def _arms(name: str, propensities: Sequence[str], clips: Sequence[str]) -> list[str]:
    chosen = estimator(name)
    if chosen.needs not in ("static", "temporal"):
        return [name]
    weights = issubclass(chosen, InversePropensity)  # needs θ of the chosen item alone, and may be clipped
    found = [each for each in propensities if _fits(each, chosen.needs, for_all=not weights)]
    clippable = issubclass(chosen, InversePropensity) and not chosen.cuts
    clipped = [f"+clip={clip}" if clip else "" for clip in clips] if clippable else [""]
    return [f"{name}@{each}{clip}" for each in found for clip in clipped]


def _fits(propensity: str, kind: str, *, for_all: bool) -> bool:
    try:
        name = registered(propensity, kind)
    except UnveilError:
        return False
    return not (for_all and PROPENSITIES[name].source in OF_EVENTS)


def uses_ratings(arm: str) -> bool:
    """Whether an arm learns from ratings, by its loss or by its propensity."""
    variant = Variant.of(arm)
    needs = estimator(variant.estimator).needs
    if needs not in ("static", "temporal") or variant.propensity in (None, TRUE_THETA):
        return needs == "ratings"
    return PROPENSITIES[registered(variant.propensity, needs)].source == "ratings"


def from_a_log() -> list[str]:
    """The propensities of the registry that do not need a world."""
    return [name for name in PROPENSITIES if PROPENSITIES[name].source != "truth"]


def probe(names: Iterable[str], log: Interactions, window: int) -> dict[str, str]:
    """name → why it cannot be estimated from this log; empty where it can. Names are those of the registry."""
    train = leave_one_out(Sequences.of(log)).train
    return {name: _problem(name, train, log, window) for name in names}


def _problem(name: str, train: Sequences, log: Interactions, window: int) -> str:
    try:
        build(name, {}, train, window=window, log=log)
    except UnveilError as error:
        return str(error)
    return ""


def check_used(propensities: Sequence[str], estimators: Sequence[str]) -> None:
    """Before a log is read: each propensity that is required is used by an estimator."""
    for name in propensities:
        if not any("@" in arm for arm in candidates(estimators, (name,), ("",)).usable):
            raise UnveilError(
                "no estimator that is tried can use this propensity",
                where=f"--propensities {name}",
                found=", ".join(estimators),
                hint="Name others with --estimators, or leave it out.",
            )


def check_columns(propensities: Sequence[str], log: Interactions, *, recorded: bool) -> None:
    """Before any work is done: the columns that required propensities need, in the log and in drawn logs.

    Drawn logs record impressions if the user's log does (`recorded`). Nothing is fitted.
    """
    world = World.builtin(WorldSpec(users=12, items=10, steps=8), seed=0)
    drawn = world.log(np.random.default_rng(0), ratings_noise=1.0, impressions=1.0 if recorded else None)
    for name in propensities:
        real = [_lacks(each, log) for each in _kinds(name)]
        if all(real):
            raise _unavailable(name, _REAL, str(real[0]))
        missing = [_lacks(each, drawn) for each in _kinds(name)]
        if missing[0] is not None and all(missing):
            raise _unavailable(name, _DRAWN, missing[0].problem)


def check_probed(propensities: Sequence[str], real: Mapping[str, str], drawn: Mapping[str, str]) -> None:
    """Before the first training: required propensities could be fitted."""
    for whose, why in ((_REAL, real), (_DRAWN, drawn)):
        for name in propensities:
            reasons = [why[each] for each in _kinds(name) if each in why]
            if reasons and all(reasons):
                raise _unavailable(name, whose, reasons[0])


def _unavailable(name: str, whose: str, why: str) -> UnveilError:
    return UnveilError(f"cannot be had from {whose}: {why}", where=f"--propensities {name}")


def _kinds(wanted: str) -> list[str]:
    """The propensities of the registry that people call so."""
    return [name for name in PROPENSITIES if family(name) == wanted]


def _lacks(name: str, log: Interactions) -> UnveilError | None:
    """Why a propensity cannot even be made from a log."""
    try:
        PROPENSITIES.build(name, {}, *parts(PROPENSITIES[name], log, None))
    except UnveilError as error:
        return error
    return None


def check_estimator(name: str) -> None:
    """An estimator by its name alone."""
    if "@" in name or "+" in name:
        raise UnveilError(
            "estimators are named alone here",
            where="--estimators",
            found=name,
            hint="Name propensities with --propensities, clips with --clips, and other options with "
            "--set ESTIMATOR:estimator.NAME=VALUE.",
        )
    estimator(name)


def uses_impressions(recipe: Recipe) -> bool:
    """Whether it learns exposure from impressions without a click."""
    name = str(recipe.propensity["name"])
    return name in list(PROPENSITIES) and PROPENSITIES[name].source == "impressions"


def with_rate(rate: float, propensity: str) -> dict[str, Any]:
    """The setting that gives a propensity the share of impressions that a log records, where it has one."""
    return {"propensity.rate": rate} if "rate" in PROPENSITIES.options(propensity) else {}
