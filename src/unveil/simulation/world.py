"""World: users, items and steps whose true relevance and exposure are known.

Shapes: U users, V items, T steps, S slots, B slots asked for, M (user, item, step) triples.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from unveil.data.interactions import Interactions
from unveil.data.vocabulary import Vocabulary
from unveil.errors import UnveilError
from unveil.propensity.factors import Factors, Floats, Indices, sigmoid
from unveil.simulation.generate import Progress, draw_log
from unveil.simulation.impressions import Impressions
from unveil.simulation.ratings import Ratings

if TYPE_CHECKING:
    from unveil.simulation.builtin import WorldSpec
    from unveil.simulation.describe import WorldDescription


@dataclass(frozen=True, eq=False)
class World:
    """γ_sit = σ(relevance logit), θ_sit = σ(exposure logit)^p, both from factors; the U × V × T cube is never made.

    User s is there from step `start_U[s]` to the last, T − 1. `severity` is the exponent p: the higher, the rarer
    exposure, and the more unequal. `origin` says where the world comes from and is kept with it.
    """

    relevance_logits: Factors
    exposure_logits: Factors
    users: Vocabulary
    items: Vocabulary
    start_U: NDArray[np.int32]
    severity: float
    origin: dict[str, Any]

    def __post_init__(self) -> None:
        if not (np.isfinite(self.severity) and self.severity > 0):
            raise UnveilError("the severity is out of range", found=self.severity, expected="a number above 0")
        if not self.relevance_logits.shape == self.exposure_logits.shape == (self.n_users, self.n_items, self.n_steps):
            raise ValueError("relevance, exposure and vocabularies differ in size")
        whole = self.start_U.dtype.kind in "iu" and self.start_U.shape == (self.n_users,)
        if not whole or not ((self.start_U >= 0) & (self.start_U < self.n_steps)).all():
            raise ValueError(f"first steps that are not {self.n_users} whole numbers from 0 to {self.n_steps - 1}")

    @classmethod
    def builtin(cls, spec: "WorldSpec | None" = None, seed: int = 0) -> "World":
        """The world that is generated from a few parameters: no download, the same for the same seed."""
        from unveil.simulation.builtin import WorldSpec, build

        return build(spec or WorldSpec(), seed)

    @classmethod
    def fit(
        cls,
        log: Interactions,
        *,
        steps: int = 100,
        recipe: str = "posterior",
        seed: int = 0,
        progress: Progress | None = None,
    ) -> "World":
        """The world behind a log with ratings, as far as it can be learnt; `origin` says how well it was."""
        from unveil.simulation.fit import Fit, fit_world

        return fit_world(log, Fit(steps=steps, recipe=recipe, seed=seed), progress).world

    def __repr__(self) -> str:
        source = self.origin.get("kind", "unknown origin")
        size = f"{self.n_users:,} users, {self.n_items:,} items, {self.n_steps} steps"
        foresight = f", foresight {self.origin['foresight']:g}" if "foresight" in self.origin else ""
        return f"World({source}: {size}, severity {self.severity:g}{foresight})"

    @property
    def n_users(self) -> int:
        """Number of users."""
        return len(self.users)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.items)

    @property
    def n_steps(self) -> int:
        """Number of time steps, T."""
        return len(self.exposure_logits.W_TK)

    def exposure(self, user_B: Indices, step_B: Indices) -> Floats:
        """θ_BV: how likely each item is to be seen at these slots."""
        return self.exposure_from(self.exposure_logits.logits(user_B, step_B))

    def exposure_of(self, user_M: Indices, item_M: Indices, step_M: Indices) -> Floats:
        """θ_M of one item at each slot."""
        return self.exposure_from(self.exposure_logits.logits_of(user_M, item_M, step_M))

    def exposure_from(self, logit: Floats) -> Floats:
        """θ = σ(logit)^p; small whole exponents, the paper's, by multiplication, far faster than a power."""
        shown = sigmoid(logit)
        if self.severity not in (1, 2, 3, 4):
            return np.asarray(shown ** np.float32(self.severity))
        theta = shown.copy()
        for _ in range(int(self.severity) - 1):
            theta *= shown
        return theta

    def static_exposure(self, user_B: Indices) -> Floats:
        """θ_BV averaged over all T steps: θ_si = (1/T) Σ_t θ_sit, what IPS takes for the propensity."""
        total_BV = np.zeros((len(user_B), self.n_items), np.float64)
        for step in range(self.n_steps):
            total_BV += self.exposure(user_B, np.full(len(user_B), step))
        return (total_BV / self.n_steps).astype(np.float32)

    def relevance(self, user_B: Indices, step_B: Indices) -> Floats:
        """γ_BV: how likely each item is to please at these slots."""
        return sigmoid(self.relevance_logits.logits(user_B, step_B))

    def relevance_of(self, user_M: Indices, item_M: Indices, step_M: Indices) -> Floats:
        """γ_M of one item at each slot."""
        return sigmoid(self.relevance_logits.logits_of(user_M, item_M, step_M))

    def ideal_target(self, user_B: Indices, step_B: Indices) -> NDArray[np.int64]:
        """argmax_i γ_sit: what a user who sees every item would take."""
        return np.asarray(self.relevance_logits.logits(user_B, step_B).argmax(1))

    def slots(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """User and step of every slot, by user, then step: each user from their first step to T − 1."""
        length_U = self.n_steps - self.start_U
        user_S = np.repeat(np.arange(self.n_users, dtype=np.int32), length_U)
        to_the_end_S = np.repeat(np.cumsum(length_U), length_U) - np.arange(len(user_S))
        return user_S, (self.n_steps - to_the_end_S).astype(np.int32)

    def log(
        self,
        rng: np.random.Generator,
        choice: str = "rational_exposed",
        *,
        relevance_draw: bool = True,
        ratings_noise: float | None = None,
        stars: bool = False,
        impressions: float | None = None,
        progress: Progress | None = None,
    ) -> Interactions:
        """Draw a log: what the users took of what they were shown, each event with its own step and propensity.

        With `ratings_noise` every event is rated, with an error of that standard deviation; as `stars`, from 1 to 5.
        With `impressions`, that share of what was shown and left is recorded as well, as rows with `clicked` False.
        """
        return draw_log(
            self,
            rng,
            choice,
            relevance_draw=relevance_draw,
            ratings=None if ratings_noise is None else Ratings(ratings_noise, stars),
            impressions=None if impressions is None else Impressions(impressions),
            progress=progress,
        )

    def with_severity(self, severity: float) -> Self:
        """The same world with θ = σ(exposure logit)^severity."""
        return replace(self, severity=severity)

    def with_foresight(self, strength: float) -> "World":
        """The same world with exposure that follows relevance, by so many logits a standard deviation; 0: as it is.

        The mean of θ stays what it is at the world's own severity: set that first.
        """
        from unveil.simulation.foresight import foreseen

        return foreseen(self, strength)

    def aligned_with(self, log: Interactions) -> "World":
        """The part of the world that a log shows: its users and items, in the log's own dense indices.

        With `log.compact()` these are the users and items that occur in the log: the observed catalogue.
        """
        from unveil.simulation.alignment import aligned

        return aligned(self, log)

    def describe(self) -> "WorldDescription":
        """The world in figures: how personal relevance is, how unequal exposure."""
        from unveil.simulation.describe import describe

        return describe(self)

    def save(self, folder: Path, *, overwrite: bool = False) -> None:
        """Write the world as a folder: factors in safetensors, the rest in JSON."""
        from unveil.simulation.storage import save

        save(self, folder, overwrite=overwrite)

    @classmethod
    def load(cls, folder: Path | str) -> "World":
        """Read a world folder."""
        from unveil.simulation.storage import load

        return load(Path(folder))
