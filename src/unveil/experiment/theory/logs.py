"""Every log that a tiny world can give. Shapes: G logs, S slots, V items; V1 is V + 1, the last place for no event."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.errors import UnveilError
from unveil.experiment.theory.laid_open import Table
from unveil.simulation.choice import NOTHING

#: More logs than this take too long to go through one by one.
MOST = 100_000


def all_logs(n_slots: int, n_items: int) -> NDArray[np.int64]:
    """item_GS: each slot gives one of the items or nothing, so there are (V + 1)^S logs."""
    count = (n_items + 1) ** n_slots
    if count > MOST:
        raise UnveilError("too large a world to list its logs", found=f"{count:,} logs", expected=f"at most {MOST:,}")
    return np.indices((n_items + 1,) * n_slots).reshape(n_slots, -1).T + NOTHING


def log_probability(item_GS: NDArray[Any], p_SV1: Table) -> NDArray[np.float64]:
    """P_G = Π_s P(what slot s gave): slots are drawn apart. `NOTHING` reads the last place of a row."""
    p_GS = p_SV1[np.arange(len(p_SV1)), item_GS]
    return np.asarray(p_GS.prod(1))
