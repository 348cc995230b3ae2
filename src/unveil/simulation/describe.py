"""A world in figures. Shapes: U users, V items, T steps, B slots of one block."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from unveil.data.describe import gini

if TYPE_CHECKING:
    from unveil.simulation.world import World

#: Slots looked at for means over the whole world, and users for their favourites along the steps; evenly spread
#: where there are more.
_SAMPLE = 20_000
_FOLLOWED = 100
_BLOCK = 512


@dataclass(frozen=True)
class Spread:
    """Mean of a probability over slots and items, and the standard deviation of its means over each side."""

    mean: float
    over_users: float
    over_items: float
    over_steps: float


@dataclass(frozen=True)
class WorldDescription:
    """How large a world is, how personal its relevance, how unequal its exposure."""

    users: int
    items: int
    steps: int
    slots: int  # user-step pairs: the most interactions that a log can have
    severity: float
    favourites: int  # distinct items of highest γ, one for each user at the last step
    commonest_favourite: float  # share of the users who have the commonest one
    favourites_of_a_user: float  # distinct items of highest γ along the steps of one user, on average
    relevance: Spread
    exposure: Spread
    exposure_gini: float  # of the items' mean exposure
    exposed_per_slot: float  # items that a user sees at a step, on average


def describe(world: "World") -> WorldDescription:
    """Look at the favourites of all users, and at relevance and exposure over evenly spread slots."""
    user_S, step_S = world.slots()
    spread = _spread(len(user_S), _SAMPLE)
    gamma, theta = _Means(world), _Means(world)
    for rows in np.array_split(spread, -(-len(spread) // _BLOCK)):
        user_B, step_B = user_S[rows], step_S[rows]
        gamma.add(user_B, step_B, world.relevance(user_B, step_B))
        theta.add(user_B, step_B, world.exposure(user_B, step_B))
    favourite_V = favourites(world)
    own = [(user, np.arange(world.start_U[user], world.n_steps)) for user in _spread(world.n_users, _FOLLOWED)]
    distinct = [len(np.unique(world.ideal_target(np.full(len(step_B), user), step_B))) for user, step_B in own]
    return WorldDescription(
        users=world.n_users,
        items=world.n_items,
        steps=world.n_steps,
        slots=len(user_S),
        severity=world.severity,
        favourites=int((favourite_V > 0).sum()),
        commonest_favourite=float(favourite_V.max() / world.n_users),
        favourites_of_a_user=float(np.mean(distinct)),
        relevance=gamma.spread(),
        exposure=theta.spread(),
        exposure_gini=gini(theta.total_V),
        exposed_per_slot=float(theta.total_V.sum() / len(spread)),
    )


def favourites(world: "World") -> NDArray[np.int64]:
    """How many users like each item best at the last step."""
    count_V = np.zeros(world.n_items, np.int64)
    for user_B in np.array_split(np.arange(world.n_users), -(-world.n_users // _BLOCK)):
        best_B = world.ideal_target(user_B, np.full(len(user_B), world.n_steps - 1))
        count_V += np.bincount(best_B, minlength=world.n_items)
    return count_V


def _spread(many: int, few: int) -> NDArray[np.int64]:
    """Some of many places, evenly spread."""
    return np.linspace(0, many - 1, min(few, many)).astype(np.int64)


class _Means:
    """Running sums of a table over slots and items, by user, item and step."""

    def __init__(self, world: "World") -> None:
        self.total_V = np.zeros(world.n_items)
        self.total_U, self.count_U = np.zeros(world.n_users), np.zeros(world.n_users)
        self.total_T, self.count_T = np.zeros(world.n_steps), np.zeros(world.n_steps)

    def add(self, user_B: NDArray[np.int32], step_B: NDArray[np.int32], value_BV: NDArray[np.float32]) -> None:
        self.total_V += value_BV.sum(0, dtype=np.float64)
        mean_B = value_BV.mean(1, dtype=np.float64)
        for index_B, total, count in ((user_B, self.total_U, self.count_U), (step_B, self.total_T, self.count_T)):
            total += np.bincount(index_B, weights=mean_B, minlength=len(total))
            count += np.bincount(index_B, minlength=len(count))

    def spread(self) -> Spread:
        slots = self.count_U.sum()
        return Spread(
            mean=float(self.total_V.sum() / (slots * len(self.total_V))),
            over_users=_deviation(self.total_U, self.count_U),
            over_items=float((self.total_V / slots).std()),
            over_steps=_deviation(self.total_T, self.count_T),
        )


def _deviation(total: NDArray[np.float64], count: NDArray[np.float64]) -> float:
    """Standard deviation of the means of those that were looked at."""
    return float((total[count > 0] / count[count > 0]).std())


def rows(figures: WorldDescription) -> list[tuple[str, str]]:
    """The figures as labelled text, in reading order."""
    return [
        ("users", f"{figures.users:,}"),
        ("items", f"{figures.items:,}"),
        ("steps", f"{figures.steps:,}"),
        ("slots: users × the steps at which they are there", f"{figures.slots:,}"),
        ("severity p", f"{figures.severity:g}"),
        ("favourites: distinct items of highest γ, all users, last step", f"{figures.favourites:,}"),
        ("  users who share the commonest", f"{figures.commonest_favourite:.1%}"),
        ("  of one user along the steps", f"{figures.favourites_of_a_user:.1f}"),
        *_spread_rows("relevance γ", figures.relevance),
        *_spread_rows("exposure θ", figures.exposure),
        ("  Gini coefficient over items", f"{figures.exposure_gini:.2f}"),
        ("  items exposed per slot", f"{figures.exposed_per_slot:,.1f}"),
    ]


def _spread_rows(name: str, spread: Spread) -> list[tuple[str, str]]:
    apart = (("items", spread.over_items), ("users", spread.over_users), ("steps", spread.over_steps))
    return [
        (f"{name}, mean", f"{spread.mean:.4f}"),
        *((f"  standard deviation over {side}", f"{value:.4f}") for side, value in apart),
    ]
