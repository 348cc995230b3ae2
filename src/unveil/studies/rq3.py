"""RQ3: how much does it matter that evaluation is on true relevance?"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from unveil.evaluation.statistics import holm
from unveil.report.charts import slopes
from unveil.report.names import COLOURS, named
from unveil.report.page import Cell, Column, Figure, Figures, Table
from unveil.studies.engine import Answer
from unveil.studies.paper import Published
from unveil.studies.results import ALPHA, BOUND, STANDARD, TRUE, Measure, Results
from unveil.studies.rq1 import tests_json
from unveil.studies.semisynthetic import SemiSynthetic
from unveil.studies.tables import arms_table, paper_table, rankings_table

_ARROWS = {"up": "↑", "down": "↓", "same": "=", None: "–"}
_EVALUATIONS = (TRUE, STANDARD)


class RQ3(SemiSynthetic):
    """The same models under both evaluations, and the ranks that flip."""

    name: ClassVar[str] = "rq3"
    title: ClassVar[str] = "How much does it matter to evaluate on true relevance?"
    template: ClassVar[str] = "rq3.md.j2"

    def here(self, answer: Answer) -> tuple[Results, dict[str, Published]]:
        """The results at the one severity, and the paper's tables for it."""
        severity = self.severities[0]
        return answer.results.at(severity=severity), {e: Published.semisynthetic(e, severity) for e in _EVALUATIONS}

    def findings(self, answer: Answer) -> Mapping[str, Any]:
        """The flips, the verdicts under both evaluations, and the tests."""
        results, published = self.here(answer)
        sampled = results.protocol("uniform")
        rankings = [each for table in published.values() for each in results.rankings(table.under(sampled))]
        return {
            **super().findings(answer),
            "turned": swapped_pairs(results, self.headline(results)),
            "flips": [flip for protocol in results.protocols for flip in flips(results, published, protocol)],
            "verdict": {evaluation: table.verdict(results) for evaluation, table in published.items()},
            "tests": tests_json(rankings),
        }

    def facts(self, answer: Answer) -> Mapping[str, Any]:
        """What flips under the paper's protocol, and which arm each evaluation would choose."""
        results, published = self.here(answer)
        sampled = results.protocol("uniform")
        every = flips(results, published, sampled)
        moved = [flip for flip in every if flip["moves"] != "same"]
        compared = [flip for flip in every if flip["paper"] is not None]
        standard = self.headline(results, STANDARD)
        orders = [results.order(self.headline(results, evaluation)) for evaluation in _EVALUATIONS]
        complete = set(results.trained) == set(published[TRUE].rows)
        return {
            **super().facts(answer),
            "here": results,
            "standard": standard,
            "moved": moved,
            "flipped_under": list(dict.fromkeys(f"{flip['metric']}@{flip['k']}" for flip in moved)),
            "chosen": [next(arm for arm in order if arm != BOUND) for order in orders],
            "compared": compared if complete else [],
            "agree": sum(flip["moves"] == flip["paper"] for flip in compared),
        }

    def tables(self, answer: Answer) -> Mapping[str, Any]:
        """Both evaluations under both rankings, ranks, the paper's figures, tests."""
        results, published = self.here(answer)
        sampled = results.protocol("uniform")
        every = [flip for p in (sampled, "full") for flip in flips(results, published, p)]
        own = {
            "true": arms_table(results, published[TRUE].under(sampled), published[TRUE]),
            "standard": arms_table(results, published[STANDARD].under(sampled), published[STANDARD]),
            "true_full": arms_table(results, published[TRUE].under("full")),
            "standard_full": arms_table(results, published[STANDARD].under("full")),
            "ranks": _ranks_table([flip for flip in every if flip["protocol"] == sampled]),
            "flips": _flips_table(every),
            "paper": paper_table(published[STANDARD].compare(results)),
            "tests": rankings_table(results.rankings(published[STANDARD].under(sampled))),
        }
        return {**super().tables(answer), **own}

    def figures(self, answer: Answer) -> Mapping[str, Any]:
        """A line for each arm from one evaluation to the other, for each metric."""
        results, published = self.here(answer)
        drawn = [_slope_figure(results, m) for m in published[TRUE].under(results.protocol("uniform"))]
        return {**super().figures(answer), "slopes": Figures(drawn)}


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
    found = []
    for measure in published[TRUE].under(protocol):
        measures = [measure._replace(evaluation=evaluation) for evaluation in _EVALUATIONS]
        orders = [results.order(each) for each in measures]
        theirs = [published[m.evaluation].order(m, list(published[TRUE].rows)) for m in measures]
        comparable = protocol == published[TRUE].protocol
        for arm in results.trained:
            true, standard = (order.index(arm) + 1 for order in orders)
            known = comparable and arm in published[TRUE].rows
            row = {"estimator": arm, "protocol": protocol, "metric": measure.metric, "k": measure.k}
            row |= {"rank_true": true, "rank_standard": standard, "moves": _moves(true, standard)}
            found.append({**row, "paper": _moves(*(order.index(arm) for order in theirs)) if known else None})
    return found


def _moves(true: int, standard: int) -> str:
    """Up where the standard evaluation ranks the arm higher than the ground truth does."""
    return "up" if standard < true else "down" if standard > true else "same"


def _ranks_table(every: Sequence[Mapping[str, Any]]) -> Table:
    metrics = list(dict.fromkeys(f"{flip['metric']}@{flip['k']}" for flip in every))
    rows: dict[str, list[Cell | str]] = {}
    for flip in every:
        theirs = "" if flip["paper"] is None else f" ({_ARROWS[flip['paper']]})"
        ranks = f"{flip['rank_true']} → {flip['rank_standard']} {_ARROWS[flip['moves']]}{theirs}"
        rows.setdefault(flip["estimator"], [named(flip["estimator"])]).append(ranks)
    return Table("", [Column("estimator"), *(Column(name, True) for name in metrics)], list(rows.values()))


def _flips_table(every: Sequence[Mapping[str, Any]]) -> Table:
    rows: list[list[Cell | str]] = [
        [
            named(flip["estimator"]),
            flip["protocol"],
            f"{flip['metric']}@{flip['k']}",
            *(Cell(str(flip[name]), flip[name]) for name in ("rank_true", "rank_standard")),
            *(_ARROWS[flip[name]] for name in ("moves", "paper")),
        ]
        for flip in every
    ]
    ranks = [Column("rank on true relevance", True), Column("rank by the standard evaluation", True)]
    heads = [Column("estimator"), Column("ranked against"), Column("metric"), *ranks, Column("moves"), Column("paper")]
    return Table("", heads, rows)


def _slope_figure(results: Results, measure: Measure) -> Figure:
    arms, by_log = results.trained, measure._replace(evaluation=STANDARD)
    left, right = ({named(arm): results.mean(arm, each) for arm in arms} for each in (measure, by_log))
    said = "; ".join(f"{name} {left[name]:.3f} and {right[name]:.3f}" for name in left)
    slug = f"flip-{measure.metric.lower()}-{measure.k}"
    return Figure(
        measure.name,
        slopes(left, right, [COLOURS.get(arm) for arm in arms], ("true relevance", "standard"), slug),
        f"{measure.name} of each estimator on true relevance and by the standard evaluation: {said}.",
    )
