"""What IPS and ITPS weights would cost on this log: how many equally weighted events are left. Shapes: M slots."""

from dataclasses import dataclass
from itertools import product

import numpy as np
import torch

from unveil.data.sequences import Sequences
from unveil.data.slots import Slots
from unveil.propensity.base import PropensityModel
from unveil.propensity.popularity import StaticPopularity, TemporalPopularity
from unveil.propensity.weights import diagnose, inverse

WINDOW = 50  # events of each user that a model is trained on: the default length of the network of `unveil train`
EXPONENTS = (1.0, 0.75, 0.5, 0.25)
HALF_WIDTH = 5  # steps on either side over which the smoothed popularity is spread
CLIPPED = (0.0, 0.1, 0.25, 0.5)  # shares of the events whose propensity is clipped


@dataclass(frozen=True)
class Cost:
    """One setting of an estimator, and what it leaves."""

    estimator: str  # ips, itps, or itps-smoothed: popularity spread over five steps on either side
    exponent: float
    clip: float  # of the propensity; 0: none
    clipped: float  # share of the events whose propensity it raises
    ess_share: float  # effective sample size (Σ w)² / Σ w², as a share of the events
    largest_share: float  # of all weight, on one event


@dataclass(frozen=True)
class Costs:
    """Every setting; popularity of the training part stands in for exposure."""

    window: int
    events: int  # of the training part, within the window
    alone: float  # share that is the only one with its item at its step: there θ̂ is a single count
    settings: tuple[Cost, ...]

    def of(self, estimator: str, exponent: float = 1.0, nth_clip: int = 0) -> Cost:
        """One setting; clips are counted from none."""
        found = [each for each in self.settings if each.estimator == estimator and each.exponent == exponent]
        return found[nth_clip]


def costs(train: Sequences, window: int = WINDOW) -> Costs:
    """Weigh every training event by popularity: static, at its step, and at its step and those around it."""
    recent = train.recent(window)
    columns = (recent.user_N, recent.item_N, recent.step_N)
    slots = Slots(*(torch.from_numpy(column_N.astype(np.int64)) for column_N in columns))
    models: dict[str, PropensityModel] = {
        "ips": StaticPopularity(window),
        "itps": TemporalPopularity(window),
        "itps-smoothed": TemporalPopularity(window, half_width=HALF_WIDTH),
    }
    cell_N = recent.step_N.astype(np.int64) * recent.n_items + recent.item_N
    alone = float((np.unique(cell_N, return_counts=True)[1] == 1).sum() / len(cell_N))
    settings = []
    for name, model in models.items():
        theta_M = model.fit(train)(slots)
        ordered = np.sort(theta_M.numpy())
        # Clips raise about these shares of the propensities; they have two digits, to be copied.
        clips = [float(f"{ordered[int(share * len(ordered))]:.1e}") if share else 0.0 for share in CLIPPED]
        for exponent, clip in product(EXPONENTS, clips):
            found = diagnose(inverse(theta_M, clip, exponent))
            clipped = float((theta_M < clip).double().mean())
            settings.append(Cost(name, exponent, clip, clipped, found.ess_share, found.largest_share))
    return Costs(window, len(recent), alone, tuple(settings))
