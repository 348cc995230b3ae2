"""The advice: its figures, tables and plots. Shapes: Z scenarios, W worlds, R replicates."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from math import isfinite
from typing import Any

import numpy as np

from unveil.data.sequences import Sequences
from unveil.data.splits import leave_one_out
from unveil.estimators.base import estimator
from unveil.estimators.ever import Ever
from unveil.evaluation.statistics import Paired
from unveil.files import write_whole
from unveil.report.charts import Along, Spot, panels
from unveil.report.names import named
from unveil.report.page import Cell, Column, Figure, KeyFigure, Table, count, number, percent
from unveil.report.prose import p_value, share, signed
from unveil.report.prose import percent as as_percent
from unveil.runs.config import Experiment, as_toml
from unveil.settings import plain
from unveil.simulation.choice import told
from unveil.studies.arms import Variant
from unveil.studies.candidates import Candidates, LogShape, uses_ratings
from unveil.studies.decision import Decision, Floats, Gain, decide, mean_over_strata
from unveil.studies.engine import Answer
from unveil.studies.results import BASE, BOUND, TRUE, Estimate, Measure
from unveil.studies.scenarios import Scenario
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
        found: tuple[Scenario, ...] = self.answer.study.scenarios
        return found

    @cached_property
    def value(self) -> dict[str, Floats]:
        """value_ZWR of every arm."""
        return self.values(HEADLINE)

    def values(self, measure: Measure) -> dict[str, Floats]:
        """value_ZWR of every arm under a measure."""
        here = [self.answer.results.at(scenario=scenario.key) for scenario in self.scenarios]
        return {arm: np.stack([each.by_replicate(arm, measure) for each in here]) for arm in self.candidates.arms}

    @cached_property
    def decision(self) -> Decision:
        """Which to use."""
        return decide(self.value, self.candidates.usable)

    def mean(self, arm: str, measure: Measure = HEADLINE) -> float:
        """Over all draws."""
        value = self.value if measure == HEADLINE else self.values(measure)
        return float(value[arm].mean())

    def share(self, arm: str) -> float | None:
        """Of the gap from naive to ideal, over all draws; None where there is no gap."""
        gap = self.mean(BOUND) - self.mean(BASE)
        return (self.mean(arm) - self.mean(BASE)) / gap if gap > 0 else None

    def share_at(self, arm: str, scenario: Scenario) -> Estimate | None:
        """Of the gap in one scenario, with its interval over draws."""
        return self.answer.results.at(scenario=scenario.key).gap_closed(arm, HEADLINE)

    @cached_property
    def ceiling(self) -> tuple[str, float]:
        """The arm with true propensities that gains most, and how much."""
        known = [arm for arm in self.candidates.ceilings if arm != BOUND] or [BOUND]
        best = max(known, key=self.mean)
        return best, mean_over_strata(self.value[best] - self.value[BASE]).difference

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
        shapes = {"log": asdict(self.shape)} | {each.key: asdict(self.drawn_shape(each)) for each in self.scenarios}
        return {
            "headline": HEADLINE._asdict(),
            "advice": {
                "chosen": decision.chosen,
                "why": decision.why,
                "robust": decision.robust,
                "highest_mean": decision.best,
                "gain": _finite(decision.gain.mean),
                "gain_on_draws_left_out": decision.left_out,
                "share_of_the_gap": self.share(decision.chosen),
            },
            "ceiling": {"estimator": arm, "gain": gain},
            "refused": dict(self.refused),
            "looks": shapes,
        }

    def facts(self) -> dict[str, Any]:
        """For the template."""
        decision = self.decision
        above = [gain for gain in decision.gains.values() if gain.significant]
        arms = [estimator(Variant.of(arm).estimator) for arm in self.candidates.usable]
        repeats = self.repeats <= _FEW_REPEATS and any(issubclass(arm, Ever) for arm in arms)
        return {
            "found": self,
            "decision": decision,
            "gain_of": lambda gain: gain_text(gain.mean),
            "users_do": {each.key: told(each.choice) for each in self.scenarios},
            "best_above": max(above, key=lambda each: each.mean.difference) if above else None,
            "recall_gain": self.mean(decision.chosen, RECALL) - self.mean(BASE, RECALL),
            "nearest_gain": decision.gain.of_scenario[self.scenarios.index(self.nearest)],
            "uses_ratings": any(map(uses_ratings, self.candidates.usable)),
            "uses_repeats": repeats,
        }

    def key_figures(self) -> list[KeyFigure]:
        """For the page."""
        decision = self.decision
        return [
            KeyFigure(named(decision.chosen), "to be used"),
            KeyFigure(signed(decision.gain.mean.difference), f"{HEADLINE.name} over the naive loss"),
            KeyFigure(f"{decision.gain.largest_regret:.3f}", "largest regret over the scenarios"),
            KeyFigure(f"{len(self.scenarios)}", "scenarios"),
        ]


def gain_text(found: Paired) -> str:
    """+0.012 [+0.003, +0.021]; without the interval where there is none."""
    interval = f" [{signed(found.low)}, {signed(found.high)}]" if found.low > float("-inf") else ""
    return f"{signed(found.difference)}{interval}"


def advice_rows(advice: Advice) -> list[dict[str, Any]]:
    """One row for each arm; gains in each scenario by its key."""
    rows = []
    for arm in advice.candidates.arms:
        gain, value_ZWR = advice.decision.gains.get(arm), advice.value[arm] - advice.value[BASE]
        mean = _finite(mean_over_strata(value_ZWR) if gain is None else gain.mean)
        scenarios = zip(advice.scenarios, value_ZWR.mean(axis=(1, 2)).tolist(), strict=True)
        rows.append(
            {
                "estimator": arm,
                "usable": gain is not None,
                "mean": advice.mean(arm),
                "recall": advice.mean(arm, RECALL),
                "gain": mean["difference"],
                "gain_low": mean["low"],
                "gain_high": mean["high"],
                "p": None if gain is None else mean["p"],
                "largest_regret": None if gain is None else gain.largest_regret,
                "share_of_the_gap": advice.share(arm),
                **{f"gain:{scenario.key}": each for scenario, each in scenarios},
            }
        )
    return rows


def _finite(found: Paired) -> dict[str, float | None]:
    return {name: value if isfinite(value) else None for name, value in vars(found).items()}


def advice_tables(advice: Advice) -> dict[str, Table]:
    """Candidates (for the page, and shorter for the terminal), ceilings, scenarios, logs and worlds."""
    return {
        "summary": _summary(advice),
        "candidates": _candidates(advice),
        "ceilings": _ceilings(advice),
        "by_scenario": _by_scenario(advice),
        "logs": _logs(advice),
        "worlds": _worlds(advice),
    }


def _roles(advice: Advice, arm: str) -> str:
    decision = advice.decision
    roles = {"chosen": decision.chosen, "smallest regret": decision.robust, "highest mean": decision.best}
    return ", ".join(role for role, name in roles.items() if name == arm)


def _gain_cells(gain: Gain) -> list[Cell | str]:
    """Gain with its interval, and p."""
    if gain.arm == BASE:
        return ["0", "–"]
    return [Cell(gain_text(gain.mean), gain.mean.difference), Cell(p_value(gain.mean.p), gain.mean.p)]


def _share_cell(advice: Advice, arm: str) -> Cell | str:
    closed = advice.share(arm)
    return "–" if closed is None else Cell(as_percent(closed), closed)


def _summary(advice: Advice) -> Table:
    rows: list[list[Cell | str]] = [
        [named(g.arm), *_gain_cells(g), signed(g.lowest), number(g.largest_regret, 3), _roles(advice, g.arm)]
        for g in advice.decision.ordered
    ]
    return Table("", [Column(title) for title in ("candidate", "gain", "p", "lowest", "regret", "")], rows)


def _candidates(advice: Advice) -> Table:
    columns = [
        Column("candidate"),
        Column("gain over naive", True, "mean over scenarios, 95% interval"),
        Column("p", True, "after Holm’s correction"),
        Column("lowest gain", True, "of a scenario"),
        Column("largest regret", True, "against the best of the scenario"),
        Column("gap closed", True, "from naive to ideal"),
        Column("best at"),
    ]
    rows: list[list[Cell | str]] = []
    for gain in advice.decision.ordered:
        where = f"{signed(gain.lowest)} ({advice.scenarios[gain.worst]})"
        lowest: Cell | str = "0" if gain.arm == BASE else Cell(where, gain.lowest)
        rest = [number(gain.largest_regret, 3), _share_cell(advice, gain.arm), _roles(advice, gain.arm)]
        rows.append([named(gain.arm), *_gain_cells(gain), lowest, *rest])
    return Table("", columns, rows)


def _ceilings(advice: Advice) -> Table:
    rows: list[list[Cell | str]] = []
    for arm in sorted(advice.candidates.ceilings, key=lambda each: -advice.mean(each)):
        gain = advice.mean(arm) - advice.mean(BASE)
        rows.append([named(arm), Cell(signed(gain), gain), _share_cell(advice, arm)])
    return Table("", [Column("with ground truth"), Column("gain over naive", True), Column("gap closed", True)], rows)


def _by_scenario(advice: Advice) -> Table:
    columns = [Column("candidate"), *(Column(str(scenario), True, "gain over naive") for scenario in advice.scenarios)]
    rows: list[list[Cell | str]] = [
        [named(gain.arm), *(Cell(signed(each), each) for each in gain.of_scenario)]
        for gain in advice.decision.ordered
        if gain.arm != BASE
    ]
    ends: list[list[Cell | str]] = [
        [f"{named(arm)}: {HEADLINE.name}", *(number(float(each.mean()), 3) for each in advice.value[arm])]
        for arm in (BASE, BOUND)
    ]
    return Table("", columns, [*rows, *ends])


def _logs(advice: Advice) -> Table:
    titles = ("users", "items", "events", "events of a user", "Gini of items", "events of the top tenth")
    drawn = {str(scenario): advice.drawn_shape(scenario) for scenario in advice.scenarios}
    rows: list[list[Cell | str]] = [
        [
            label,
            *(count(each) for each in (shape.users, shape.items, shape.events)),
            number(shape.length, 1),
            number(shape.gini, 2),
            percent(shape.head),
        ]
        for label, shape in {"your log": advice.shape, **drawn}.items()
    ]
    return Table("", [Column("log"), *(Column(title, True) for title in titles)], rows, sortable=False)


def _worlds(advice: Advice) -> Table:
    titles = ("users", "items", "steps", "distinct favourites", "mean γ", "Gini of exposure")
    draws = [advice.answer.records[f"worlds-{draw}"] for draw in range(advice.answer.study.worlds)]
    rows: list[list[Cell | str]] = []
    for place, world in enumerate(world for draw in draws for world in draw["worlds"]):
        about = world["description"]
        sizes = [count(about[name]) for name in ("users", "items", "steps", "favourites")]
        rows.append([f"{place}", *sizes, number(about["relevance"]["mean"], 3), number(about["exposure_gini"], 2)])
    return Table("", [Column("world"), *(Column(title, True) for title in titles)], rows)


def advice_figures(advice: Advice) -> dict[str, Figure]:
    """Candidates down, kinds of users across, severities along."""
    usable = [gain.arm for gain in advice.decision.ordered if gain.arm != BASE][:_MOST_DRAWN]
    known = advice.ceiling[0]
    arms = [*usable, *([known] if known != BOUND else [])]
    kinds = list(dict.fromkeys((each.choice, each.liked) for each in advice.scenarios))
    severities = sorted({each.severity for each in advice.scenarios})
    columns = [
        Along(str(Scenario(choice, 1.0, liked)).replace(", p = 1", ""), [f"p = {p:g}" for p in severities], joined=True)
        for choice, liked in kinds
    ]
    spots = {
        (row, column): [_spot(advice, arm, Scenario(choice, p, liked)) for p in severities]
        for row, arm in enumerate(arms)
        for column, (choice, liked) in enumerate(kinds)
    }
    drawing = panels([named(arm).replace(" · ", "\n") for arm in arms], columns, spots, "scenarios")
    return {"scenarios": Figure("", drawing, f"A row for each of {', '.join(map(named, arms))}.")}


def _spot(advice: Advice, arm: str, scenario: Scenario) -> Spot:
    found = advice.share_at(arm, scenario) if scenario in advice.scenarios else None
    if found is None:
        return Spot(None, None, None, "")
    return Spot(found.mean, found.low, found.high, f"{named(arm)}, {scenario}: {share(found)}")


def write_config(report: Report) -> None:
    """The run that is advised, for `unveil train LOG --config`."""
    lines = [report.paragraphs[0], "", f"Written by: {report.command}", "Given to: unveil train LOG --config"]
    chosen = report.findings["advice"]["chosen"]
    write_whole(report.answer.folder / CONFIG, as_toml(experiment(report.answer.study, chosen), "\n".join(lines)))


def experiment(study: Any, chosen: str) -> Experiment:
    """The log as it was read, the preset, the chosen arm; a clip that is a share of the events becomes a number."""
    recipe = study.recipe(chosen, study.seed)
    data = {f"data.{name}": value for name, value in vars(study.log).items()}
    shared = {name: plain(recipe)[name] for name in ("model", "task", "training")}
    log = study.log.load()
    own = resolved(recipe, leave_one_out(Sequences.of(log)).train, log)
    changes: dict[str, Any] = {"training.device": "auto", "training.threads": None}
    changes |= {f"estimator.{name}": value for name, value in own.estimator.items()}
    changes |= {f"propensity.{name}": value for name, value in own.propensity.items()}
    return Experiment.of(study.preset, shared | data).changed(changes)
