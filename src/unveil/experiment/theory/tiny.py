"""Worlds so small that all that can happen in them can be listed: two users, three items, two steps, 256 logs.

Shapes: U users, V items, T steps.
"""

from dataclasses import dataclass, replace

import numpy as np

from unveil.propensity.factors import Factors
from unveil.simulation.builtin import WorldSpec
from unveil.simulation.world import World

#: A logit at which σ is 1 to the last bit.
_SURE = 60.0
#: How far exposure follows relevance, in logits per standard deviation of the relevance logit.
_FORESIGHT = 2.0


@dataclass(frozen=True)
class Tiny:
    """The same users and items in worlds that differ in one thing each."""

    severity: float = 1.0
    seed: int = 0
    users: int = 2
    items: int = 3
    steps: int = 2

    @property
    def spec(self) -> WorldSpec:
        """Everyone is there at every step, and relevance keeps still so that only exposure can move."""
        return WorldSpec(
            users=self.users,
            items=self.items,
            steps=self.steps,
            tastes=2,
            drift=0.0,
            stay=1.0,
            activity=0.0,
            severity=self.severity,
        )

    def moving(self) -> World:
        """Exposure has a season: θ changes with the step."""
        return World.builtin(self.spec, self.seed)

    def still(self) -> World:
        """No season: θ_sit = θ_si."""
        return World.builtin(replace(self.spec, season=0.0), self.seed)

    def related(self) -> World:
        """Items are shown the more to whom they please: θ and γ go together, yet O and R are drawn apart."""
        return self.moving().with_foresight(_FORESIGHT)

    def all_shown(self) -> World:
        """θ = 1."""
        world = self.moving()
        return replace(world, exposure_logits=Factors.constant(*world.exposure_logits.shape, _SURE))

    def moving_unchosen(self) -> World:
        """Exposure changes with the step, but only that of items which are nobody's favourite."""
        world = self.still()
        favourite_V = np.zeros(self.items, bool)
        for step in range(self.steps):
            favourite_V[world.ideal_target(np.arange(self.users), np.full(self.users, step))] = True
        swing_T = np.linspace(-2.0, 2.0, self.steps)
        swing = Factors.of(np.ones((self.users, 1)), ~favourite_V[:, None], swing_T[:, None])
        return replace(world, exposure_logits=world.exposure_logits.plus(swing))
