"""The figures of an audit that a run keeps: what is counted at once. `unveil audit` has the rest."""

from dataclasses import asdict
from typing import Any

from unveil.audit.cold import cold
from unveil.audit.concentration import concentration
from unveil.audit.costs import costs
from unveil.audit.leakage import leakage
from unveil.data.splits import Split

#: Events beyond which only counts are made: the other figures hold every event in memory.
MOST = 5_000_000


def audited(split: Split, window: int) -> dict[str, Any]:
    """Concentration, cold cases, training events later than the case, and what weights by popularity would leave.

    `window` is the number of events of each user that the model is trained on.
    """
    head = concentration(split.whole.count_V)
    test = cold(split.whole, {"test": split}).splits.get("test")
    small = len(split.whole) <= MOST
    later = leakage(split) if small else None
    spent = costs(split.train, window) if small and len(split.train) else None
    return {
        "gini": head.gini,
        "head": head.head,
        "cold": None if test is None else asdict(test),
        "leakage": None if later is None else asdict(later),
        "ess_share": None if spent is None else {name: spent.of(name).ess_share for name in ("ips", "itps")},
    }
