"""What a log allows: some of its users, its shape, and the estimators and propensities that can be tried on it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from unveil.data.describe import gini
from unveil.data.interactions import Interactions, Sequences
from unveil.data.splits import leave_one_out
from unveil.errors import UnveilError
from unveil.estimators.base import estimator
from unveil.estimators.inverse import InversePropensity
from unveil.propensity.base import OF_EVENTS, PROPENSITIES, PropensityModel
from unveil.propensity.build import build, parts
from unveil.propensity.impressions import ImpressionGroups, training_skips
from unveil.simulation.builtin import WorldSpec
from unveil.simulation.world import World
from unveil.studies.arms import TRUE_THETA, Variant, family, propensity_settings
from unveil.studies.results import BASE, BOUND

#: The kinds of propensity that estimators need.
KINDS = ("static", "temporal")
#: Fewer impressions say nothing, and drawn logs that record as many might record none.
_FEWEST_IMPRESSIONS = 30
#: Lists of so many items are evaluated.
_LIST = 10


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
        events = log.interacted()
        count_V = np.sort(np.bincount(events.item, minlength=1))[::-1]
        count_V = count_V[count_V > 0]
        users = len(np.unique(events.user))
        head = count_V[: max(1, len(count_V) // 10)].sum() / max(1, count_V.sum())
        length = len(events) / max(1, users)
        return cls(users, len(count_V), len(events), length, float(gini(count_V)), round(float(head), 6))


def some_users(log: Interactions, most: int, seed: int) -> Interactions:
    """The rows of at most so many random users with a history; of impressions, those of items with an interaction."""
    count_U = np.bincount(log.interacted().user, minlength=len(log.users))
    able_U = np.flatnonzero(count_U >= 3)  # two are held out
    if not len(able_U):
        raise UnveilError("no user has a history of three events or more: there is nothing to hold out")
    if len(able_U) > most:
        able_U = np.random.default_rng([seed, most]).choice(able_U, most, replace=False)
    return log.where(np.isin(log.user, able_U)).compact().within_interacted()


def impressions_per_event(log: Interactions) -> float:
    """Impressions without a click that can be learnt from, for each training event; 0 where they are too few."""
    train = leave_one_out(Sequences.of(log)).train
    left = training_skips(log, train)
    return left / len(train) if left >= _FEWEST_IMPRESSIONS else 0.0


def check_impressions(share: float, left: float, log: Interactions) -> None:
    """The share of impressions that a log records matters only where there are some to learn from."""
    if share < 1 and left == 0:
        rows = 0 if log.clicked is None else int((~log.clicked).sum())
        raise UnveilError(
            "the log has too few impressions without a click for this to matter",
            where="--impressions",
            found=f"{rows:,} such rows",
            expected=f"at least {_FEWEST_IMPRESSIONS} to learn from",
            hint="Leave the option out, or name the column of clicks with --clicked-col.",
        )


def check_items(items: int, whose: str) -> None:
    """Before the first training: enough items to fill a list."""
    if items < _LIST:
        hint = "Take more users with --users, or a log or world with more items."
        problem = f"too few items to be ranked in {whose}"
        raise UnveilError(problem, found=items, expected=f"at least {_LIST}", hint=hint)


class Candidates(NamedTuple):
    """The arms that are tried: those that could be used, naive first, and those that know the ground truth."""

    usable: tuple[str, ...]
    ceilings: tuple[str, ...]

    @property
    def arms(self) -> tuple[str, ...]:
        return self.usable + self.ceilings


def candidates(estimators: Sequence[str], propensities: Sequence[str], clips: Sequence[str]) -> Candidates:
    """Naive and every combination that fits; beside them each estimator with the true θ, and the ideal loss."""
    names = dict.fromkeys(estimator(name).name for name in estimators if name not in (BASE, BOUND))
    usable = [arm for name in names for arm in _arms(name, propensities, clips)]
    ceilings = [f"{name}@{TRUE_THETA}" for name in names if estimator(name).needs in KINDS]
    return Candidates((BASE, *dict.fromkeys(usable)), (*ceilings, BOUND))


def for_log(
    estimators: Sequence[str], propensities: Sequence[str], clips: Sequence[str], log: Interactions
) -> tuple[Candidates, dict[str, str]]:
    """The candidates without those that a log cannot serve; these by name, with the reason."""
    need = [name for name in estimators if estimator(name).needs == "ratings"]
    rating_N = log.interacted().rating if need else None
    rated = rating_N is not None and bool(np.isfinite(rating_N).all())
    refused = {} if rated else dict.fromkeys(need, "not every event of the log has a rating")
    found = candidates([name for name in estimators if name not in refused], propensities, clips)
    if (groups := ImpressionGroups.of(log)) and groups.is_feed:
        choosing = [arm for arm in found.usable if arm.startswith("corrected") and learns_from(arm) == "impressions"]
        refused |= dict.fromkeys(choosing, "the log is a feed of one item at a time: users do not choose among several")
    return found._replace(usable=tuple(arm for arm in found.usable if arm not in refused)), refused


def _arms(name: str, propensities: Sequence[str], clips: Sequence[str]) -> list[str]:
    chosen = estimator(name)
    if chosen.needs not in KINDS:
        return [name]
    weights = issubclass(chosen, InversePropensity)  # needs θ of the chosen item alone, and may be clipped
    clippable = issubclass(chosen, InversePropensity) and not chosen.cuts
    clipped = [f"+clip={clip}" if clip else "" for clip in clips] if clippable else [""]
    models = {each: [own for own in _members(each).values() if own.kind == chosen.needs] for each in propensities}
    fitting = [each for each, own in models.items() if own and (weights or own[0].source not in OF_EVENTS)]
    return [f"{name}@{each}{clip}" for each in fitting for clip in clipped]


def _members(wanted: str) -> dict[str, type[PropensityModel]]:
    """The propensities of the registry that people call so."""
    return {name: PROPENSITIES[name] for name in PROPENSITIES if family(name) == wanted}


def learns_from(arm: str) -> str:
    """What an arm needs beside interactions, by its loss or by its propensity: ratings, impressions, nothing, …"""
    variant = Variant.of(arm)
    needs = estimator(variant.estimator).needs
    if needs not in KINDS:
        return needs
    return PROPENSITIES[propensity_settings(variant.propensity or TRUE_THETA, needs, 0)["propensity.name"]].source


def from_a_log() -> list[str]:
    """The propensities of the registry that do not need a world."""
    return [name for name in PROPENSITIES if PROPENSITIES[name].source != "truth"]


def probe(names: Iterable[str], log: Interactions, window: int) -> dict[str, str]:
    """name → why it cannot be estimated from this log; empty where it can. Names are those of the registry."""
    train = leave_one_out(Sequences.of(log)).train
    return _reasons(names, lambda name: build(name, {}, train, window=window, log=log))


def _reasons(names: Iterable[str], attempt: Callable[[str], object], *, hints: bool = True) -> dict[str, str]:
    found = dict.fromkeys(names, "")
    for name in found:
        try:
            attempt(name)
        except UnveilError as error:
            found[name] = str(error) if hints else error.problem
    return found


def check_columns(propensities: Sequence[str], log: Interactions, *, recorded: bool) -> None:
    """The columns that required propensities need are there in the log and in drawn ones. Nothing is fitted."""

    def build_unfitted(log: Interactions, name: str) -> object:
        return PROPENSITIES.build(name, {}, *parts(PROPENSITIES[name], log, None))

    world = World.builtin(WorldSpec(users=12, items=10, steps=8), seed=0)
    drawn = world.log(np.random.default_rng(0), ratings_noise=1.0, impressions=1.0 if recorded else None)
    names = [name for wanted in propensities for name in _members(wanted)]
    real = _reasons(names, partial(build_unfitted, log))
    check_available(propensities, real, _reasons(names, partial(build_unfitted, drawn), hints=False))


def check_available(propensities: Sequence[str], real: Mapping[str, str], drawn: Mapping[str, str]) -> None:
    """Required propensities can be had: `real` and `drawn` say why one cannot, from the log and from drawn ones."""
    for whose, why in (("this log", real), ("logs that are drawn from a world", drawn)):
        for name in propensities:
            reasons = [why[each] for each in _members(name) if each in why]
            if reasons and all(reasons):
                raise UnveilError(f"cannot be had from {whose}: {reasons[0]}", where=f"--propensities {name}")
