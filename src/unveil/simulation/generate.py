"""Drawing a log from a world, block by block: Y = C · O · R; with ratings and impressions where requested.

Shapes: S slots (all the user-step pairs of a world), B slots of one block, V items, N events, T interactions, U users.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from unveil.propensity.factors import TILE, sigmoid
from unveil.simulation.choice import NOTHING, ChoiceModel

if TYPE_CHECKING:
    from unveil.simulation.world import World

Progress = Callable[[int, int], None]  # slots done, slots in all


def rate_that_leaves(world: "World", events: int, left: float) -> float:
    """The rate that records `left` of the Σ θ − events impressions for each event, at most 1; Σ θ by some slots."""
    user_S, step_S = world.slots()
    some = np.unique(np.linspace(0, len(user_S) - 1, min(4096, len(user_S))).astype(np.int64))
    shown = float(world.exposure(user_S[some], step_S[some]).sum(dtype=np.float64)) * len(user_S) / len(some)
    return min(1.0, left * events / max(shown - events, 1.0))


@dataclass(frozen=True, eq=False)
class Events:
    """Interactions by user, then step; then, where they are recorded, impressions without a click, likewise."""

    user_N: NDArray[np.int32]
    item_N: NDArray[np.int32]
    step_N: NDArray[np.int32]
    clicked_N: NDArray[np.bool_]


def draw(
    world: "World",
    rng: np.random.Generator,
    choice: ChoiceModel,
    *,
    relevance_draw: bool = True,
    impressions: float | None = None,
    block: int | None = None,
    progress: Progress | None = None,
) -> Events:
    """The interactions of one draw: O ~ Ber(θ), C by the choice model, R ~ Ber(γ), kept where C · O · R = 1.

    A slot gives at most one event; items may repeat. Exposure, choice, relevance and recorded impressions have a stream
    of random numbers each, read slot by slot: the draw does not depend on `block`, and worlds that differ in severity,
    and choice models, share it. Without `relevance_draw` R = 1. Impressions without a
    click are recorded with probability `impressions`.
    """
    for_exposure, for_choice, for_relevance, for_record = rng.spawn(4)
    user_S, step_S = world.slots()
    item_S = np.full(len(user_S), NOTHING, np.int32)  # small arrays among the large ones would keep freed memory held
    skipped: list[NDArray[np.int32]] = []
    for at in _blocks(world, block, progress):
        user_B, step_B = user_S[at], step_S[at]
        theta_BV = world.exposure(user_B, step_B)
        logit_BV = world.relevance_logits.logits(user_B, step_B)
        # Double precision: a coarser number could not tell a θ of 1e-8 from one of 6e-8.
        exposed_BV = for_exposure.random(theta_BV.shape) < theta_BV
        item_B = choice(logit_BV, exposed_BV, for_choice.random(len(user_B)))
        at_B = np.arange(len(user_B))
        uniform_B = for_relevance.random(len(user_B))
        clicked_B = (item_B >= 0) & exposed_BV[at_B, item_B]
        if relevance_draw:
            clicked_B &= uniform_B < sigmoid(logit_BV[at_B, item_B])
        item_S[at] = np.where(clicked_B, item_B, NOTHING)
        if impressions is not None:
            left_BV = exposed_BV & (for_record.random(exposed_BV.shape, np.float32) < impressions)
            left_BV[at_B[clicked_B], item_B[clicked_B]] = False
            b_N, item_N = np.nonzero(left_BV)
            skipped.append(np.stack([user_B[b_N], item_N.astype(np.int32), step_B[b_N]]))
    clicked_S = item_S != NOTHING
    kept = np.stack([user_S, item_S, step_S])[:, clicked_S]
    user_N, item_N, step_N = np.concatenate([kept, *skipped], axis=1)
    return Events(user_N, item_N, step_N, np.arange(len(user_N)) < kept.shape[1])


def ratings(world: "World", events: Events, noise: float, stars: bool, rng: np.random.Generator) -> NDArray[np.float32]:
    """r_N = relevance logit + centre + noise · ε_si of the interactions, ε standard normal; as `stars`, from 1 to 5.

    The error ε_si stays when the item is chosen again, as an opinion does. `centre` is that of the world's fit: ratings
    are on the scale of its log. Where most chosen items lie above 5, stars say little.
    """
    user_T, item_T, step_T = (column[events.clicked_N] for column in (events.user_N, events.item_N, events.step_N))
    logit_T = world.relevance_logits.logits_of(user_T, item_T, step_T).astype(np.float64)
    pair_P, nth_T = np.unique(user_T.astype(np.int64) * world.n_items + item_T, return_inverse=True)
    centre = float(world.origin.get("settings", {}).get("centre", 0.0))
    rating_T = logit_T + centre + noise * rng.standard_normal(len(pair_P))[nth_T]
    rating_N = np.full(len(events.clicked_N), np.nan, np.float32)
    rating_N[events.clicked_N] = np.clip(np.round(rating_T), 1, 5) if stars else rating_T
    return rating_N


def _blocks(world: "World", block: int | None, progress: Progress | None) -> Iterator[slice]:
    slots = len(world.slots()[0])
    in_cache = (1 << 18) // max(1, world.n_items)  # few enough numbers to stay in the processor's cache
    # Whole tiles: blocks and tiles begin at the same slots.
    size = max(1, -(-(in_cache if block is None else block) // TILE)) * TILE
    for start in range(0, slots, size):
        yield slice(start, start + size)
        if progress is not None:
            progress(min(start + size, slots), slots)
