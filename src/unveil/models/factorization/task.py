"""What a factorisation is to learn: ratings, or which tuples were exposed. Shapes: N tuples."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from unveil.models.factorization.likelihood import Bernoulli, Likelihood, Normal
from unveil.models.factorization.negatives import Negatives
from unveil.models.factorization.scores import auc, mse
from unveil.models.factorization.tuples import Parts, Tuples

Metric = Literal["MSE", "AUC"]


@dataclass(frozen=True, eq=False)
class Task:
    """Parts of the tuples, how their values come about, and how a prediction of them is judged.

    `negatives` are drawn beside the positives of each epoch; the validation and test parts have theirs once for all.
    """

    name: Literal["relevance", "exposure"]
    parts: Parts
    likelihood: Likelihood
    metric: Metric
    negatives: Negatives | None = None
    redraw: bool = True

    @classmethod
    def of_ratings(cls, parts: Parts) -> "Task":
        """Relevance: predict the ratings, judged by squared error."""
        return cls("relevance", parts, Normal(), "MSE")

    @classmethod
    def of_exposure(
        cls, parts: Parts, negatives: Negatives, rng: np.random.Generator, *, redraw: bool = True
    ) -> "Task":
        """Exposure: tell interacted tuples from drawn negatives, judged by the area under the ROC curve.

        Unless `redraw`, the negatives of the training part are drawn once too.
        """
        train, valid, test = (negatives.beside(part, rng) for part in parts)
        kept = Parts(parts.train.with_values(1) if redraw else train, valid, test)
        return cls("exposure", kept, Bernoulli(), "AUC", negatives, redraw)

    def epoch(self, rng: np.random.Generator) -> Tuples:
        """The training tuples of one epoch."""
        if self.negatives is None or not self.redraw:
            return self.parts.train
        return self.negatives.beside(self.parts.train, rng)

    @property
    def size(self) -> int:
        """Training tuples of one epoch."""
        each = self.negatives.each if self.negatives is not None and self.redraw else 0
        return (1 + each) * len(self.parts.train)

    def score(self, predicted_N: NDArray[np.float64], tuples: Tuples) -> float:
        """The metric of a prediction."""
        return (mse if self.metric == "MSE" else auc)(predicted_N, tuples.value_N)

    def loss(self, predicted_N: NDArray[np.float64], tuples: Tuples) -> float:
        """The metric, turned so that less is better."""
        score = self.score(predicted_N, tuples)
        return score if self.metric == "MSE" else 1 - score
