"""All figures of one log, side by side."""

from dataclasses import dataclass

from unveil.audit.baselines import Score
from unveil.audit.cold import Cold
from unveil.audit.concentration import Concentration
from unveil.audit.costs import Costs
from unveil.audit.exposure import Exposure
from unveil.audit.leakage import Leakage
from unveil.audit.motion import Motion
from unveil.audit.order import Order
from unveil.audit.repeats import Repeats
from unveil.data.describe import Description

#: The splits that baselines are judged on.
LEAVE_ONE_OUT, TEMPORAL = "leave-one-out", "temporal"


@dataclass(frozen=True)
class Figures:
    """What a log says; None where it cannot say it, for want of a clock, of events or of columns."""

    log: Description
    concentration: Concentration
    histories: Motion | None  # how popularity moves along users' histories
    calendar: Motion | None  # how it moves along the calendar
    order: Order | None
    repeats: Repeats
    leakage: Leakage | None
    cold: Cold
    baselines: tuple[Score, ...]
    costs: Costs
    exposure: Exposure

    def score(self, split: str, baseline: str, protocol: str, metric: str = "NDCG@10") -> Score | None:
        """One figure of the baselines; a protocol may be given without its number of negatives."""
        asked = (split, baseline, metric)
        found = [each for each in self.baselines if (each.split, each.baseline, each.metric) == asked]
        return next((each for each in found if each.protocol.partition("-")[0] == protocol.partition("-")[0]), None)
