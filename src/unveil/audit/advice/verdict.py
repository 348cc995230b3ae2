"""What the figures come to, in a few sentences for those who read no further."""

from unveil.audit.advice.base import share
from unveil.audit.advice.modelling import MUCH, ordered
from unveil.audit.advice.weighting import mostly_still, moves
from unveil.audit.figures import Figures


def verdict(found: Figures) -> str:
    """Exposure, popularity, order, evaluation: a sentence each."""
    return " ".join(each for each in (_exposure(found), _popularity(found), _order(found), _evaluation(found)) if each)


def _exposure(found: Figures) -> str:
    known = found.exposure
    if known.logged_ess is not None:
        return "This log says how likely each row was to be shown: it can be debiased, and the result checked."
    if known.impressions is not None:
        return "This log says what was shown and left: exposure can be learnt from it, apart from taste."
    source = "popularity and ratings" if "rating" in known.columns else "popularity"
    return (
        f"This log says what users took, not what they were shown: exposure can only be guessed from {source}, and "
        f"no debiased result on it can be proved."
    )


def _popularity(found: Figures) -> str:
    head = f"A tenth of the items takes {share(found.concentration.head['10%'])} of the events"
    along = {"with the step": found.histories, "with the calendar": found.calendar}
    seen = {name: motion for name, motion in along.items() if motion is not None}
    if not seen:
        return f"{head}; too few events to see whether popularity moves."
    how = "moves" if any(not mostly_still(motion) for motion in seen.values()) else "hardly moves"
    moving = [
        f"{share(motion.rejecting.share)} of {motion.rejecting.items:,} tested items {name}"
        for name, motion in seen.items()
        if moves(motion)
    ]
    return f"{head}, and popularity {f'{how}: ' + ', '.join(moving) if moving else 'stands still'}."


def _order(found: Figures) -> str:
    if found.order is None:
        return ""
    if not ordered(found.order):
        return "The order of events tells nothing that one step back can see."
    return f"The order of events carries {'information' if found.order.ratio >= MUCH else 'a little information'}."


def _evaluation(found: Figures) -> str:
    leak = found.leakage
    if leak is not None and leak.later > 0.01:
        later = f"{share(leak.later)} of its training events are later than the case, on average"
        return f"Leave-one-out would learn from the future: {later}."
    return "" if leak is not None else "Whether leave-one-out learns from the future cannot be seen."
