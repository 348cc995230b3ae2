"""What a trainer or tuner is handed: validation cases and nothing later."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from unveil.data.sequences import Sequences
from unveil.data.splits import Split
from unveil.errors import UnveilError
from unveil.evaluation.candidates import FULL
from unveil.evaluation.evaluator import Evaluator, Shift
from unveil.evaluation.metrics import RankMetric, metric
from unveil.evaluation.result import Evaluation
from unveil.evaluation.scorer import Scorer


@dataclass(frozen=True, eq=False)
class ValidationEvaluator:
    """A number for each scorer, to stop training or choose settings by: higher is better.

    The test cases cannot be reached from here: histories end with the last validation context, so that no test target
    is among them. To choose by test figures one would need another type. Of a packed log they are a part of one file;
    a tuner is given them apart (`Sequences.apart`).
    """

    evaluator: Evaluator
    metric: RankMetric
    k: int = 10
    protocol: str = FULL
    of_takes: bool = True  # targets are what was taken; else they are the truth of a world

    @classmethod
    def of(
        cls,
        split: Split,
        *,
        length: int,
        metric_name: str = "NDCG",
        k: int = 10,
        protocol: str = FULL,
        uniform: int = 0,
        popular: int = 0,
        exclude_seen: bool = True,
        seed: int = 0,
    ) -> Self:
        """The validation part of a split. `protocol` names the ranking that counts, e.g. full or uniform-100."""
        sequences = _until_validation(split)
        evaluator = Evaluator.of(
            split.valid,
            sequences,
            split.train,
            length=length,
            uniform=uniform,
            popular=popular,
            exclude_seen=exclude_seen,
            seed=seed,
        )
        chosen = metric(metric_name)
        if not isinstance(chosen, RankMetric):
            raise UnveilError("not a metric of the target's rank", found=metric_name, expected="NDCG, Recall or MRR")
        if protocol not in evaluator.candidates.protocols:
            there = ", ".join(evaluator.candidates.protocols)
            raise UnveilError("no such protocol", found=protocol, expected=f"one of {there}")
        return cls(evaluator, chosen, k, protocol)

    def explained_by(self, shift: Shift) -> Self:
        """Takes ranked by what an estimator expects to be taken, scores + shift; the truth by scores alone.

        What was taken is no measure of f where training holds that P(taken) ∝ exp(f + shift): the better f knows
        tastes apart from exposure, the worse it predicts, by itself, what exposure let users take.
        """
        return replace(self, evaluator=replace(self.evaluator, shift=shift)) if self.of_takes else self

    def __call__(self, scorer: Scorer) -> float:
        """The metric on the validation cases, averaged over users."""
        value_C = self.metric(self.evaluator.ranks(scorer, self.protocol), self.k)
        user_C = self.evaluator.cases.user_C
        cases_U = np.bincount(user_C)
        return float((np.bincount(user_C, weights=value_C)[cases_U > 0] / cases_U[cases_U > 0]).mean())

    def evaluate(self, scorer: Scorer) -> Evaluation:
        """The whole table of results on the validation cases."""
        return self.evaluator.evaluate(scorer)


def _until_validation(split: Split) -> Sequences:
    """The histories cut after each user's last validation context, or after training where there is none."""
    stop_U = split.train.length_U.copy()
    np.maximum.at(stop_U, split.valid.user_C, split.valid.seen_C)
    return split.whole.cut(np.zeros_like(stop_U), stop_U)
