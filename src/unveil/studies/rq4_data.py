"""The real log of RQ4 with its cases, and the control arm: the naive model less λ · log popularity.

The control learns nothing that the naive model has not learnt. What it gains under a ranking is what that ranking pays
for avoiding popular items.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch

from unveil.data.fetch import data_home
from unveil.data.filters import Filters
from unveil.data.interactions import Interactions
from unveil.data.readers import convert_first
from unveil.data.sequences import Sequences
from unveil.data.splits import Split, leave_one_out
from unveil.errors import UnveilError
from unveil.evaluation.evaluator import Evaluator, ValidationEvaluator
from unveil.evaluation.protocols import most_negatives
from unveil.evaluation.ranking import Scorer
from unveil.models.baselines import LessPopular
from unveil.studies.paper import recognised, size_of
from unveil.studies.results import STANDARD
from unveil.studies.trial import VALIDATION_BATCH, list_metrics, ranks

CONTROL = "control"
#: The data set of the paper that `unveil data fetch` does not know, and its file in the folder of that name.
_BY_HAND, _FILES = "beauty", ("beauty.txt", "beauty.txt.gz")


@dataclass(frozen=True)
class LogChoice:
    """A data set by its name or path; filters that are None are the paper's."""

    data: str
    min_item: int | None = None
    min_user: int | None = None

    def read(self) -> Interactions:
        """The log. One that has a data set's published size already is left as it is, as beauty has to be."""
        path: Path | str = _put_by_hand() if self.data == _BY_HAND and not Path(self.data).exists() else self.data
        with convert_first(path):
            log = Interactions.read(path)
        unfiltered = self.min_item is None and self.min_user is None
        if unfiltered and recognised(*size_of(log)):
            return log
        least = [paper if given is None else given for given, paper in ((self.min_item, 5), (self.min_user, 5))]
        left = Filters(min_item=least[0], min_user=least[1])(log)
        if not len(left.interacted()):
            hint = "Lower --min-item and --min-user."
            raise UnveilError("nothing is left of the log after filtering", where=self.data, hint=hint)
        return left

    def parts(self) -> tuple[Interactions, Split]:
        """The log and its leave-one-out split, read once in a process."""
        return _parts(self)


@lru_cache(maxsize=1)
def _parts(choice: LogChoice) -> tuple[Interactions, Split]:
    log = choice.read()
    return log, leave_one_out(Sequences.of(log))


def _put_by_hand() -> Path:
    """Where somebody has put the published file among the fetched data sets."""
    places = [data_home() / _BY_HAND / name for name in _FILES]
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        published = "It is the beauty.txt that is published with BERT4Rec (FeiSun/BERT4Rec, data/beauty.txt)"
        hint = f"{published}: put it at {places[0]}, or name its path."
        raise UnveilError("this data set cannot be fetched", found=_BY_HAND, hint=hint)
    return found


def check_items(split: Split, negatives: int) -> None:
    """Every case needs its negatives: found out before any work is done."""
    count_V = np.bincount(split.train.item_N, minlength=split.train.n_items)
    barred = int(split.test.seen_C.max(initial=0)) + 1
    if int((count_V > 0).sum()) - barred >= negatives:
        return
    most = min(most_negatives(split.test, split.whole, count_V).values())
    if most < negatives:
        hint = f"Pass --negatives {most} or fewer." if most else "Use a log with more items."
        raise UnveilError("not every case has so many items to be ranked against", found=negatives, hint=hint)


@dataclass(frozen=True, eq=False)
class RealCases:
    """The last event is the test case, the one before it the validation case; both are ranked under three protocols.

    Items of a user's history do not compete. A tuner is given `validation` and never `test`.
    """

    log: Interactions
    split: Split
    validation: ValidationEvaluator
    test: Evaluator

    @classmethod
    def of(cls, choice: LogChoice, negatives: int, protocol: str, length: int, seed: int) -> Self:
        """The cases of a replicate; only negatives differ between replicates."""
        log, split = choice.parts()
        drawn: dict[str, Any] = {"uniform": negatives, "popular": negatives, "seed": seed}
        validation = ValidationEvaluator.of(split, length=length, protocol=protocol, **drawn)
        validation = replace(validation, evaluator=replace(validation.evaluator, batch_size=VALIDATION_BATCH))
        return cls(log, split, validation, Evaluator.of(split.test, split.whole, split.train, length=length, **drawn))

    def of_length(self, length: int) -> Self:
        """The same cases for a model that reads so many tokens."""
        validation = replace(self.validation, evaluator=replace(self.validation.evaluator, length=length))
        return replace(self, validation=validation, test=replace(self.test, length=length))


def choose_strength(
    scorer: Scorer, validation: ValidationEvaluator, strengths: Sequence[float]
) -> dict[str, list[float]]:
    """Validation NDCG@10 of every strength λ, by protocol: test cases are not at hand here."""
    count_V = torch.from_numpy(validation.evaluator.count_V)
    found = [
        validation.evaluator.evaluate(LessPopular(scorer.scores, count_V, strength), resamples=1)
        for strength in strengths
    ]
    protocols, metric = validation.evaluator.candidates.protocols, (validation.metric.name, validation.k)
    return {name: [each.value(name, *metric) for each in found] for name in protocols}


def best_strengths(strengths: Sequence[float], along: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """λ of each protocol; of equals the weakest."""
    return {name: strengths[max(range(len(at)), key=lambda n: (at[n], -n))] for name, at in along.items()}


def evaluate_control(
    scorer: Scorer,
    test: Evaluator,
    strengths: Sequence[float],
    along: Mapping[str, Sequence[float]],
    headline: str,
) -> dict[str, Any]:
    """Ranks under each protocol with that protocol's own λ, and the recommendations of the headline's."""
    count_V, best = torch.from_numpy(test.count_V), best_strengths(strengths, along)
    found = {
        strength: test.evaluate(LessPopular(scorer.scores, count_V, strength), resamples=1)
        for strength in sorted(set(best.values()))
    }
    return {
        "ranks": {STANDARD: {name: ranks(found[strength])[name] for name, strength in best.items()}},
        "lists": list_metrics(found[best[headline]]),
        "strength": best,
        "strengths": list(strengths),
        "along": {name: list(values) for name, values in along.items()},
    }
