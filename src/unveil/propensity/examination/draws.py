"""How sure examination is: the fit repeated on impressions drawn again. Shapes: D draws, P placings, K positions."""

import numpy as np
from numpy.typing import NDArray

from unveil.propensity.examination.counts import Placings
from unveil.propensity.examination.fit import examined

Floats = NDArray[np.float64]


def drawn_again(telling: Placings, add: float, draws: int, rng: np.random.Generator) -> Floats:
    """e_DK of `draws` Poisson bootstraps: each impression counts as often as a Poisson number of mean 1 says.

    As if impressions were independent: those of one page or one person are not quite, and e is a little less sure.
    """
    return np.stack([examined(_again(telling, rng), add) for _ in range(draws)])


def _again(telling: Placings, rng: np.random.Generator) -> Placings:
    """Sums of Poisson numbers are Poisson: counts are drawn at once."""
    clicked_P = rng.poisson(telling.clicked_P).astype(np.float64)
    left_P = rng.poisson(telling.shown_P - telling.clicked_P)
    return telling.counted(clicked_P + left_P, clicked_P)
