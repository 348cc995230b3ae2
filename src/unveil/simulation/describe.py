"""A world in figures, and a log drawn from it beside what it hides.

Shapes: N events, U users, V items, T steps, B slots or events of one block.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from unveil.data import describe as logs
from unveil.data.describe import gini
from unveil.data.describe import rows as rows
from unveil.data.interactions import Interactions
from unveil.propensity.factors import Floats, Values
from unveil.propensity.weights import diagnose
from unveil.simulation.world import World

_BLOCK = 512  # slots or events


@dataclass(frozen=True)
class Spread:
    """Mean of a probability over slots and items, and the standard deviation of its means over each side."""

    mean: Annotated[float, "{of}, mean", "{mean:.4f}"]
    over_items: Annotated[float, "  standard deviation over items", "{over_items:.4f}"]
    over_users: Annotated[float, "  standard deviation over users", "{over_users:.4f}"]
    over_steps: Annotated[float, "  standard deviation over steps", "{over_steps:.4f}"]


@dataclass(frozen=True)
class WorldDescription:
    """How large a world is, how personal its relevance, how unequal its exposure."""

    users: Annotated[int, "users", "{users:,}"]
    items: Annotated[int, "items", "{items:,}"]
    steps: Annotated[int, "steps", "{steps:,}"]
    #: User-step pairs: the most interactions that a log can have.
    slots: Annotated[int, "slots: users × the steps at which they are there", "{slots:,}"]
    severity: Annotated[float, "severity p", "{severity:g}"]
    favourites: Annotated[int, "favourites: distinct items of highest γ, all users, last step", "{favourites:,}"]
    commonest_favourite: Annotated[float, "  users who share the most common one", "{commonest_favourite:.1%}"]
    favourites_of_a_user: Annotated[float, "  of one user along the steps", "{favourites_of_a_user:.1f}"]  # on average
    relevance: Annotated[Spread, "relevance γ", ""]
    exposure: Annotated[Spread, "exposure θ", ""]
    exposure_gini: Annotated[float, "  Gini coefficient over items", "{exposure_gini:.2f}"]  # of their mean exposure
    exposed_per_slot: Annotated[float, "  items exposed per slot", "{exposed_per_slot:,.1f}"]  # on average


def describe(world: World) -> WorldDescription:
    """Look at the favourites of all users, and at relevance and exposure over evenly spread slots."""
    relevance, exposure = table_means(world, world.relevance), table_means(world, world.exposure)
    favourite_V = favourites(world)
    own = [(user, np.arange(world.start_U[user], world.n_steps)) for user in _spread(world.n_users, 100)]
    distinct = [len(np.unique(world.ideal_target(np.full(len(step_B), user), step_B))) for user, step_B in own]
    return WorldDescription(
        users=world.n_users,
        items=world.n_items,
        steps=world.n_steps,
        slots=len(world.slots()[0]),
        severity=world.severity,
        favourites=int((favourite_V > 0).sum()),
        commonest_favourite=float(favourite_V.max() / world.n_users),
        favourites_of_a_user=float(np.mean(distinct)),
        relevance=relevance.spread,
        exposure=exposure.spread,
        exposure_gini=gini(exposure.total_V),
        exposed_per_slot=float(exposure.total_V.sum() / exposure.step_2T[1].sum()),
    )


def favourites(world: World) -> NDArray[np.int64]:
    """How many users like each item best at the last step."""
    count_V = np.zeros(world.n_items, np.int64)
    for user_B in np.array_split(np.arange(world.n_users), -(-world.n_users // _BLOCK)):
        best_B = world.ideal_target(user_B, np.full(len(user_B), world.n_steps - 1))
        count_V += np.bincount(best_B, minlength=world.n_items)
    return count_V


def _spread(many: int, few: int) -> NDArray[np.int64]:
    return np.linspace(0, many - 1, min(few, many)).astype(np.int64)


Slots = tuple[NDArray[Any], NDArray[Any]]


class TableMeans(NamedTuple):
    """Sums of a table of probabilities over slots, by item; of its means by user and by step, and their numbers."""

    total_V: Values
    user_2U: Values
    step_2T: Values

    @property
    def by_step(self) -> Values:
        """The means at the steps that were looked at."""
        total_T, count_T = self.step_2T[:, self.step_2T[1] > 0]
        return np.asarray(total_T / count_T)

    @property
    def spread(self) -> Spread:
        slots, (total_U, count_U) = self.step_2T[1].sum(), self.user_2U[:, self.user_2U[1] > 0]
        mean, over_items = self.total_V.sum() / (slots * len(self.total_V)), (self.total_V / slots).std()
        return Spread(float(mean), float(over_items), float((total_U / count_U).std()), float(self.by_step.std()))


def table_means(world: World, table: Callable[..., Floats], slots: Slots | None = None) -> TableMeans:
    """Of these slots; by default of up to 20,000 evenly spread ones."""
    user_S, step_S = slots or world.slots()
    found = TableMeans(np.zeros(world.n_items), np.zeros((2, world.n_users)), np.zeros((2, world.n_steps)))
    looked_at = _spread(len(user_S), 20_000 if slots is None else len(user_S))
    for rows_B in np.array_split(looked_at, -(-len(looked_at) // _BLOCK)):
        user_B, step_B = user_S[rows_B], step_S[rows_B]
        value_BV = table(user_B, step_B)
        found.total_V[:] += value_BV.sum(0, dtype=np.float64)
        mean_B = value_BV.mean(1, dtype=np.float64)
        for index_B, (total, count) in ((user_B, found.user_2U), (step_B, found.step_2T)):
            total += np.bincount(index_B, weights=mean_B, minlength=len(total))
            count += np.bincount(index_B, minlength=len(count))
    return found


SEVERITIES = (1.0, 2.0, 3.0, 4.0)
_SEASONAL_ITEMS = 5


@dataclass(frozen=True, eq=False)
class WorldLog:
    """A log drawn from a world; an event's most relevant item is that of highest γ for its user at its step."""

    world: World
    log: Interactions
    figures: logs.Description
    relevant_V: NDArray[np.int64]  # at how many events each item was the most relevant one
    chosen_V: NDArray[np.int64]  # how many events each item has
    hits: float  # share of the events whose item is the most relevant one
    lost: float  # mean over events of γ of the most relevant item − γ of the chosen one
    relevant_theta_N: NDArray[np.float32]  # θ of the most relevant item of each event

    @classmethod
    def draw(cls, world: World, seed: int) -> "WorldLog":
        log = world.log(np.random.default_rng(seed))
        assert log.step is not None
        blocks = [slice(start, start + _BLOCK) for start in range(0, len(log), _BLOCK)]
        best_N = np.concatenate([world.ideal_target(log.user[part], log.step[part]) for part in blocks])
        gamma_best_N, gamma_N = (world.relevance_of(log.user, item_N, log.step) for item_N in (best_N, log.item))
        return cls(
            world=world,
            log=log,
            figures=logs.describe(log),
            relevant_V=np.bincount(best_N, minlength=world.n_items),
            chosen_V=np.bincount(log.item, minlength=world.n_items),
            hits=float((best_N == log.item).mean()),
            lost=float((gamma_best_N - gamma_N).mean()),
            relevant_theta_N=world.exposure_of(log.user, best_N, log.step),
        )

    @property
    def theta_N(self) -> Values:
        assert self.log.propensity is not None
        return self.log.propensity

    @property
    def effective_share(self) -> float:
        """(Σ w)² / (N Σ w²) with w = 1/θ: the share of the events that weighting leaves."""
        return diagnose(torch.from_numpy(1 / self.theta_N)).ess_share

    @cached_property
    def item_means(self) -> tuple[Values, Values]:
        """Mean γ and mean θ of each item, over the user and the step of every event."""
        assert self.log.step is not None
        tables, slots = (self.world.relevance, self.world.exposure), (self.log.user, self.log.step)
        gamma_V, theta_V = (table_means(self.world, table, slots).total_V / len(self.log) for table in tables)
        return gamma_V, theta_V

    @cached_property
    def seasons(self) -> dict[str, Values]:
        """Mean θ over all users along the steps, of the items of highest mean exposure."""
        world, user_U = self.world, np.arange(self.world.n_users)

        def mean(item: int, step: int) -> float:
            return float(world.exposure_of(user_U, np.full_like(user_U, item), np.full_like(user_U, step)).mean())

        most = np.argsort(-self.item_means[1], kind="stable")[:_SEASONAL_ITEMS]
        return {world.items[int(v)]: np.array([mean(v, t) for t in range(world.n_steps)]) for v in most}


def at_severities(world: World, seed: int) -> list[WorldLog]:
    """Logs of the world with milder and more severe exposure, its own among them, from the same random numbers."""
    return [WorldLog.draw(world.with_severity(p), seed) for p in sorted({*SEVERITIES, world.severity})]
