"""The demo: a built-in world, the log drawn from it, and what four losses learn from that log, judged by the truth."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from unveil.experiment.demo.log import Truth, drawn, severities
from unveil.experiment.outcome import Outcome
from unveil.files import atomic_folder
from unveil.simulation.builtin import WorldSpec
from unveil.simulation.world import World
from unveil.studies.trial import Announcer, run_trial
from unveil.training.recipe import Recipe

ESTIMATORS = ("naive", "ips", "itps", "ideal")

#: Where the demo's training differs from the preset `quick`.
CHANGES: Mapping[str, Any] = {
    "training.epochs": 80,
    "training.patience": None,  # all losses train equally long
    "training.device": "cpu",  # the same figures everywhere
    "training.threads": 1,  # a small network is as quick on one, and the figures do not depend on how many there are
}


def demo_world() -> WorldSpec:
    """Of the severities tried (1, 1.5, 2), 1.5 is the harshest that leaves 1/θ an effective sample above 10%."""
    return WorldSpec(users=1000, severity=1.5)


@dataclass(frozen=True)
class Demo:
    """What the demo is made of. Replicate r repeats everything random, the world included, with the seed + r."""

    spec: WorldSpec = field(default_factory=demo_world)
    recipe: Recipe = field(default_factory=lambda: Recipe.preset("quick").changed(CHANGES))
    estimators: tuple[str, ...] = ESTIMATORS
    negatives: int = 100  # drawn uniformly, and again by popularity
    replicates: int = 1
    seed: int = 0

    @property
    def trainings(self) -> int:
        """How many models are trained in all."""
        return self.replicates * len(self.estimators)

    def sized(self, users: int | None, epochs: int | None) -> Self:
        """Of another size, where one is given."""
        spec = self.spec if users is None else replace(self.spec, users=users)
        recipe = self.recipe if epochs is None else self.recipe.changed({"training.epochs": epochs})
        return replace(self, spec=spec, recipe=recipe)

    def seeded(self, replicate: int) -> Recipe:
        """The recipe of a replicate: the same for all losses."""
        return self.recipe.changed({"training.seed": self.seed + replicate})


@dataclass(frozen=True, eq=False)
class Shown:
    """What the demo found: the first replicate's log beside its truth, the severities, and all trials."""

    demo: Demo
    truth: Truth
    severities: list[Truth]
    outcome: Outcome


def run_demo(
    output: Path, demo: Demo | None = None, *, overwrite: bool = False, watch: Announcer | None = None
) -> Shown:
    """Write `output`: index.html, results.json, results.csv, log.csv and the world. The same seed, the same files."""
    from unveil.data.writers import write
    from unveil.experiment.demo.files import write_results
    from unveil.experiment.demo.page import demo_page
    from unveil.report.page import write_page

    with atomic_folder(output, overwrite=overwrite) as draft:
        shown = show(demo or Demo(), watch)
        write(shown.truth.log, draft / "log.csv")
        shown.truth.world.save(draft / "world")
        write_results(shown, draft)
        write_page(demo_page(shown), draft / "index.html")
    return shown


def show(demo: Demo, watch: Announcer | None = None) -> Shown:
    """Draw, train and judge, replicate by replicate."""
    truths = [drawn(World.builtin(demo.spec, seed), seed) for seed in range(demo.seed, demo.seed + demo.replicates)]
    trials = [
        run_trial(
            truth.world, truth.log, demo.seeded(replicate), demo.estimators, negatives=demo.negatives, watch=watch
        )
        for replicate, truth in enumerate(truths)
    ]
    return Shown(demo, truths[0], list(severities(truths[0].world, demo.seed)), Outcome(trials))
