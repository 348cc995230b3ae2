"""The decision of `unveil advise`: gains over naive, which candidate to use, and the config of a run with it.

Scenarios vary what is not known of a log: how users choose, how rare exposure is, what is popular. They are strata: the
mean over those that were tried is wanted, not over others that might have been.
Shapes: Z scenarios, W worlds, R replicates.
"""

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from hashlib import sha256
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unveil.audit.evidence import Evidence
from unveil.data.filters import LogSource
from unveil.data.interactions import Interactions, Sequences
from unveil.data.splits import leave_one_out
from unveil.estimators.base import estimator
from unveil.estimators.wmf import WMFDistilled
from unveil.evaluation.metrics import NDCG, RankMetric
from unveil.evaluation.statistics import Paired, paired
from unveil.files import write_whole
from unveil.report.charts import shares_figure
from unveil.report.page import Figure
from unveil.runs.config import Experiment, as_toml
from unveil.settings import plain
from unveil.simulation.choice import users_do
from unveil.studies.arms import Variant
from unveil.studies.candidates import Candidates, LogShape, learns_from
from unveil.studies.engine import Answer, Report
from unveil.studies.results import BASE, BOUND, TRUE, Estimate, Measure, paired_json, verdict
from unveil.studies.trial import resolved
from unveil.training.recipe import Recipe

Floats = NDArray[np.float64]

CONFIG = "advice.toml"
#: What is evaluated: the rank of the most relevant item among all items.
HEADLINE = Measure(TRUE, "full", "NDCG", 10)
RECALL = Measure(TRUE, "full", "Recall", 10)


@dataclass(frozen=True)
class Scenario:
    """How logs are drawn. `liked` is the declared share of popularity that is relevance; None: by the ratings."""

    choice: str
    severity: float
    liked: float | None = None

    @property
    def key(self) -> str:
        """rational_exposed-p1."""
        declared = "" if self.liked is None else f"-l{self.liked:g}"
        return f"{self.choice}-p{self.severity:g}{declared}"

    @property
    def seed(self) -> int:
        """Of its draws: scenarios have random numbers of their own."""
        return int.from_bytes(sha256(self.key.encode()).digest()[:4])

    @property
    def users(self) -> str:
        declared = "" if self.liked is None else f", {self.liked:.0%} liked"
        return f"{self.choice.replace('_', ', ')}{declared}"

    def __str__(self) -> str:
        return f"{self.users}, p = {self.severity:g}"


class Draw(NamedTuple):
    """Which log is drawn: of which draw of the worlds, in which scenario, and the how manieth."""

    world: int
    scenario: Scenario
    replicate: int


def mean_over_strata(value_ZWR: Floats, level: float = 0.95) -> Paired:
    """The mean over all scenarios, worlds and replicates, tested against 0.

    Several worlds are the units, each a mean over scenarios and replicates (Student's t, W − 1 degrees of freedom).
    With one world scenarios are strata: the variance of the mean is Σ_z s_z² / R / Z², Z (R − 1) degrees of freedom.
    """
    from scipy.special import stdtr, stdtrit

    scenarios, worlds, replicates = value_ZWR.shape
    if worlds > 1:
        return paired(value_ZWR.mean(axis=(0, 2)), np.zeros(worlds), level=level)
    mean, draws, freedom = float(value_ZWR.mean()), scenarios * replicates, scenarios * (replicates - 1)
    if replicates < 2:
        return Paired(mean, -np.inf, np.inf, 0.0, 1.0, draws)
    variance = float(value_ZWR[:, 0].var(axis=1, ddof=1).mean())
    error = np.sqrt(variance / draws)
    if error == 0:
        return Paired(mean, mean, mean, 0.0 if mean == 0 else float(np.copysign(np.inf, mean)), float(mean == 0), draws)
    half, p = float(stdtrit(freedom, (1 + level) / 2)) * error, float(2 * stdtr(freedom, -abs(mean) / error))
    return Paired(mean, float(mean - half), float(mean + half), float(mean / np.sqrt(variance)), p, draws)


@dataclass(frozen=True)
class Gain:
    """A candidate against naive, and against the best of the others. Scenarios go by their numbers."""

    arm: str
    mean: Paired  # by itself: not corrected, not a test of what was chosen
    of_scenario: tuple[float, ...]  # mean gain in each
    regret: tuple[float, ...]  # the mean of the scenario's best usable candidate − its own
    worst: int  # the scenario with the lowest gain
    lowest: float  # the gain there
    largest_regret: float


def gains(value: Mapping[str, Floats], usable: tuple[str, ...]) -> dict[str, Gain]:
    """Of each usable arm, from value_ZWR of all arms, highest mean first; naive, whose gain is 0, is among them."""
    mean_Z = {arm: value[arm].mean(axis=(1, 2)) for arm in usable}
    best_Z = np.max(list(mean_Z.values()), axis=0)
    gain_ZWR = {arm: value[arm] - value[BASE] for arm in usable}
    tests = {arm: mean_over_strata(gain_ZWR[arm]) for arm in usable}
    found = {}
    for arm in sorted(usable, key=lambda arm: -tests[arm].difference):
        gain_Z, regret_Z = gain_ZWR[arm].mean(axis=(1, 2)).tolist(), (best_Z - mean_Z[arm]).tolist()
        worst = int(np.argmin(gain_Z))
        found[arm] = Gain(arm, tests[arm], tuple(gain_Z), tuple(regret_Z), worst, gain_Z[worst], max(regret_Z))
    return found


@dataclass(frozen=True)
class Decision:
    """The chosen arm, and what it was chosen among."""

    chosen: str  # the robust arm, if its choice is significantly above naive; else naive
    test: Paired | None  # of the choice, on draws that it was not made by; None: too few
    gains: Mapping[str, Gain]  # highest mean first
    robust: str  # the arm with the smallest largest regret
    best: str  # the arm with the highest mean


def decide(value: Mapping[str, Floats], usable: tuple[str, ...]) -> Decision:
    """The smallest largest regret, if choosing so is significantly above naive where it did not choose."""
    found, test = gains(value, usable), cross_fitted(value, usable)
    robust, best = robust_of(value, usable), next(iter(found))
    sure = test is not None and verdict(test) == "above"
    return Decision(robust if sure else BASE, test, found, robust, best)


def robust_of(value: Mapping[str, Floats], usable: tuple[str, ...]) -> str:
    """The smallest largest regret, max_z (best_z − mean_z); of equals the highest mean."""
    mean_AZ = np.stack([value[arm].mean(axis=(1, 2)) for arm in usable])
    regret_A = (mean_AZ.max(0) - mean_AZ).max(1)
    return usable[int(np.lexsort((-mean_AZ.mean(1), regret_A))[0])]


def cross_fitted(value: Mapping[str, Floats], usable: tuple[str, ...]) -> Paired | None:
    """One test of one choice: made on half of the worlds (or replicates), measured on the other, and the reverse.

    g_zwr = value of the arm that the half without (w, r) chooses − value of naive,   tested by `mean_over_strata`.

    No draw is measured under a choice that it took part in, so nothing is to be corrected for the number of arms: each
    half's mean is that of one fixed arm, and under no difference has mean 0. Scenarios are in both halves.
    """
    axis = 1 if value[BASE].shape[1] > 1 else 2
    units = np.arange(value[BASE].shape[axis])
    if len(units) < 2:
        return None
    gain_ZWR = np.zeros_like(value[BASE])
    for half in (units[::2], units[1::2]):
        chosen = robust_of({arm: np.delete(value[arm], half, axis) for arm in usable}, usable)
        here = (slice(None), half) if axis == 1 else (slice(None), slice(None), half)
        gain_ZWR[here] = (value[chosen] - value[BASE])[here]
    return mean_over_strata(gain_ZWR)


def chance(metric: RankMetric, items: int, k: int) -> float:
    """The mean of a metric under a uniformly random ranking: Σ_{r ≤ items} metric(r) / items."""
    return float(np.mean(metric(np.arange(1, items + 1), k)))


@dataclass(frozen=True, eq=False)
class Advice:
    """What was tried, and what follows."""

    answer: Answer
    candidates: Candidates
    refused: Mapping[str, str]  # propensities and estimators that could not be tried, and why
    shape: LogShape  # of the log that worlds were fitted to
    repeats: float  # share of its events that repeat an item of their user
    evidence: Evidence  # how many random items would decide

    @cached_property
    def at_chance(self) -> Mapping[Scenario, tuple[float, float]]:
        """Scenarios in which naive is not significantly above a random ranking: its mean, and that of chance."""
        return {each: test[:2] for each in self.answer.study.scenarios if not (test := self._beside_chance(each))[2]}

    def _beside_chance(self, scenario: Scenario) -> tuple[float, float, bool]:
        """Over the test cases of all its draws, by a paired t-test."""
        metric, naive, random = NDCG(), list[Floats](), list[Floats]()
        for cell in self.answer.where(scenario=scenario.key, estimator=BASE):
            naive.append(metric(np.array(cell["ranks"][HEADLINE.evaluation][HEADLINE.protocol]), HEADLINE.k))
            random.append(np.full(len(naive[-1]), chance(metric, cell["log"]["catalogue"], HEADLINE.k)))
        value_C, chance_C = np.concatenate(naive), np.concatenate(random)
        return float(value_C.mean()), float(chance_C.mean()), verdict(paired(value_C, chance_C)) == "above"

    @property
    def scenarios(self) -> tuple[Scenario, ...]:
        """Those that decide, in the order of all tuples of figures: without those at chance, where others are left."""
        every = tuple(self.answer.study.scenarios)
        return tuple(each for each in every if each not in self.at_chance) or every

    def value(self, arm: str, measure: Measure = HEADLINE) -> Floats:
        results = self.answer.results
        return np.stack([results.at(scenario=each.key).by_replicate(arm, measure) for each in self.scenarios])

    @cached_property
    def decision(self) -> Decision:
        found = decide({arm: self.value(arm) for arm in self.candidates.usable}, self.candidates.usable)
        nothing = len(self.at_chance) == len(self.answer.study.scenarios)
        return replace(found, chosen=BASE, test=None) if nothing else found

    def mean(self, arm: str, measure: Measure = HEADLINE) -> float:
        return float(self.value(arm, measure).mean())

    def share(self, arm: str) -> float | None:
        """Of the gap from naive to ideal, over all draws; None where there is no gap."""
        gap = self.mean(BOUND) - self.mean(BASE)
        return (self.mean(arm) - self.mean(BASE)) / gap if gap > 0 else None

    @cached_property
    def ceiling(self) -> tuple[str, float]:
        """The arm with true propensities that gains most, and how much."""
        known = [arm for arm in self.candidates.ceilings if arm != BOUND] or [BOUND]
        best = max(known, key=self.mean)
        return best, mean_over_strata(self.value(best) - self.value(BASE)).difference

    def drawn_shape(self, scenario: Scenario) -> LogShape:
        cells = self.answer.where(scenario=scenario.key, estimator=BASE)
        return LogShape(*(float(np.mean([cell["looks"][each.name] for cell in cells])) for each in fields(LogShape)))

    def findings(self) -> dict[str, Any]:
        decision, (arm, gain) = self.decision, self.ceiling
        return {
            "headline": HEADLINE._asdict(),
            "advice": {
                "chosen": decision.chosen,
                "robust": decision.robust,
                "highest_mean": decision.best,
                "gain": paired_json(decision.gains[decision.chosen].mean),
                "test": decision.test and paired_json(decision.test),
                "share_of_the_gap": self.share(decision.chosen),
            },
            "ceiling": {"estimator": arm, "gain": gain},
            "at_chance": {each.key: {"naive": own, "chance": by} for each, (own, by) in self.at_chance.items()},
            "refused": dict(self.refused),
            "evidence": asdict(self.evidence),
            "looks": {"log": asdict(self.shape)} | {s.key: asdict(self.drawn_shape(s)) for s in self.scenarios},
        }

    def facts(self) -> dict[str, Any]:
        decision, study, usable = self.decision, self.answer.study, self.candidates.usable
        roles = {"chosen": decision.chosen, "smallest regret": decision.robust, "highest mean": decision.best}
        repeaters = [arm for arm in usable if issubclass(estimator(Variant.of(arm).estimator), WMFDistilled)]
        train = ["unveil", "train", study.log.log, "--config", str(self.answer.folder / CONFIG), "-o", "run"]
        ask = ["unveil", "advise", study.log.log, "--test", "random.csv", "-o", "advice-by-test"]
        return {
            "found": self,
            "decision": decision,
            "roles": {arm: ", ".join(role for role in roles if roles[role] == arm) for arm in decision.gains},
            "users_do": {each.key: users_do(each.choice) for each in self.scenarios},
            "recall_gain": self.mean(decision.chosen, RECALL) - self.mean(BASE, RECALL),
            "uses": {learns_from(arm) for arm in usable},
            "few_repeats": self.repeats <= 0.05 and bool(repeaters),  # users do not come back to items
            "ceilings": sorted(self.candidates.ceilings, key=lambda arm: -self.mean(arm)),
            "logs": {"your log": self.shape} | {str(each): self.drawn_shape(each) for each in self.scenarios},
            "worlds": [world for n in range(study.worlds) for world in self.answer.records[f"worlds-{n}"]["worlds"]],
            "next_step": shlex.join(train),
            "with_test": shlex.join(ask),
            "nothing_learnt": len(self.at_chance) == len(study.scenarios),
            "evidence": self.evidence,
        }

    def rows(self) -> Iterator[dict[str, Any]]:
        for arm in self.candidates.arms:
            gain, gain_ZWR = self.decision.gains.get(arm), self.value(arm) - self.value(BASE)
            mean = paired_json(mean_over_strata(gain_ZWR))
            scenarios = zip(self.scenarios, gain_ZWR.mean(axis=(1, 2)).tolist(), strict=True)
            yield {
                "estimator": arm,
                "usable": gain is not None,
                "mean": self.mean(arm),
                "recall": self.mean(arm, RECALL),
                "gain": mean["difference"],
                "gain_low": mean["low"],
                "gain_high": mean["high"],
                "largest_regret": gain and gain.largest_regret,
                "share_of_the_gap": self.share(arm),
                **{f"gain:{scenario.key}": each for scenario, each in scenarios},
            }

    def figure(self) -> Figure:
        arms = [arm for arm in self.decision.gains if arm != BASE][:8]  # the table has all
        arms += [known for known in self.ceiling[:1] if known != BOUND]
        gaps: dict[tuple[str, str], dict[str, Estimate | None]] = {}
        for arm, each in product(arms, sorted(self.scenarios, key=lambda each: each.severity)):
            found = self.answer.results.at(scenario=each.key).gap_closed(arm, HEADLINE)
            gaps.setdefault((arm, each.users), {})[f"p = {each.severity:g}"] = found
        return shares_figure(gaps, "scenarios")


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
