"""A world in figures. Shapes: U users, V items, T steps, B slots of one block."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unveil.data.describe import gini
from unveil.propensity.factors import Floats
from unveil.simulation.world import World

Slots = tuple[NDArray[np.int32], NDArray[np.int32]]

_BLOCK = 512  # slots


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


def describe(world: World) -> WorldDescription:
    """Look at the favourites of all users, and at relevance and exposure over evenly spread slots."""
    user_S, step_S = world.slots()
    looked_at = _spread(len(user_S), 20_000)
    blocks = [(user_S[rows], step_S[rows]) for rows in np.array_split(looked_at, -(-len(looked_at) // _BLOCK))]
    (relevance, _), (exposure, total_V) = (
        _spread_of(world, each, blocks) for each in (world.relevance, world.exposure)
    )
    favourite_V = favourites(world)
    own = [(user, np.arange(world.start_U[user], world.n_steps)) for user in _spread(world.n_users, 100)]
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
        relevance=relevance,
        exposure=exposure,
        exposure_gini=gini(total_V),
        exposed_per_slot=float(total_V.sum() / len(looked_at)),
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


def _spread_of(
    world: World, table: Callable[..., Floats], blocks: Sequence[Slots]
) -> tuple[Spread, NDArray[np.float64]]:
    """Of a table of probabilities over blocks of slots; and its sums over the slots, for each item."""
    total_V = np.zeros(world.n_items)
    by_user, by_step = np.zeros((2, world.n_users)), np.zeros((2, world.n_steps))  # sums, and how many they are of
    for user_B, step_B in blocks:
        value_BV = table(user_B, step_B)
        total_V += value_BV.sum(0, dtype=np.float64)
        mean_B = value_BV.mean(1, dtype=np.float64)
        for index_B, (total, count) in ((user_B, by_user), (step_B, by_step)):
            total += np.bincount(index_B, weights=mean_B, minlength=len(total))
            count += np.bincount(index_B, minlength=len(count))
    slots = by_user[1].sum()
    mean, over_items = float(total_V.sum() / (slots * len(total_V))), float((total_V / slots).std())
    return Spread(mean, _deviation(*by_user), over_items, _deviation(*by_step)), total_V


def _deviation(total: NDArray[np.float64], count: NDArray[np.float64]) -> float:
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
        ("  users who share the most common one", f"{figures.commonest_favourite:.1%}"),
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
