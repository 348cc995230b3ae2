"""A cell: one candidate trained on one draw of one scenario, and judged; and what can be had at all."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from unveil.data.filters import LogSource
from unveil.data.interactions import Interactions
from unveil.data.sequences import Sequences
from unveil.data.splits import leave_one_out
from unveil.experiment.advise.candidates import probe
from unveil.experiment.advise.scenarios import Scenario
from unveil.experiment.advise.source import Looks, read_shown
from unveil.experiment.advise.study import AdviceStudy, by_impressions, with_rate
from unveil.experiment.reproduce.cell import judged
from unveil.experiment.reproduce.worlds import place, ratings_noise
from unveil.runs.workers import OnProgress
from unveil.simulation.generate import rate_that_leaves
from unveil.simulation.world import World
from unveil.studies.arms import seconds_of
from unveil.studies.trial import TrialContext

#: Seconds of a cell beside its training: propensities, judging, and its part of drawing the log.
_BESIDE = 2.0


@dataclass(frozen=True)
class AdviceCell:
    """One training and its judgement. The log is drawn again in each process, always the same."""

    study: AdviceStudy
    folder: Path
    draw: int
    scenario: Scenario
    replicate: int
    arm: str
    size: tuple[int, int, int] = (500, 1000, 20_000)  # users, items, events, for the cost

    @property
    def key(self) -> str:
        """d0-rational_exposed-p1-r0-naive; with impressions, how many there are for each event."""
        kept = f"-i{self.study.left:.3g}" if by_impressions(self.study.recipe(self.arm, 0)) else ""
        return f"d{self.draw}-{self.scenario.key}-r{self.replicate}-{self.arm}{kept}".replace(":", "-")

    @property
    def cost(self) -> float:
        """About the seconds it takes on one core."""
        return _BESIDE + seconds_of(self.study.recipe(self.arm, 0), self.size)

    def run(self, tell: OnProgress) -> Mapping[str, Any]:
        """Train, judge, and tell."""
        world = self.study.number(self.draw, self.scenario)
        recipe = self.study.recipe(self.arm, self.study.training_seed(world, self.scenario, self.replicate))
        recorded = by_impressions(recipe)
        bench, rate = _bench(self.study, self.folder, world, self.scenario, self.replicate, recorded)
        if recorded:
            recipe = recipe.changed(with_rate(rate, str(recipe.propensity["name"])))
        where = {"draw": self.draw, "scenario": self.scenario.key, "replicate": self.replicate, "estimator": self.arm}
        return {**where, "looks": asdict(Looks.of(bench.log)), **judged(bench, self.arm, recipe, tell)}


class Drawn(NamedTuple):
    """A scenario's world, as far as the log of a replicate shows it; the log; and what it keeps of what was left."""

    world: World
    log: Interactions
    rate: float  # at which impressions were recorded; 0: none were


def drawn(
    study: AdviceStudy, folder: Path, world: int, scenario: Scenario, replicate: int, recorded: bool = False
) -> Drawn:
    """The log of a replicate, with ratings; `recorded`, with as many impressions for each event as the real one has.

    What was taken is the same with and without them.
    """
    whole = World.load(place(folder, world)).with_severity(scenario.severity)
    log_of = partial(whole.log, choice=scenario.choice, ratings_noise=ratings_noise(whole))
    rng = partial(np.random.default_rng, study.log_seed(world, scenario, replicate))
    taken = log_of(rng()).compact()
    seen = whole.aligned_with(taken)
    if not recorded:
        return Drawn(seen, taken, 0.0)
    rate = rate_that_leaves(seen, len(taken), study.left)
    return Drawn(seen, log_of(rng(), impressions=rate).within_taken(), rate)


@lru_cache(maxsize=2)  # with impressions and without
def _bench(
    study: AdviceStudy, folder: Path, world: int, scenario: Scenario, replicate: int, recorded: bool
) -> tuple[TrialContext, float]:
    """The arms of a draw, one after another in the same process, share its bench; and the rate of its impressions.

    The epoch that is kept is chosen by what was taken, not by the truth: as it will be on the real log.
    """
    recipe = study.recipe("naive", study.training_seed(world, scenario, replicate))
    found = drawn(study, folder, world, scenario, replicate, recorded)
    return TrialContext.of(found.world, found.log, recipe, negatives=0, popular=False, by_log=True), found.rate


@dataclass(frozen=True)
class Probe:
    """Which propensities can be had from the real log, and which from a log that was drawn."""

    study: AdviceStudy
    source: LogSource
    folder: Path
    scenario: Scenario
    names: tuple[str, ...]  # in the registry

    @property
    def key(self) -> str:
        """Told by the names that are asked for, and by the impressions that drawn logs keep."""
        kept = f" {self.study.left:.3g}" if self.study.left else ""
        return f"propensities-{sha256((','.join(self.names) + kept).encode()).hexdigest()[:8]}"

    @property
    def cost(self) -> float:
        """One job."""
        return 1.0

    def run(self, tell: OnProgress) -> Mapping[str, Any]:
        """Build each once; and tell how large a drawn log is."""
        real, log = read_shown(self.source, self.study.users, self.study.seed), self.drawn()
        return {
            "real": self._refusals(real),
            "drawn": self._refusals(log),
            "size": [len(log.users), len(log.items), len(log.interacted())],
        }

    def drawn(self) -> Interactions:
        """The first log that is drawn from the first world."""
        world = self.study.number(0, self.scenario)
        return drawn(self.study, self.folder, world, self.scenario, 0, self.study.left > 0).log

    def _refusals(self, log: Interactions) -> Mapping[str, str]:
        window = self.study.recipe("naive", 0).model.length
        return probe(self.names, leave_one_out(Sequences.of(log)).train, log, window)
