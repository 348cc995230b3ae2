"""The tests of all items against one null, corrected for their number. Shapes: V items."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.audit.timing import Floats, false_discovery
from unveil.evaluation.stats import holm

ALPHA = 0.05


@dataclass(frozen=True, eq=False)
class Family:
    """z and p of every item, and p corrected by Holm and by Benjamini and Hochberg (q)."""

    z_V: Floats
    p_V: Floats
    tested_V: NDArray[np.bool_]
    holm_V: Floats
    q_V: Floats

    @classmethod
    def of(cls, z_V: Floats, p_V: Floats, tested_V: NDArray[np.bool_]) -> "Family":
        """Correct the p-values of the tested items; the others have 1."""
        corrected = [np.ones(len(p_V)), np.ones(len(p_V))]
        for values, correct in zip(corrected, (holm, false_discovery), strict=True):
            values[tested_V] = correct(p_V[tested_V])
        return cls(z_V, p_V, tested_V, *corrected)

    @property
    def tested(self) -> int:
        """Items with events enough."""
        return int(self.tested_V.sum())

    @property
    def certain(self) -> int:
        """Items that differ by Holm's correction: hardly one of them by chance."""
        return int((self.holm_V < ALPHA).sum())

    @property
    def discovered(self) -> int:
        """Items that differ by Benjamini and Hochberg's: at most one in twenty by chance."""
        return int((self.q_V < ALPHA).sum())

    def most(self, sign: int, count: int) -> list[int]:
        """The items that differ by Holm's correction and lie furthest to one side, furthest first."""
        order = np.argsort(-sign * self.z_V, kind="stable")
        return [int(item) for item in order if self.holm_V[item] < ALPHA and sign * self.z_V[item] > 0][:count]

    def plain(self) -> dict[str, Any]:
        """The counts."""
        early, late = (int(((self.q_V < ALPHA) & (sign * self.z_V > 0)).sum()) for sign in (-1, 1))
        return {"tested": self.tested, "holm": self.certain, "fdr": self.discovered, "early": early, "late": late}
