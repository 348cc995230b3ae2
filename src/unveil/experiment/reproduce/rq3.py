"""RQ3: how much does it matter that evaluation is on true relevance?"""

from dataclasses import dataclass
from typing import Any

from unveil.experiment.outcome import BOUND, STANDARD, TRUE
from unveil.experiment.reproduce import plots
from unveil.experiment.reproduce.networks import networks
from unveil.experiment.reproduce.published import METRICS, TABLES, comparable
from unveil.experiment.reproduce.question import Sheet
from unveil.experiment.reproduce.ranking import ladders
from unveil.experiment.reproduce.results import Figure as Judged
from unveil.experiment.reproduce.results import Results
from unveil.experiment.reproduce.rq1 import sheet, tested, verdict
from unveil.experiment.reproduce.rq1_page import arms_table, paper_table, shared_sections, tests_table
from unveil.experiment.reproduce.run import Answer
from unveil.experiment.reproduce.turned import turned, turned_words
from unveil.experiment.reproduce.verdict import beside, paper_order
from unveil.report.names import COLOURS, listed, named
from unveil.report.page import Block, Cell, Column, Figure, Figures, Section, Table

UP, DOWN, SAME = "↑", "↓", ""


class RQ3:
    """The same models under both evaluations, and the ranks that flip."""

    name = "rq3"
    title = "How much does it matter to evaluate on true relevance?"

    def sheets(self, answer: Answer) -> list[Sheet]:
        """Both evaluations, and the ranks."""
        found, severity = answer.results, answer.results.severities[0]
        both = [sheet(found, severity, evaluation, found.sampled) for evaluation in (TRUE, STANDARD)]
        return [*both, _ranks_sheet(found, severity)]

    def reading(self, answer: Answer) -> list[str]:
        """What flips, whom the standard evaluation would have us choose, and what the paper saw."""
        found, severity = answer.results, answer.results.severities[0]
        said = [_flipped(found, severity), turned_words(found, severity), _chosen(found, severity)]
        said += [_levels(found, severity), networks(answer.plan), _paper(found, severity)]
        return [paragraph for paragraph in said if paragraph]

    def sections(self, answer: Answer) -> list[Section]:
        """Both evaluations side by side."""
        found, severity = answer.results, answer.results.severities[0]
        sides: list[Block] = [arms_table(found, severity, evaluation, found.sampled) for evaluation in (TRUE, STANDARD)]
        whole: list[Block] = [arms_table(found, severity, evaluation, "full") for evaluation in (TRUE, STANDARD)]
        every = beside(found, severity, STANDARD, found.sampled)
        paper: list[Block] = [paper_table(every)] if every else []
        return [
            Section("Ranks that flip", [Figures(_slopes(found, severity)), flips_table(found, severity)]),
            Section("The two evaluations", [*sides, *paper]),
            Section("Among all items", whole),
            Section("Tests under the standard evaluation", [tests_table(found, severity, STANDARD)]),
            *shared_sections(answer),
        ]

    def findings(self, answer: Answer) -> dict[str, Any]:
        """The flips, the verdicts under both evaluations, and the tests."""
        found, severity = answer.results, answer.results.severities[0]
        return {
            "turned": [pair.plain() for pair in turned(found, severity)],
            "flips": [flip.plain() for protocol in found.protocols for flip in flips(found, severity, protocol)],
            "verdict": {evaluation: verdict(found, severity, evaluation) for evaluation in (TRUE, STANDARD)},
            "tests": [
                step
                for evaluation in (TRUE, STANDARD)
                for ladder in ladders(found, severity, evaluation, found.sampled)
                for step in tested(ladder)
            ],
        }


@dataclass(frozen=True)
class Flip:
    """The places of an arm among the trained ones, 1 being best: on true relevance, and by the standard evaluation."""

    arm: str
    protocol: str
    metric: tuple[str, int]
    true: int
    standard: int
    paper: str | None  # the paper's arrow

    @property
    def arrow(self) -> str:
        """Up where the standard evaluation ranks the arm higher than the truth does."""
        return _arrow(self.true, self.standard)

    def plain(self) -> dict[str, Any]:
        """As JSON can hold it."""
        names = {UP: "up", DOWN: "down", SAME: "same"}
        return {
            "estimator": self.arm,
            "protocol": self.protocol,
            "metric": self.metric[0],
            "k": self.metric[1],
            "rank_true": self.true,
            "rank_standard": self.standard,
            "moves": names[self.arrow],
            "paper": None if self.paper is None else names[self.paper],
        }


def _arrow(true: int, standard: int) -> str:
    return UP if standard < true else DOWN if standard > true else SAME


def flips(results: Results, severity: float, protocol: str) -> list[Flip]:
    """Every trained arm under the paper's metrics."""
    return [_flip(results, severity, protocol, arm, metric) for metric in METRICS for arm in results.trained]


def _flip(results: Results, severity: float, protocol: str, arm: str, metric: tuple[str, int]) -> Flip:
    true, standard = (
        results.order(severity, Judged(evaluation, protocol, *metric)).index(arm) + 1 for evaluation in (TRUE, STANDARD)
    )
    return Flip(arm, protocol, metric, true, standard, _paper_arrow(severity, protocol, arm, metric))


def _paper_arrow(severity: float, protocol: str, arm: str, metric: tuple[str, int]) -> str | None:
    if arm not in TABLES[TRUE] or not comparable(protocol, severity):
        return None
    places = [paper_order(evaluation, metric, list(TABLES[TRUE])).index(arm) for evaluation in (TRUE, STANDARD)]
    return _arrow(*places)


def _ranks_sheet(results: Results, severity: float) -> Sheet:
    every = {(flip.arm, flip.metric): flip for flip in flips(results, severity, results.sampled)}
    rows = [[named(arm), *(_places(every[arm, metric]) for metric in METRICS)] for arm in results.trained]
    return Sheet(
        "rank on true relevance → rank by the standard evaluation",
        ["", *(f"{name}@{k}" for name, k in METRICS)],
        rows,
        "in brackets: the paper’s arrow",
    )


def _places(flip: Flip) -> str:
    theirs = "" if flip.paper is None else f" ({flip.paper or '='})"
    return f"{flip.true} → {flip.standard} {flip.arrow or '='}{theirs}"


def flips_table(results: Results, severity: float) -> Table:
    """Ranks under both evaluations, metric by metric, both rankings."""
    rows: list[list[Cell | str]] = [
        [
            named(flip.arm),
            protocol,
            f"{flip.metric[0]}@{flip.metric[1]}",
            Cell(str(flip.true), flip.true),
            Cell(str(flip.standard), flip.standard),
            flip.arrow or "=",
            "–" if flip.paper is None else flip.paper or "=",
        ]
        for protocol in reversed(results.protocols)
        for flip in flips(results, severity, protocol)
    ]
    columns = [
        Column("estimator"),
        Column("ranking"),
        Column("metric"),
        Column("rank by the truth", True),
        Column("rank by the log", True),
        Column("moves"),
        Column("paper"),
    ]
    return Table("Ranks among the trained arms, 1 being best", columns, rows)


def _slopes(results: Results, severity: float) -> list[Figure]:
    return [_slope(results, severity, Judged(TRUE, results.sampled, *metric)) for metric in METRICS]


def _slope(results: Results, severity: float, figure: Judged) -> Figure:
    arms = results.trained
    left, right = (
        {named(arm): results.estimate(severity, arm, each).mean for arm in arms}
        for each in (figure, figure._replace(evaluation=STANDARD))
    )
    ends = ("true relevance", "standard")
    slug = f"flip-{figure.metric.lower()}-{figure.k}"
    told = "; ".join(f"{name} {left[name]:.3f} and {right[name]:.3f}" for name in left)
    return Figure(
        f"{figure.name}: lines that cross are ranks that flip",
        plots.slopes(left, right, [COLOURS.get(arm) for arm in arms], ends, slug),
        f"{figure.name} of each estimator on true relevance and by the standard evaluation: {told}.",
        f"Means over {results.units}; against {results.sampled.partition('-')[2]} uniform negatives.",
    )


def _flipped(results: Results, severity: float) -> str:
    every = flips(results, severity, results.sampled)
    moved = [flip for flip in every if flip.arrow]
    if not moved:
        return (
            "Under all four metrics the two evaluations put the estimators in the same order: here the standard "
            "evaluation would not have misled."
        )
    names = list(dict.fromkeys(f"{flip.metric[0]}@{flip.metric[1]}" for flip in moved))
    up = list(dict.fromkeys(flip.arm for flip in moved if flip.arrow == UP))
    down = list(dict.fromkeys(flip.arm for flip in moved if flip.arrow == DOWN))
    return (
        f"The two evaluations put the estimators in different orders under {', '.join(names)}. The standard one, whose "
        f"targets had to be shown to be taken, ranks {listed(up)} higher than the truth does, and {listed(down)} lower."
    )


def _chosen(results: Results, severity: float) -> str:
    by = {
        evaluation: [
            arm for arm in results.order(severity, Judged(evaluation, results.sampled, "NDCG", 10)) if arm != BOUND
        ]
        for evaluation in (TRUE, STANDARD)
    }
    if by[TRUE][0] == by[STANDARD][0]:
        return f"By NDCG@10, of the losses that need no truth both put {named(by[TRUE][0])} first."
    sure = any(
        pair.sure for pair in turned(results, severity) if (pair.above, pair.below) == (by[TRUE][0], by[STANDARD][0])
    )
    doubt = "" if sure else ", though that may be chance"
    return (
        f"By NDCG@10, of the losses that need no truth the standard evaluation would have us choose "
        f"{named(by[STANDARD][0])}, and the truth {named(by[TRUE][0])}{doubt}."
    )


def _levels(results: Results, severity: float) -> str:
    figures = [Judged(evaluation, results.sampled, "NDCG", 10) for evaluation in (TRUE, STANDARD)]
    told = ", ".join(
        f"{named(arm)} {' and '.join(f'{results.estimate(severity, arm, figure).mean:.3f}' for figure in figures)}"
        for arm in results.trained
    )
    return f"NDCG@10 on true relevance and by the standard evaluation: {told}."


def _paper(results: Results, severity: float) -> str:
    every = [flip for flip in flips(results, severity, results.sampled) if flip.paper is not None]
    if not every or set(results.trained) != set(TABLES[TRUE]):
        return ""
    agree = sum(flip.arrow == flip.paper for flip in every)
    return f"Of the paper’s {len(every)} arrows (up, down or none) {agree} are the same here."
