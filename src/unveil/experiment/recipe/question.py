"""The question: does what the paper's recipe for real data reports as a gain hold on true relevance?"""

from dataclasses import asdict
from math import isfinite
from typing import Any

from unveil.evaluation.statistics import Paired
from unveil.experiment.outcome import STANDARD, TRUE
from unveil.experiment.recipe.gains import METRICS, Gain, by_popularity, gains
from unveil.experiment.reproduce.question import Sheet
from unveil.experiment.reproduce.ranking import ALPHA
from unveil.experiment.reproduce.results import Figure, Results
from unveil.experiment.reproduce.rq1_page import shared_sections
from unveil.experiment.reproduce.run import Answer
from unveil.report.names import named, signed
from unveil.report.page import Cell, Column, Section, Table

#: Verdicts in words.
VERDICTS = {
    "none reported": "no gain is reported",
    "missed": "no gain is reported, and on true relevance there is one",
    "may be none": "on true relevance it cannot be told from none",
    "holds": "it holds",
    "is a loss": "on true relevance it is a loss",
    "unsure; may be none": "as reported it may be chance, and on true relevance as well",
    "unsure; holds": "as reported it may be chance; on true relevance it is a gain",
    "unsure; is a loss": "as reported it may be chance; on true relevance it is a loss",
}
WHAT = (
    "The recipe is the paper's for real data: popularity counted from the log stands in for exposure, a weight is "
    "popularity^−exponent, and a target that was taken is ranked against negatives drawn by popularity. Popular "
    "negatives reward whatever ranks popular items low, whether or not it ranks relevant ones high. Here the truth is "
    "known: true relevance ranks the item that the user would take if they saw everything, among all items."
)
FLATTERED = (
    "Which epoch is kept is decided by true relevance on the validation cases, which a real log does not have: what an "
    "arm gains in truth is, if anything, flattered by that. With --epoch-by taken what was taken chooses it."
)

_WAYS = (
    "reported: what was taken, {} · taken: among all items · true: true relevance, all items · sampled: {} · "
    "means over {}"
)


class RecipeQuestion:
    """Naive, IPS and ITPS by popularity, judged as on real data, and by the truth."""

    name = "recipe"
    title = "Does what the recipe for real data reports as a gain hold on true relevance?"

    def sheets(self, answer: Answer) -> list[Sheet]:
        """Levels under each way to judge, and the gains."""
        found = answer.results
        return [each for p in found.severities for each in (_levels(found, p), _gains(found, p))]

    def reading(self, answer: Answer) -> list[str]:
        """What is reported, what holds."""
        found = answer.results
        chosen = [FLATTERED] if answer.plan.study.epoch_by == "truth" else []
        return [*(_read(found, severity) for severity in found.severities), WHAT, *chosen]

    def sections(self, answer: Answer) -> list[Section]:
        """The gains, and what all questions share."""
        found = answer.results
        tables = [each for p in found.severities for each in (_table(found, p), _levels_table(found, p))]
        return [Section("What is reported, and what holds", tables), *shared_sections(answer)]

    def findings(self, answer: Answer) -> dict[str, Any]:
        """Every gain with both tests."""
        found = answer.results
        return {"gains": [_plain(gain, p) for p in found.severities for gain in gains(found, p)]}


def figures(results: Results) -> dict[str, Figure]:
    """Ways to judge by NDCG@10: as the recipe does, and by the truth."""
    popular = by_popularity(results)
    return {
        "reported": Figure(STANDARD, popular, "NDCG", 10),
        "taken": Figure(STANDARD, "full", "NDCG", 10),
        "true": Figure(TRUE, "full", "NDCG", 10),
        "sampled": Figure(TRUE, results.sampled, "NDCG", 10),
    }


def _levels(results: Results, severity: float) -> Sheet:
    judged = figures(results)
    rows = [
        [named(arm), *(f"{results.estimate(severity, arm, figure).mean:.4f}" for figure in judged.values())]
        for arm in results.arms
    ]
    return Sheet(
        f"NDCG@10, severity {severity:g}",
        ["", *judged],
        rows,
        _WAYS.format(by_popularity(results), results.sampled, results.units),
    )


def _levels_table(results: Results, severity: float) -> Table:
    told = _levels(results, severity)
    about = ["", by_popularity(results), "all items", "all items", results.sampled]
    columns = [Column(name or "estimator", bool(name), way) for name, way in zip(told.head, about, strict=True)]
    rows: list[list[Cell | str]] = [[row[0], *(Cell(text, float(text)) for text in row[1:])] for row in told.rows]
    return Table(f"{told.title}: what was taken (reported, taken), and true relevance (true, sampled)", columns, rows)


def _gains(results: Results, severity: float) -> Sheet:
    rows = [
        [named(gain.arm), _metric(gain), *map(_marked, (gain.reported, gain.true)), gain.verdict]
        for gain in gains(results, severity)
    ]
    head = ["less naive", "metric", "reported", "true", "verdict"]
    return Sheet(f"gains, severity {severity:g}", head, rows, "* p < 0.05 after Holm’s correction over the arms")


def _table(results: Results, severity: float) -> Table:
    columns = [
        Column("estimator"),
        Column("metric"),
        Column("reported", True, "taken, popular negatives"),
        Column("true", True, "true relevance, all items"),
        Column("verdict"),
    ]
    rows: list[list[Cell | str]] = [
        [
            named(gain.arm),
            _metric(gain),
            Cell(_told(gain.reported), gain.reported.difference),
            Cell(_told(gain.true), gain.true.difference),
            gain.verdict,
        ]
        for gain in gains(results, severity)
    ]
    return Table(f"Differences from naive at severity {severity:g}", columns, rows)


def _read(results: Results, severity: float) -> str:
    every = gains(results, severity)
    if not every:
        return "A gain is over naive: without it and something else that is not ideal there is nothing to compare."
    told = "; ".join(
        f"{named(gain.arm)}: {signed(gain.reported.difference)} reported, {signed(gain.true.difference)} on true "
        f"relevance: {VERDICTS[gain.verdict]}"
        for gain in every
        if gain.metric == METRICS[0]
    )
    return f"At severity {severity:g}, in NDCG@10 against naive. {told}."


def _metric(gain: Gain) -> str:
    return f"{gain.metric[0]}@{gain.metric[1]}"


def _marked(found: Paired) -> str:
    return f"{signed(found.difference)}{'*' if found.p < ALPHA else ''}"


def _told(found: Paired) -> str:
    p = "p < 0.001" if found.p < 0.001 else f"p {found.p:.3f}" if isfinite(found.p) else "no test"
    return f"{signed(found.difference)} ({p})"


def _plain(gain: Gain, severity: float) -> dict[str, Any]:
    tests = {
        name: {key: value if isfinite(value) else None for key, value in asdict(test).items()}
        for name, test in (("reported", gain.reported), ("true", gain.true))
    }
    metric, k = gain.metric
    return {
        "estimator": gain.arm,
        "severity": severity,
        "metric": metric,
        "k": k,
        **tests,
        "claimed": gain.claimed,
        "verdict": gain.verdict,
    }
