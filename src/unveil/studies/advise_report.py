"""The advice: its figures, the plot of the scenarios, and the config. Shapes: Z scenarios, W worlds, R replicates."""

import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from math import isfinite
from typing import Any

import numpy as np

from unveil.data.sequences import Sequences
from unveil.data.splits import leave_one_out
from unveil.estimators.base import estimator
from unveil.estimators.wmf import WMFDistilled
from unveil.files import write_whole
from unveil.report.charts import Along, Spot, panels
from unveil.report.names import named
from unveil.report.page import Figure
from unveil.report.prose import signed
from unveil.runs.config import Experiment, as_toml
from unveil.settings import plain
from unveil.simulation.choice import users_do
from unveil.studies.arms import Variant
from unveil.studies.candidates import Candidates, LogShape, learns_from
from unveil.studies.decision import Decision, Floats, Gain, decide, mean_over_strata
from unveil.studies.engine import Answer
from unveil.studies.results import BASE, BOUND, TRUE, Measure, paired_json
from unveil.studies.scenarios import Scenario
from unveil.studies.tables import share_spot
from unveil.studies.trial import resolved
from unveil.studies.writer import Report

CONFIG = "advice.toml"
#: What is evaluated: the rank of the most relevant item among all items.
HEADLINE = Measure(TRUE, "full", "NDCG", 10)
RECALL = Measure(TRUE, "full", "Recall", 10)
#: Candidates that are drawn; the table has all.
_MOST_DRAWN = 8
#: A log in which no more of the events repeat an item is one whose users do not come back.
_FEW_REPEATS = 0.05


@dataclass(frozen=True, eq=False)
class Advice:
    """What was tried, and what follows."""

    answer: Answer
    candidates: Candidates
    refused: Mapping[str, str]  # propensities and estimators that could not be tried, and why
    shape: LogShape  # of the log that worlds were fitted to
    repeats: float  # share of its events that repeat an item of their user

    @property
    def scenarios(self) -> tuple[Scenario, ...]:
        """In the order of all tuples of figures."""
        return tuple(self.answer.study.scenarios)

    def value(self, arm: str, measure: Measure = HEADLINE) -> Floats:
        """value_ZWR of an arm under a measure."""
        results = self.answer.results
        return np.stack([results.at(scenario=each.key).by_replicate(arm, measure) for each in self.scenarios])

    @cached_property
    def decision(self) -> Decision:
        """Which to use."""
        return decide({arm: self.value(arm) for arm in self.candidates.usable}, self.candidates.usable)

    def mean(self, arm: str, measure: Measure = HEADLINE) -> float:
        """Over all draws."""
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
        """Of the logs drawn in a scenario, on average."""
        cells = self.answer.where(scenario=scenario.key, estimator=BASE)
        return LogShape(*(float(np.mean([cell["looks"][each.name] for cell in cells])) for each in fields(LogShape)))

    @cached_property
    def nearest(self) -> Scenario:
        """The scenario whose logs are concentrated most like the real one."""
        return min(self.scenarios, key=lambda each: abs(self.drawn_shape(each).gini - self.shape.gini))

    def findings(self) -> dict[str, Any]:
        """For results.json."""
        decision, (arm, gain) = self.decision, self.ceiling
        return {
            "headline": HEADLINE._asdict(),
            "advice": {
                "chosen": decision.chosen,
                "why": decision.why,
                "robust": decision.robust,
                "highest_mean": decision.best,
                "gain": paired_json(decision.gain.mean),
                "gain_on_draws_left_out": decision.left_out,
                "share_of_the_gap": self.share(decision.chosen),
            },
            "ceiling": {"estimator": arm, "gain": gain},
            "refused": dict(self.refused),
            "looks": {"log": asdict(self.shape)} | {s.key: asdict(self.drawn_shape(s)) for s in self.scenarios},
        }

    def facts(self) -> dict[str, Any]:
        """For the template."""
        decision, study, usable = self.decision, self.answer.study, self.candidates.usable
        above = [gain for gain in decision.gains.values() if gain.significant]
        roles = {"chosen": decision.chosen, "smallest regret": decision.robust, "highest mean": decision.best}
        repeaters = [arm for arm in usable if issubclass(estimator(Variant.of(arm).estimator), WMFDistilled)]
        command = ["unveil", "train", study.log.log, "--config", str(self.answer.folder / CONFIG), "-o", "run"]
        return {
            "found": self,
            "decision": decision,
            "roles": {arm: ", ".join(role for role in roles if roles[role] == arm) for arm in decision.gains},
            "gain_of": gain_text,
            "users_do": {each.key: users_do(each.choice) for each in self.scenarios},
            "best_above": max(above, key=lambda each: each.mean.difference) if above else None,
            "recall_gain": self.mean(decision.chosen, RECALL) - self.mean(BASE, RECALL),
            "nearest_gain": decision.gain.of_scenario[self.scenarios.index(self.nearest)],
            "uses": {learns_from(arm) for arm in usable},
            "few_repeats": self.repeats <= _FEW_REPEATS and bool(repeaters),
            "ceilings": sorted(self.candidates.ceilings, key=lambda arm: -self.mean(arm)),
            "logs": {"your log": self.shape} | {str(each): self.drawn_shape(each) for each in self.scenarios},
            "worlds": [world for n in range(study.worlds) for world in self.answer.records[f"worlds-{n}"]["worlds"]],
            "next_step": shlex.join(command),
        }

    def rows(self) -> list[dict[str, Any]]:
        """Of results.csv, one for each arm; gains in each scenario by its key."""
        return [self._row(arm) for arm in self.candidates.arms]

    def _row(self, arm: str) -> dict[str, Any]:
        gain, gain_ZWR = self.decision.gains.get(arm), self.value(arm) - self.value(BASE)
        mean = paired_json(mean_over_strata(gain_ZWR) if gain is None else gain.mean)
        scenarios = zip(self.scenarios, gain_ZWR.mean(axis=(1, 2)).tolist(), strict=True)
        return {
            "estimator": arm,
            "usable": gain is not None,
            "mean": self.mean(arm),
            "recall": self.mean(arm, RECALL),
            "gain": mean["difference"],
            "gain_low": mean["low"],
            "gain_high": mean["high"],
            "p": gain and mean["p"],
            "largest_regret": gain and gain.largest_regret,
            "share_of_the_gap": self.share(arm),
            **{f"gain:{scenario.key}": each for scenario, each in scenarios},
        }

    def figure(self) -> Figure:
        """Shares of the gap that are closed: candidates down, kinds of users across, severities along."""
        arms = [gain.arm for gain in self.decision.ordered if gain.arm != BASE][:_MOST_DRAWN]
        arms += [known for known in self.ceiling[:1] if known != BOUND]
        kinds = list(dict.fromkeys((each.choice, each.liked) for each in self.scenarios))
        severities = sorted({each.severity for each in self.scenarios})
        titles = [str(Scenario(choice, 1.0, liked)).replace(", p = 1", "") for choice, liked in kinds]
        columns = [Along(title, [f"p = {p:g}" for p in severities], joined=True) for title in titles]
        spots = {
            (row, column): [self._spot(arm, Scenario(choice, p, liked)) for p in severities]
            for row, arm in enumerate(arms)
            for column, (choice, liked) in enumerate(kinds)
        }
        drawing = panels([named(arm).replace(" · ", "\n") for arm in arms], columns, spots, "scenarios")
        return Figure("", drawing, f"A row for each of {', '.join(map(named, arms))}.")

    def _spot(self, arm: str, scenario: Scenario) -> Spot:
        here = scenario in self.scenarios
        found = self.answer.results.at(scenario=scenario.key).gap_closed(arm, HEADLINE) if here else None
        return share_spot(found, f"{named(arm)}, {scenario}")


def gain_text(gain: Gain) -> str:
    """+0.012 [+0.003, +0.021]; without the interval where there is none."""
    mean = gain.mean
    interval = f" [{signed(mean.low)}, {signed(mean.high)}]" if isfinite(mean.low) else ""
    return f"{signed(mean.difference)}{interval}"


def write_config(report: Report) -> None:
    """The run that is advised, for `unveil train LOG --config`."""
    lines = [report.paragraphs[0], "", f"Written by: {report.command}", "Given to: unveil train LOG --config"]
    chosen = report.findings["advice"]["chosen"]
    write_whole(report.answer.folder / CONFIG, as_toml(experiment(report.answer.study, chosen), "\n".join(lines)))


def experiment(study: Any, chosen: str) -> Experiment:
    """The log as it was read, the preset, the chosen arm; a clip that is a share of the events becomes a number."""
    recipe, log = study.recipe(chosen, study.seed), study.log.load()
    own = resolved(recipe, leave_one_out(Sequences.of(log)).train, log)
    data = {f"data.{name}": value for name, value in vars(study.log).items()}
    shared = {name: plain(recipe)[name] for name in ("model", "task", "training")}
    parts = {"estimator": own.estimator, "propensity": own.propensity}
    changes = {f"{part}.{name}": value for part, options in parts.items() for name, value in options.items()}
    everywhere = {"training.device": "auto", "training.threads": None}
    return Experiment.of(study.preset, shared | data).changed(everywhere | changes)
