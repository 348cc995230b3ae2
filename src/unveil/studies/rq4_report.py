"""What RQ4 compares: rankings under which conclusions flip, a control that avoids popular items, and proxies.

The control, the naive model less λ · log popularity, learns nothing more: its gain is what a ranking pays for that.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np
import torch

from unveil.estimators.base import blocks
from unveil.evaluation.statistics import Paired
from unveil.models.baselines import LessPopular
from unveil.propensity.base import PROPENSITIES
from unveil.propensity.popularity import Popularity
from unveil.propensity.weights import diagnose, inverse
from unveil.report.names import against
from unveil.report.page import Figure
from unveil.studies.results import BASE, CONTROL, STANDARD, Measure, Results, corrected, frame_of, paired_json, verdict
from unveil.studies.tables import Records, along_figure
from unveil.studies.trial import Arm, TrialContext, list_metrics, ranks
from unveil.training.fit import propensity_name
from unveil.training.recipe import Recipe
from unveil.training.trainer import Trainer


@dataclass(frozen=True)
class Pair:
    """One arm against another under every ranking; p-values are corrected."""

    one: str
    other: str
    tests: Mapping[str, Paired]

    @property
    def verdicts(self) -> dict[str, str]:
        return {protocol: verdict(test) for protocol, test in self.tests.items()}

    @property
    def steady(self) -> bool:
        return len(set(self.verdicts.values())) == 1

    @property
    def reverses(self) -> bool:
        """Significantly better under one ranking, significantly worse under another."""
        return {"above", "below"} <= set(self.verdicts.values())

    @property
    def turns(self) -> bool:
        """Above under one ranking and below under another by the means, significant or not."""
        means = [test.difference for test in self.tests.values()]
        return min(means) < 0 < max(means)

    def as_json(self) -> dict[str, Any]:
        return {
            "pair": [self.one, self.other],
            "verdicts": self.verdicts,
            "steady": self.steady,
            "reverses": self.reverses,
            "turns_in_the_means": self.turns,
            "tests": {name: paired_json(test) for name, test in self.tests.items()},
        }


def pairs(results: Results, measure: Measure) -> list[Pair]:
    """All pairs of trained arms, the naive one and the control always second; Holm's correction over all tests."""
    arms = sorted(results.trained, key=lambda arm: {BASE: 2, CONTROL: 1}.get(arm, 0))
    every, under = list(combinations(arms, 2)), [measure._replace(protocol=name) for name in results.protocols]
    tests = iter(corrected(results.difference(*pair, each) for pair in every for each in under))
    return [Pair(*pair, {each.protocol: next(tests) for each in under}) for pair in every]


def control_record(trial: TrialContext, naive: Arm, strengths: Sequence[float], headline: str) -> dict[str, Any]:
    """Ranks under each protocol with the λ that is best there on the validation cases, and the headline's lists."""
    count_V, validation = torch.from_numpy(trial.split.train.count_V), trial.validation
    tried = [LessPopular(naive.scorer.scores, count_V, strength) for strength in strengths]
    valid = [validation.evaluator.evaluate(each, resamples=1) for each in tried]
    metric, protocols = (validation.metric.name, validation.k), validation.evaluator.candidates.protocols
    along = {name: [each.value(name, *metric) for each in valid] for name in protocols}
    best = {name: strengths[int(np.argmax(values))] for name, values in along.items()}  # of equals the weakest
    found = {s: trial.tests[STANDARD].evaluate(tried[strengths.index(s)], resamples=1) for s in set(best.values())}
    return {
        "ranks": {STANDARD: {name: ranks(found[strength])[name] for name, strength in best.items()}},
        "lists": list_metrics(found[best[headline]]),
        "strength": best,
        "strengths": list(strengths),
        "along": along,
    }


def control_figure(controls: Records, protocols: Sequence[str]) -> Figure:
    """Each ranking's validation NDCG@10 along λ, as a multiple of the naive model's."""
    rows = [
        {"λ": strength, "estimator": against(name), "replicate": r, "metric": "NDCG@10", "value": v / (values[0] or 1)}
        for r, control in enumerate(controls)
        for name in protocols
        for values in [control["along"][name]]
        for strength, v in zip(control["strengths"], values, strict=True)
    ]
    return along_figure(Results.of(frame_of(rows)), "λ", Measure("", "", "NDCG@10"), title="× naive", slug="control")


def proxies(recipes: Mapping[str, Recipe]) -> dict[str, Any]:
    """What is used in place of exposure that nobody recorded: arms with popularity, and what the others assume."""
    used = {arm: name for arm, recipe in recipes.items() if (name := propensity_name(recipe)) is not None}
    popular = [arm for arm, name in used.items() if issubclass(PROPENSITIES[name], Popularity)]
    others = [
        (arm, name, str(getattr(PROPENSITIES[name], "assumes", ""))) for arm, name in used.items() if arm not in popular
    ]
    return {"popular": popular, "others": others, "recorded": any(not assumes for *_, assumes in others)}


def weights_record(trainer: Trainer | None) -> dict[str, Any] | None:
    """The weights as they were, and as the paper writes them: 1/θ̂, with no exponent and no clip."""
    if trainer is None or trainer.weights is None or trainer.propensity is None:
        return None
    theta_M = torch.cat([trainer.propensity(part) for part in blocks(trainer.task.slots)])
    return {**asdict(trainer.weights), "as_written": asdict(diagnose(inverse(theta_M)))}
