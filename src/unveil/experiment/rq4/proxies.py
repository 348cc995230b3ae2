"""What stands in for exposure that nobody recorded, arm by arm: every gain is one under such a proxy."""

from collections.abc import Iterator

from unveil.experiment.rq4.run import RealPlan
from unveil.propensity.base import PROPENSITIES
from unveil.propensity.popularity import Popularity
from unveil.report.names import listed, named
from unveil.training.fit import propensity_name

_NOBODY = "Nobody recorded what users were shown here."
_WEIGHTS_TOO = (
    "Popularity stands in for exposure, in what {arms} {are} told and in the negatives alike: every such figure is "
    "under the popularity proxy."
)
_NEGATIVES = (
    "Popularity stands in for exposure in the negatives: what is ranked against them is under the popularity proxy."
)


def proxies(plan: RealPlan) -> list[str]:
    """The popularity of the paper first, then what each other arm is told."""
    told = dict(_told(plan))
    popular = [arm for arm, name in told.items() if issubclass(PROPENSITIES[name], Popularity)]
    others = {arm: name for arm, name in told.items() if arm not in popular}
    are = "is" if len(popular) == 1 else "are"
    first = _WEIGHTS_TOO.format(arms=listed(popular), are=are) if popular else _NEGATIVES
    known = any(not _assumes(name) for name in others.values())
    return [first if known else f"{_NOBODY} {first}", *(_other(arm, name) for arm, name in others.items())]


def _told(plan: RealPlan) -> Iterator[tuple[str, str]]:
    """Arm and propensity, where it uses one."""
    for arm in dict.fromkeys(plan.estimators):
        name = propensity_name(plan.study.recipe(arm, 0))
        if name is not None:
            yield arm, name


def _other(arm: str, name: str) -> str:
    if not (assumes := _assumes(name)):
        return f"{named(arm)} is told what {name} makes of the log’s own record of exposure."
    return f"{named(arm)} is told θ̂ by {name}, assuming {assumes}: what it gains is under that assumption."


def _assumes(name: str) -> str:
    """What an estimate of exposure rests on; empty where exposure was recorded."""
    return str(getattr(PROPENSITIES[name], "assumes", ""))
