"""RQ1: how well does each estimator capture the true relevance?"""

from dataclasses import asdict
from typing import Any

from unveil.experiment.outcome import BASE, BOUND, TRUE
from unveil.experiment.reproduce import rq1_page
from unveil.experiment.reproduce.networks import networks
from unveil.experiment.reproduce.published import METRICS, TABLES, comparable
from unveil.experiment.reproduce.question import Sheet
from unveil.experiment.reproduce.ranking import Ladder, ladders
from unveil.experiment.reproduce.results import Figure, Results
from unveil.experiment.reproduce.run import Answer
from unveil.experiment.reproduce.verdict import Beside, beside, paper_order, same_order
from unveil.experiment.reproduce.words import (
    against_base,
    difference,
    gap_words,
    headline,
    learnable,
    order_words,
    plus_minus,
)
from unveil.report.names import named, share, signed
from unveil.report.page import Section


class RQ1:
    """The paper's first table, with intervals, tests, its own figures beside, and full ranking."""

    name = "rq1"
    title = "How well does each estimator capture the true relevance?"

    def sheets(self, answer: Answer) -> list[Sheet]:
        """The table under both rankings."""
        found = answer.results
        return [sheet(found, found.severities[0], TRUE, protocol) for protocol in reversed(found.protocols)]

    def reading(self, answer: Answer) -> list[str]:
        """Order, differences, gap, what else differs, nearness to the paper, and the other ranking."""
        found, severity = answer.results, answer.results.severities[0]
        said = [_order(found, severity), _arms(found, severity), networks(answer.plan)]
        return list(filter(None, [*said, _near(found, severity), _full(found, severity)]))

    def sections(self, answer: Answer) -> list[Section]:
        """Tables and plots."""
        return rq1_page.sections(answer)

    def findings(self, answer: Answer) -> dict[str, Any]:
        """The verdict on each cell of the paper's table, the orders, and the tests."""
        found, severity = answer.results, answer.results.severities[0]
        return {
            "verdict": verdict(found, severity, TRUE),
            "tests": [
                step
                for protocol in found.protocols
                for ladder in ladders(found, severity, TRUE, protocol)
                for step in tested(ladder)
            ],
        }


def sheet(results: Results, severity: float, evaluation: str, protocol: str) -> Sheet:
    """Arms down, the paper's metrics across: mean, asterisk, half the interval; the paper's figure below."""
    every = ladders(results, severity, evaluation, protocol)
    paper = {(each.arm, each.figure): each for each in beside(results, severity, evaluation, protocol)}
    rows: list[list[str]] = []
    for arm in results.arms:
        rows.append([named(arm), *(mean_text(results, severity, arm, ladder) for ladder in every)])
        if any((arm, ladder.figure) in paper for ladder in every):
            rows.append(["  paper", *(paper_text(paper[arm, ladder.figure]) for ladder in every)])
    against = "all items" if protocol == "full" else f"{protocol.partition('-')[2]} uniform negatives"
    return Sheet(
        f"{evaluation}, severity {severity:g}, against {against}",
        ["", *(ladder.figure.name for ladder in every)],
        rows,
        "± half the 95% interval · * better than the next best, p < 0.05 after Holm’s correction"
        + (" · paper: its figure, and how far ours is from it" if paper else ""),
    )


def mean_text(results: Results, severity: float, arm: str, ladder: Ladder) -> str:
    """0.6065* ±0.0021."""
    found = results.estimate(severity, arm, ladder.figure)
    mark = "*" if arm in ladder.order and ladder.step(arm).sure else " "
    return f"{found.mean:.4f}{mark}{plus_minus(found)}"


def paper_text(each: Beside) -> str:
    """0.6065  +1.2%."""
    return f"{each.paper:.4f}  {signed(100 * each.deviation, 1)}%"


def verdict(results: Results, severity: float, evaluation: str) -> dict[str, Any]:
    """Ours against the paper's: cell by cell, and the orders; nothing at another severity, or other negatives."""
    every = beside(results, severity, evaluation, results.sampled)
    metrics = METRICS if comparable(results.sampled, severity) else ()
    figures = [Figure(evaluation, results.sampled, *metric) for metric in metrics]
    orders = {
        figure.name: {
            "ours": results.order(severity, figure),
            "paper": paper_order(evaluation, (figure.metric, figure.k), results.trained),
            "same": same_order(results, severity, figure),
        }
        for figure in figures
    }
    return {
        "cells": [each.told() for each in every],
        "within_5_percent": sum(each.near for each in every),
        "of": len(every),
        "orders": orders,
        "same_order": all(order["same"] for order in orders.values()) if orders else None,
    }


def tested(ladder: Ladder) -> list[dict[str, Any]]:
    """The tests of a ladder, as JSON can hold them."""
    return [
        {**ladder.figure._asdict(), "better": step.arm, "next": step.below, **asdict(step.test), "sure": step.sure}
        for step in ladder.steps
        if step.test is not None
    ]


def _order(results: Results, severity: float) -> str:
    figures = [Figure(TRUE, results.sampled, *metric) for metric in METRICS]
    first = headline(results)
    ours = results.order(severity, first)
    if len(ours) < 2:
        return f"{first.name} on true relevance: {_means(results, severity, first)}."
    said = f"On true relevance the order of the means by {first.name} is {order_words(ours)}."
    theirs = paper_order(TRUE, ("NDCG", 10), results.trained)
    if len(theirs) < 2 or not comparable(first.protocol, severity):
        return said
    same = [figure.name for figure in figures if same_order(results, severity, figure)]
    told = "under all four metrics" if len(same) == len(figures) else f"under {', '.join(same)}" if same else "nowhere"
    return f"{said} The paper’s is {order_words(theirs)}; the paper’s arms stand in that order here {told}."


def _arms(results: Results, severity: float) -> str:
    figure = headline(results)
    tests = against_base(results, severity, figure)
    said = [f"{difference(arm, test)}{_closes(results, severity, arm)}." for arm, test in tests.items() if arm != BOUND]
    if BOUND in tests and BASE in results.trained:
        said.append(f"{difference(BOUND, tests[BOUND]).capitalize()}.")
    return " ".join(said)


def _closes(results: Results, severity: float, arm: str) -> str:
    figure = headline(results)
    gap = results.gap_closed(arm, figure, [severity])
    table = TABLES[TRUE]
    if arm not in table or arm not in learnable(results) or not comparable(figure.protocol, severity):
        return f"; {gap_words(gap)}"
    place = METRICS.index((figure.metric, figure.k))
    naive, ideal, own = (table[name][place] for name in (BASE, BOUND, arm))
    return f"; {gap_words(gap)} (the paper: {share((own - naive) / (ideal - naive))})"


def _near(results: Results, severity: float) -> str:
    every = beside(results, severity, TRUE, results.sampled)
    if not every:
        return ""
    near, covered = sum(each.near for each in every), sum(bool(each.covered) for each in every)
    low = sum(each.deviation < 0 for each in every)
    way = "all of ours are lower" if low == len(every) else "all of ours are higher" if not low else ""
    return (
        f"{near} of the {len(every)} figures of the paper’s table lie within 5% of ours, and {covered} inside our "
        f"intervals{'; ' + way if way else ''}. Levels depend on the world: that the paper’s could not be had, only "
        f"made again, is one reason to look at orders and gaps first."
    )


def _full(results: Results, severity: float) -> str:
    sampled, full = (Figure(TRUE, protocol, "NDCG", 10) for protocol in (results.sampled, "full"))
    one, other = results.order(severity, sampled), results.order(severity, full)
    means = _means(results, severity, full)
    if len(other) < 2:
        return f"Ranked among all items instead of drawn ones: {means}."
    agree = "the same order" if one == other else "another order"
    return f"Ranked among all items instead of drawn ones, the means of NDCG@10 stand in {agree}: {means}."


def _means(results: Results, severity: float, figure: Figure) -> str:
    order = results.order(severity, figure)
    return ", ".join(f"{named(arm)} {results.estimate(severity, arm, figure).mean:.3f}" for arm in order)
