"""Ratings of what was taken: how well it was liked, with an error of a stated size. Shapes: N events, P pairs."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from unveil.errors import UnveilError

if TYPE_CHECKING:
    from unveil.simulation.generate import Events
    from unveil.simulation.world import World

#: The scale of the logs that worlds are fitted to.
LEAST, MOST = 1, 5


@dataclass(frozen=True)
class Ratings:
    """r = relevance logit + centre + noise · ε_si, with ε standard normal; as `stars`, rounded to 1 … 5.

    The error is of the user and the item: it stays what it is when the item is taken again, as an opinion does.

    The logit of a world that was fitted to ratings is the rating it foretells, less the centre of the fit: what is
    rated here is on the scale of that log. Where most of what is taken lies above 5, stars say little.
    """

    noise: float = 1.0
    stars: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.noise < float("inf"):
            raise UnveilError("out of range", where="ratings_noise", found=self.noise, expected="0 or more")

    def of(self, world: "World", events: "Events", rng: np.random.Generator) -> NDArray[np.float32]:
        """A rating for every event, from a stream of its own."""
        logit_N = world.relevance_logits.logits_of(events.user_N, events.item_N, events.step_N).astype(np.float64)
        pair_P, nth_N = np.unique(events.user_N.astype(np.int64) * world.n_items + events.item_N, return_inverse=True)
        rating_N = logit_N + _centre(world) + self.noise * rng.standard_normal(len(pair_P))[nth_N]
        if self.stars:
            rating_N = np.clip(np.round(rating_N), LEAST, MOST)
        return rating_N.astype(np.float32)


def _centre(world: "World") -> float:
    return float(world.origin.get("settings", {}).get("centre", 0.0))
