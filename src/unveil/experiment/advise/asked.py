"""What is asked of the advice, and the plan that comes of it: what is not said is as the effort has it."""

from dataclasses import dataclass
from typing import TypeVar

from unveil.data.filters import LogSource
from unveil.errors import unknown
from unveil.experiment.advise.plan import AdvicePlan
from unveil.experiment.advise.scenarios import EFFORTS, Effort, scenarios
from unveil.experiment.advise.source import left_behind, longest, read_shown
from unveil.experiment.advise.study import AdviceStudy
from unveil.studies.arms import families

#: Of a fitted world, unless told otherwise.
_MOST_STEPS = 100
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The log apart, all that `unveil advise` takes. None: as the effort has it."""

    effort: str = "quick"
    estimators: tuple[str, ...] | None = None
    propensities: tuple[str, ...] | None = None  # families of them; none named: all that the log can give
    clips: tuple[str, ...] | None = None
    choices: tuple[str, ...] | None = None
    severities: tuple[float, ...] | None = None
    replicates: int | None = None
    worlds: int | None = None
    users: int | None = None
    steps: int | None = None
    fit: str = "posterior"
    liked: tuple[float, ...] = ()
    impressions: float = 1.0
    world: str | None = None
    preset: str = "quick"
    changes: tuple[str, ...] = ()
    seed: int = 0

    def plan(self, source: LogSource) -> AdvicePlan:
        """For that log, which is looked at: how long its histories are, and how many impressions it keeps."""
        default = effort_of(self.effort)
        severities = given(self.severities, default.severities)
        return AdvicePlan(
            source,
            self._study(source, given(self.users, default.users)),
            scenarios(given(self.choices, default.choices), severities, self.liked),
            worlds=given(self.worlds, default.worlds if self.world in (None, "builtin") else 1),
            replicates=given(self.replicates, default.replicates),
            estimators=given(self.estimators, default.estimators),
            clips=given(self.clips, default.clips),
            propensities=_known(self.propensities, default.propensities),
            insist=self.propensities is not None,
        )

    def _study(self, source: LogSource, users: int) -> AdviceStudy:
        log = read_shown(source, users, self.seed)
        steps = _MOST_STEPS if self.world is not None else min(_MOST_STEPS, longest(log.interacted()))
        return AdviceStudy(
            preset=self.preset,
            users=users,
            steps=given(self.steps, steps),
            fit=self.fit,
            liked=self.liked,
            world=self.world,
            seed=self.seed,
            changes=self.changes,
            left=left_behind(log),
            impressions=self.impressions,
        )


def given(said: T | None, default: T) -> T:
    """What was said or, if nothing was, the default."""
    return default if said is None else said


def effort_of(name: str) -> Effort:
    """How much is tried; an unknown word suggests the nearest."""
    if name not in EFFORTS:
        raise unknown("effort", name, EFFORTS)
    return EFFORTS[name]


def _known(said: tuple[str, ...] | None, default: tuple[str, ...]) -> tuple[str, ...]:
    """A name that nobody has is refused; those of an effort may come later."""
    if said is None:
        return tuple(name for name in default if name in families())
    for name in said:
        if name not in families():
            raise unknown("propensity", name, families())
    return said
