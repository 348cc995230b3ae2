"""RQ3: how much does it matter that evaluation is on true relevance?"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from unveil.evaluation.statistics import holm
from unveil.report.names import COLOURS, named
from unveil.report.page import Figure
from unveil.report.plots import Line, Scale, line_figure
from unveil.studies.engine import Answer
from unveil.studies.paper import Published
from unveil.studies.results import ALPHA, BOUND, STANDARD, TRUE, Measure, Results, tests_json
from unveil.studies.semisynthetic import SemiSynthetic

_EVALUATIONS = (TRUE, STANDARD)


class RQ3(SemiSynthetic):
    """The same models under both evaluations, and the ranks that flip."""

    name: ClassVar[str] = "rq3"
    title: ClassVar[str] = "How much does it matter to evaluate on true relevance?"
    template: ClassVar[str] = "rq3.md.j2"

    @property
    def published(self) -> dict[str, Published]:
        return {evaluation: Published.semisynthetic(evaluation, self.severities[0]) for evaluation in _EVALUATIONS}

    def findings(self, answer: Answer) -> Mapping[str, Any]:
        here, published = self.first(answer), self.published
        sampled = here.protocol("uniform")
        steps = [each for own in published.values() for each in here.against_next(own.under(sampled))]
        return {
            **super().findings(answer),
            "turned": swapped_pairs(here, self.headline(here)),
            "flips": [flip for protocol in here.protocols for flip in flips(here, published, protocol)],
            "verdict": {evaluation: own.verdict(here) for evaluation, own in published.items()},
            "tests": tests_json(steps),
        }

    def facts(self, answer: Answer) -> Mapping[str, Any]:
        here, published = self.first(answer), self.published
        every = flips(here, published, here.protocol("uniform"))
        orders = [here.order(self.headline(here, evaluation)) for evaluation in _EVALUATIONS]
        moved = [flip for flip in every if flip["moves"] != "same"]
        compared = [flip for flip in every if flip["paper"] is not None]
        return {
            **super().facts(answer),
            "standard": self.headline(here, STANDARD),
            "slope_figure": slope_figure,
            "published": {"true": published[TRUE], "standard": published[STANDARD]},
            "sampled_flips": every,
            "moved": moved,
            "flipped_under": list(dict.fromkeys(f"{flip['metric']}@{flip['k']}" for flip in moved)),
            "chosen": [next(arm for arm in order if arm != BOUND) for order in orders],
            "compared": compared if set(here.trained) == set(published[TRUE].rows) else [],
            "agree": sum(flip["moves"] == flip["paper"] for flip in compared),
        }


def swapped_pairs(results: Results, measure: Measure) -> list[dict[str, Any]]:
    """Pairs of arms that change places between the two evaluations; Holm's correction is over both tests of each."""
    measures = [measure._replace(evaluation=evaluation) for evaluation in _EVALUATIONS]
    by_truth, by_log = (results.order(each) for each in measures)
    pairs = [(one, two) for one, two in combinations(by_truth, 2) if by_log.index(one) > by_log.index(two)]
    p_PM = holm(np.array([results.difference(*pair, m).p for pair in pairs for m in measures])).reshape(-1, 2)
    return [
        {"above": above, "below": below, "p_true": float(p[0]), "p_standard": float(p[1]), "sure": bool(max(p) < ALPHA)}
        for (above, below), p in zip(pairs, p_PM, strict=True)
    ]


def flips(results: Results, published: Mapping[str, Published], protocol: str) -> list[dict[str, Any]]:
    """The ranks of every trained arm, 1 being best: on true relevance, and by the standard evaluation."""
    found, rows = [], published[TRUE].rows
    for measure in published[TRUE].under(protocol):
        measures = [measure._replace(evaluation=evaluation) for evaluation in _EVALUATIONS]
        orders = [results.order(each) for each in measures]
        theirs = [published[m.evaluation].order(m, list(rows)) for m in measures]
        for arm in results.trained:
            true, standard = (order.index(arm) + 1 for order in orders)
            known = protocol == published[TRUE].protocol and arm in rows
            row = {"estimator": arm, "protocol": protocol, "metric": measure.metric, "k": measure.k}
            row |= {"rank_true": true, "rank_standard": standard, "moves": _moves(true, standard)}
            found.append({**row, "paper": _moves(*(order.index(arm) for order in theirs)) if known else None})
    return found


def _moves(true: int, standard: int) -> str:
    """Up where the standard evaluation ranks the arm higher than the ground truth does."""
    return "up" if standard < true else "down" if standard > true else "same"


def slope_figure(results: Results, measure: Measure) -> Figure:
    """A line for each arm from its mean on true relevance to that by the standard evaluation."""
    both = (measure, measure._replace(evaluation=STANDARD))
    drawn = {
        named(arm): Line([0, 1], [results.mean(arm, each) for each in both], COLOURS.get(arm))
        for arm in results.trained
    }
    slug = f"flip-{measure.metric.lower()}-{measure.k}"
    scale = Scale(bottom=None, ticks={0: "true relevance", 1: "standard"})
    return replace(line_figure(drawn, ("evaluation", measure.name), slug, scale), title=measure.name)
