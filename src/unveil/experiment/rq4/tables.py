"""The tables of RQ4: for a terminal and for programs, with the paper's figures beside ours."""

from typing import Any

from unveil.experiment.outcome import STANDARD
from unveil.experiment.reproduce.question import Sheet
from unveil.experiment.reproduce.ranking import ladders
from unveil.experiment.reproduce.results import Figure
from unveil.experiment.reproduce.rq1 import mean_text, paper_text
from unveil.experiment.reproduce.verdict import Beside
from unveil.experiment.rq4.published import METRICS, published
from unveil.experiment.rq4.results import AS_IT_IS, RealResults
from unveil.experiment.rq4.run import RealAnswer
from unveil.report.names import against, named

FOOT = "± half the 95% interval · * better than the next best, p < 0.05 after Holm’s correction"


def protocols(results: RealResults) -> list[str]:
    """The paper's ranking first, then all items, then the rest."""
    first = [results.sampled, "full"]
    return [*first, *(name for name in results.protocols if name not in first)]


def beside(answer: RealAnswer) -> list[Beside]:
    """Every cell of the paper's table that we have, arm by arm."""
    figures = [Figure(STANDARD, answer.results.sampled, *metric) for metric in METRICS]
    return [
        Beside(arm, figure, answer.results.estimate(AS_IT_IS, arm, figure), paper)
        for arm in answer.results.trained
        for figure in figures
        if (paper := published(answer.data, arm, figure)) is not None
    ]


def sheets(answer: RealAnswer) -> list[Sheet]:
    """A table for each ranking: arms down, the paper's metrics across."""
    return [sheet(answer, protocol) for protocol in protocols(answer.results)]


def sheet(answer: RealAnswer, protocol: str) -> Sheet:
    """Mean, asterisk, half the interval; the paper's figure below."""
    results = answer.results
    every = ladders(results, AS_IT_IS, STANDARD, protocol)
    paper = {(each.arm, each.figure): each for each in beside(answer)}
    rows: list[list[str]] = []
    for arm in results.arms:
        rows.append([named(arm), *(mean_text(results, AS_IT_IS, arm, ladder) for ladder in every)])
        if any((arm, ladder.figure) in paper for ladder in every):
            rows.append(["  paper", *(paper_text(paper[arm, ladder.figure]) for ladder in every)])
    foot = f"{FOOT} · paper: its figure, and how far ours is from it" if protocol == results.sampled and paper else FOOT
    return Sheet(f"Ranked against {against(protocol)}", ["", *(ladder.figure.name for ladder in every)], rows, foot)


def rows(answer: RealAnswer) -> list[dict[str, Any]]:
    """One row for each estimator, protocol, metric and k, as in every results.json."""
    results = answer.results
    return [_row(answer, arm, figure) for arm in results.arms for figure in (*results.figures, *results.list_figures)]


def _row(answer: RealAnswer, arm: str, figure: Figure) -> dict[str, Any]:
    found = answer.results.estimate(AS_IT_IS, arm, figure)
    return {
        "estimator": arm,
        "preset": answer.plan.study.preset,
        "severity": None,
        "protocol": figure.protocol,
        "evaluation": figure.evaluation,
        "metric": figure.metric,
        "k": figure.k,
        "mean": found.mean,
        "low": found.low,
        "high": found.high,
        "replicates": answer.results.replicates,
        "worlds": 0,
        "paper": published(answer.data, arm, figure),
    }
