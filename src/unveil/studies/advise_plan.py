"""What `unveil advise` is asked for, how candidates are trained, and the config of the one that is advised."""

from typing import Any, Self

import numpy as np
from pydantic import Field, model_validator

from unveil.data.filters import LogSource
from unveil.data.interactions import Interactions, Sequences
from unveil.data.splits import leave_one_out
from unveil.errors import AtLeastOne, UnveilError, UpToOne, check_range, check_ranges, unknown
from unveil.estimators.base import estimator
from unveil.files import write_whole
from unveil.models.tensor_factorization.recipes import RECIPES
from unveil.propensity.base import PROPENSITIES
from unveil.runs.config import Experiment, as_toml
from unveil.settings import plain
from unveil.simulation.choice import CHOICES
from unveil.simulation.fit import check_share
from unveil.studies import arms, candidates
from unveil.studies.engine import Report, Study
from unveil.studies.results import BASE, BOUND
from unveil.studies.scenarios import EFFORTS, Draw, Scenario, scenarios
from unveil.studies.semisynthetic import BUILTIN
from unveil.studies.trial import resolved
from unveil.training.recipe import Recipe, network_in

CONFIG = "advice.toml"
#: Of a fitted world, unless another number is given.
MOST_STEPS = 100
#: Streams of random numbers of one draw, kept apart.
LOG, TRAINING = 0, 1


class AdvicePlan(Study):
    """What is asked for: where worlds come from, what is tried, and how networks are trained on drawn logs."""

    log: LogSource = Field(default_factory=LogSource, exclude=True)
    preset: str = "quick"  # of training, as in `unveil train`
    users: AtLeastOne = 500  # of the log that worlds are fitted to
    steps: AtLeastOne = MOST_STEPS
    fit: str = "posterior"
    liked: tuple[float, ...] = ()  # for logs without ratings: declared shares of popularity that are relevance
    world: str | None = None  # a saved world, or 'builtin', in the place of one that is fitted
    seed: int = 0
    changes: tuple[str, ...] = ()  # settings of all trainings, or of one estimator
    left: float = 0.0  # impressions without a click for each event of the log: drawn logs record as many
    impressions: UpToOne = 1.0  # the share of impressions without a click that the log records
    scenarios: tuple[Scenario, ...] = scenarios(EFFORTS["quick"]["choices"], EFFORTS["quick"]["severities"])
    worlds: AtLeastOne = 1
    replicates: AtLeastOne = 3
    estimators: tuple[str, ...] = EFFORTS["quick"]["estimators"]
    clips: tuple[str, ...] = EFFORTS["quick"]["clips"]
    propensities: tuple[str, ...] = ()  # none named: all that the log allows
    required: tuple[str, ...] = Field(default=(), exclude=True)  # propensities that must be had

    @model_validator(mode="after")
    def check(self) -> Self:
        check_ranges(self, "advise")
        for what, names, known in (
            ("way to fit a world", [self.fit], list(RECIPES)),
            ("choice model", [scenario.choice for scenario in self.scenarios], list(CHOICES)),
            ("propensity", self.propensities, arms.families()),
        ):
            for name in names:
                if name not in known:
                    raise unknown(what, name, known)
        self._check_worlds()
        self._check_estimators()
        usable = [name for name in self.propensities if name in map(arms.family, candidates.from_a_log())]
        for arm in candidates.candidates(self.estimators, usable, self.clips).arms:
            self.recipe(arm, 0)
        return self

    def _check_worlds(self) -> None:
        if not self.scenarios:
            raise UnveilError("there is no scenario to try", expected="at least one of --choices and of --severities")
        for scenario in self.scenarios:
            check_range(0 < scenario.severity < np.inf, "--severities", scenario.severity, "above 0")
        for share in self.liked:
            check_share(share, "--implicit")
        arms.check_distinct({scenario.severity for scenario in self.scenarios}, "--severities")
        arms.check_distinct(self.liked, "--implicit")
        if self.liked and self.world is not None:
            problem, hint = "a world that is given has a liking of its own", "Leave out --implicit, or --world."
            raise UnveilError(problem, where="--implicit", found=self.liked[0], hint=hint)
        if self.world not in (None, BUILTIN) and self.worlds > 1:
            raise UnveilError("a saved world is one world", found=f"{self.worlds} worlds", hint="Pass --worlds 1.")

    def _check_estimators(self) -> None:
        for name in self.estimators:
            if "@" in name or "+" in name:
                hint = "Use --propensities, --clips, and for other options --set ESTIMATOR:estimator.NAME=VALUE."
                raise UnveilError("estimators are named alone here", where="--estimators", found=name, hint=hint)
            estimator(name)
        if set(self.estimators) <= {BASE, BOUND}:
            raise UnveilError("there is nothing to compare with the naive loss", expected="at least one estimator more")
        for name in self.required:
            if not any("@" in arm for arm in candidates.candidates(self.estimators, (name,), ("",)).usable):
                problem, hint = "no estimator that is tried can use this propensity", "Name others with --estimators."
                found = ", ".join(self.estimators)
                raise UnveilError(problem, where=f"--propensities {name}", found=found, hint=hint)
        arms.check_changes((BASE, BOUND, *self.estimators), self.changes)

    @property
    def groups(self) -> int:
        """Worlds of one draw from the posterior: one for each declared share."""
        return max(1, len(self.liked))

    def world_number(self, draw: Draw) -> int:
        liked = draw.scenario.liked
        return draw.world * self.groups + (0 if liked is None else self.liked.index(liked))

    def entropy(self, draw: Draw, stream: int) -> list[int]:
        """Of what is random in a draw: its log, or the trainings on it."""
        return [self.seed, self.world_number(draw), draw.scenario.seed, draw.replicate, stream]

    def training_seed(self, draw: Draw) -> int:
        """Of all that is random in the trainings on a draw: the same for all arms."""
        return int(np.random.SeedSequence(self.entropy(draw, TRAINING)).generate_state(1)[0])

    def recipe(self, arm: str, seed: int, rate: float | None = None) -> Recipe:
        """How an arm is trained; `rate`: the share of impressions that its log records, by default the real log's."""
        changes: dict[str, Any] = {
            "training.device": "cpu",
            "training.threads": 1,
        }  # the same figures, however many processes
        changes |= arms.settings(arm, self.changes, seed, arms.TRUE_THETA)
        if (given := changes.get("propensity.name")) and "rate" in PROPENSITIES.options(given):
            changes["propensity.rate"] = self.impressions if rate is None else rate
        recipe = Recipe.preset(self.preset, network_in(changes) or "bert4rec")
        return recipe.changed({"estimator.name": changes["estimator.name"]}).changed(changes)


def write_config(report: Report) -> None:
    """The run that is advised, for `unveil train LOG --config`."""
    study = report.answer.study
    recipe = study.recipe(report.findings["advice"]["chosen"], study.seed)
    write_advised(config_of(recipe, study.log, study.log.load(), study.preset), report)


def write_advised(config: Experiment, report: Report) -> None:
    """The config of a run, with what the report says first above it."""
    head = f"{report.paragraphs[0]}\n\nWritten by: {report.command}\nGiven to: unveil train LOG --config"
    write_whole(report.answer.folder / CONFIG, as_toml(config, head))


def config_of(recipe: Recipe, source: LogSource, log: Interactions, preset: str) -> Experiment:
    """A recipe for a log as it was read; a clip that is a share of the events becomes a number."""
    own = resolved(recipe, leave_one_out(Sequences.of(log)).train, log)
    data = {f"data.{name}": value for name, value in vars(source).items()}
    shared = {name: plain(recipe)[name] for name in ("model", "task", "training")}
    parts = {"estimator": own.estimator, "propensity": own.propensity}
    changes = {f"{part}.{name}": value for part, options in parts.items() for name, value in options.items()}
    everywhere = {"training.device": "auto", "training.threads": None}
    return Experiment.of(preset, shared | data).changed(everywhere | changes)
