"""The results of the demo as tables of its page."""

from unveil.experiment.demo.words import RELEVANCE, gap_text
from unveil.experiment.outcome import HEADLINE, STANDARD, TRUE, Estimate, Outcome
from unveil.report.names import named, signed
from unveil.report.page import Cell, Column, Table


def results(outcome: Outcome) -> Table:
    """A row for each arm."""
    drawn = outcome.sampled
    columns = (
        ("NDCG@10", "favourite among all items", TRUE, HEADLINE),
        ("Recall@10", "favourite among all items", TRUE, "full:Recall@10"),
        ("NDCG@10", f"favourite among {drawn.partition('-')[2]} drawn", TRUE, f"{drawn}:NDCG@10"),
        ("NDCG@10", "taken item among all items", STANDARD, HEADLINE),
        ("Relevance", "mean γ of the top 10", TRUE, RELEVANCE),
    )
    return Table(
        f"Judged by the truth and by the log: means over {outcome.units}, 95% intervals",
        [Column("loss"), *(Column(*title) for title in _titles(columns))],
        [
            [named(arm), *(_figure(outcome.estimate(arm, by, column)) for _, _, by, column in columns)]
            for arm in outcome.arms
        ],
    )


def against_naive(outcome: Outcome) -> Table:
    """Paired differences in the headline."""
    return Table(
        f"Against the naive loss, paired over {outcome.units}: NDCG@10 of the true favourite among all items",
        [
            Column("loss"),
            Column("difference", True, "mean, 95% interval"),
            Column("p", True, "paired t-test, Holm-corrected"),
            Column("gap closed", True, "from naive to ideal"),
        ],
        [
            [
                named(arm),
                Cell(signed(found.difference) + f" [{signed(found.low)}, {signed(found.high)}]", found.difference),
                Cell("below 0.001" if found.p < 0.001 else f"{found.p:.3f}", found.p),
                gap_text(outcome, arm),
            ]
            for arm, found in outcome.differences.items()
        ],
        sortable=False,
    )


def _titles(columns: tuple[tuple[str, str, str, str], ...]) -> list[tuple[str, bool, str]]:
    return [(title, True, about) for title, about, _, _ in columns]


def _figure(found: Estimate) -> Cell:
    return Cell(f"{found.mean:.3f}{interval(found)}", found.mean)


def interval(found: Estimate) -> str:
    """The interval as it is written after a mean; nothing where there is none."""
    return "" if found.low is None else f" [{found.low:.3f}, {found.high:.3f}]".replace("-", "−")
