"""What the arms of a replicate share: the split of the log, and both sets of cases with their negatives."""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Self

import numpy as np

from unveil.data.interactions import Interactions
from unveil.data.sequences import Sequences
from unveil.data.splits import Split, leave_one_out
from unveil.errors import UnveilError
from unveil.evaluation.evaluator import Evaluator, ValidationEvaluator
from unveil.evaluation.protocols import most_negatives
from unveil.experiment.rq4.log import LogChoice
from unveil.experiment.rq4.study import RealStudy
from unveil.studies.trial import VALIDATION_BATCH


@dataclass(frozen=True, eq=False)
class RealBench:
    """The last event is the test case, the one before it the validation case; both are ranked under three protocols.

    What a user has met does not compete. A tuner is handed `validation` and never `test`.
    """

    log: Interactions
    split: Split
    validation: ValidationEvaluator
    test: Evaluator

    @classmethod
    def of(cls, study: RealStudy, replicate: int) -> Self:
        """The bench of a replicate; only negatives differ between replicates."""
        log, split = parts_of(study.log)
        seed, length = study.replicate_seed(replicate), study.recipe("naive", replicate).model.length
        validation = ValidationEvaluator.of(
            split,
            length=length,
            protocol=study.validation,
            uniform=study.negatives,
            popular=study.negatives,
            seed=seed,
        )
        validation = replace(validation, evaluator=replace(validation.evaluator, batch_size=VALIDATION_BATCH))
        test = Evaluator.of(
            split.test,
            split.whole,
            split.train,
            length=length,
            uniform=study.negatives,
            popular=study.negatives,
            seed=seed,
        )
        return cls(log, split, validation, test)

    def of_length(self, length: int) -> Self:
        """The same questions, put to a model that reads so many tokens."""
        validation = replace(self.validation, evaluator=replace(self.validation.evaluator, length=length))
        return replace(self, validation=validation, test=replace(self.test, length=length))


@lru_cache(maxsize=1)
def parts_of(choice: LogChoice) -> tuple[Interactions, Split]:
    """The log and its leave-one-out split, read once in a process."""
    log = choice.read()
    return log, leave_one_out(Sequences.of(log))


def refuse_too_few_items(split: Split, negatives: int) -> None:
    """Every case needs its negatives: found out before any work is done."""
    count_V = np.bincount(split.train.item_N, minlength=split.train.n_items)
    barred = int(split.test.seen_C.max(initial=0)) + 1
    if int((count_V > 0).sum()) - barred >= negatives:
        return
    most = min(most_negatives(split.test, split.whole, count_V).values())
    if most < negatives:
        hint = f"Pass --negatives {most} or fewer." if most else "Use a log with more items."
        raise UnveilError("not every case has so many items to be ranked against", found=negatives, hint=hint)
