"""Pairs of arms that change places between the two evaluations, and whether that may be chance."""

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from unveil.evaluation.statistics import holm
from unveil.experiment.outcome import STANDARD, TRUE
from unveil.experiment.reproduce.ranking import ALPHA
from unveil.experiment.reproduce.results import Figure, Results
from unveil.report.names import listed


@dataclass(frozen=True)
class Turned:
    """By the truth `above` stands above `below`; by the standard evaluation it is the other way round."""

    above: str
    below: str
    p_true: float  # corrected, as the other
    p_standard: float

    @property
    def sure(self) -> bool:
        """Whether both evaluations can tell the two apart."""
        return max(self.p_true, self.p_standard) < ALPHA

    def plain(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {**vars(self), "sure": self.sure}


def turned(results: Results, severity: float, metric: tuple[str, int] = ("NDCG", 10)) -> list[Turned]:
    """All such pairs; Holm's correction is over both tests of each."""
    figures = [Figure(evaluation, results.sampled, *metric) for evaluation in (TRUE, STANDARD)]
    by_truth, by_log = (results.order(severity, figure) for figure in figures)
    pairs = [(one, two) for one, two in combinations(by_truth, 2) if by_log.index(one) > by_log.index(two)]
    raw = [results.against(severity, *pair, figure).p for pair in pairs for figure in figures]
    p_PF = holm(np.array(raw)).reshape(-1, 2)
    return [Turned(*pair, *map(float, p_F)) for pair, p_F in zip(pairs, p_PF, strict=True)]


def turned_words(results: Results, severity: float) -> str:
    """Which pairs change places under NDCG@10, and which of them surely; nothing where none does."""
    every = turned(results, severity)
    if not every:
        return ""
    sure, chance = ([pair for pair in every if pair.sure is wanted] for wanted in (True, False))
    told = [f"{_pairs(sure)} surely, with p below {ALPHA} under both evaluations after Holm’s correction"] * bool(sure)
    told += [f"{_pairs(chance)} perhaps by chance: the two evaluations cannot both tell them apart"] * bool(chance)
    return f"By NDCG@10 these change places: {'; '.join(told)}."


def _pairs(every: list[Turned]) -> str:
    return ", ".join(listed((pair.above, pair.below)).replace(", ", " and ") for pair in every)
