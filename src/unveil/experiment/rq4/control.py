"""The control arm: the naive model, less λ times the log of popularity, λ chosen on the validation cases.

It learns nothing that the naive model has not learnt. What it gains under a ranking is what that ranking pays for
avoiding popular items.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from unveil.evaluation.evaluator import Evaluator, ValidationEvaluator
from unveil.evaluation.ranking import Scorer
from unveil.evaluation.result import Evaluation
from unveil.models.baselines import LessPopular
from unveil.studies import trial

CONTROL = "control"


@dataclass(frozen=True, eq=False)
class Control:
    """For each protocol, validation NDCG@10 along the strengths, and the strength that is best there."""

    strengths: Sequence[float]
    along: Mapping[str, Sequence[float]]

    @classmethod
    def chosen(cls, scorer: Scorer, validation: ValidationEvaluator, strengths: Sequence[float]) -> "Control":
        """Judge every strength on the validation cases: those of the test are not at hand here."""
        count_V = torch.from_numpy(validation.evaluator.count_V)
        judged = [
            validation.evaluator.evaluate(LessPopular(scorer.scores, count_V, strength), resamples=1)
            for strength in strengths
        ]
        protocols = validation.evaluator.candidates.protocols
        figure = (validation.metric.name, validation.k)
        return cls(strengths, {name: [each.value(name, *figure) for each in judged] for name in protocols})

    @property
    def best(self) -> dict[str, float]:
        """λ of each protocol; of equals the weakest."""
        return {name: self.strengths[max(range(len(at)), key=lambda n: (at[n], -n))] for name, at in self.along.items()}

    def judged(self, scorer: Scorer, test: Evaluator, headline: str) -> dict[str, Any]:
        """Ranks under each protocol with that protocol's own λ, and the lists of the headline's."""
        count_V, best = torch.from_numpy(test.count_V), self.best
        found: dict[float, Evaluation] = {
            strength: test.evaluate(LessPopular(scorer.scores, count_V, strength), resamples=1)
            for strength in sorted(set(best.values()))
        }
        return {
            "ranks": {name: trial.ranks(found[strength])[name] for name, strength in best.items()},
            "lists": trial.list_metrics(found[best[headline]]),
            "strength": best,
            "strengths": list(self.strengths),
            "along": {name: list(values) for name, values in self.along.items()},
        }
