"""The page of RQ1: our figures beside the paper's, the tests, the gap, the lists, the training, the world."""

from unveil.experiment.outcome import BASE, BOUND, TRUE
from unveil.experiment.reproduce import blocks, plots
from unveil.experiment.reproduce.published import METRICS, PROTOCOL, TABLES, comparable, published
from unveil.experiment.reproduce.ranking import Ladder, Step, ladders
from unveil.experiment.reproduce.results import Figure as Judged
from unveil.experiment.reproduce.results import Results
from unveil.experiment.reproduce.run import Answer
from unveil.experiment.reproduce.verdict import Beside, beside
from unveil.experiment.reproduce.words import interval, learnable
from unveil.report.names import COLOURS, named, share
from unveil.report.page import Block, Cell, Column, Figure, Figures, Section, Table, Text


def sections(answer: Answer) -> list[Section]:
    """Everything that is RQ1's own."""
    found, severity = answer.results, answer.results.severities[0]
    return [
        Section("Beside the paper", _beside(found, severity)),
        Section("Two ways to rank", [arms_table(found, severity, TRUE, protocol) for protocol in found.protocols]),
        Section("Tests, and the gap closed", [tests_table(found, severity, TRUE), _gap(found, severity)]),
        Section("What is recommended", [blocks.lists_table(found, severity)]),
        *shared_sections(answer),
    ]


def shared_sections(answer: Answer) -> list[Section]:
    """Training and world, as every question shows them."""
    found = answer.results
    training: list[Block] = [*blocks.warnings(found), Figures([blocks.learning(found, p) for p in found.severities])]
    training += [blocks.epochs_table(found, found.severities[0]), blocks.weights_table(found)]
    fitted = answer.source.data not in ("builtin",)
    return [
        Section("How they were trained", training),
        Section(
            "The world and its logs",
            [blocks.worlds_table(answer.worlds), blocks.logs_table(found, paper=fitted)],
        ),
    ]


def _beside(results: Results, severity: float) -> list[Block]:
    figures = [Judged(TRUE, results.sampled, *metric) for metric in METRICS]
    drawn: list[Block] = [Figures([dots(results, severity, figure) for figure in figures])]
    every = beside(results, severity, TRUE, results.sampled)
    if every:
        return [*drawn, paper_table(every)]
    why = f"The paper’s table is for severity 1 and {PROTOCOL.partition('-')[2]} uniform negatives: not shown here."
    return [Text(why), *drawn]


def dots(results: Results, severity: float, figure: Judged) -> Figure:
    """One metric of all trained arms, the paper's figure beside each."""
    marks = [_mark(results, severity, arm, figure) for arm in results.trained]
    told = ", ".join(f"{mark.label} {mark.mean:.3f}" for mark in marks)
    diamonds = any(mark.paper is not None for mark in marks)
    return Figure(
        f"{figure.name}, {figure.evaluation}",
        plots.beside(marks, figure.name, _slug(figure)),
        f"Mean {figure.name} of each estimator with its interval: {told}.",
        f"Dot and line: our mean and 95% interval.{' Diamond: the paper.' if diamonds else ''} The axis does not "
        f"start at 0.",
    )


def _mark(results: Results, severity: float, arm: str, figure: Judged) -> plots.Mark:
    found, paper = results.estimate(severity, arm, figure), published(arm, *figure, severity)
    low, high = (found.mean if end is None else end for end in (found.low, found.high))
    told = f"{named(arm)}: {found.mean:.4f}{interval(found, 4)}"
    return plots.Mark(named(arm), found.mean, low, high, paper, COLOURS.get(arm), told)


def _slug(figure: Judged) -> str:
    return f"{figure.evaluation.split()[0]}-{figure.protocol}-{figure.metric.lower()}-{figure.k}"


def paper_table(every: list[Beside]) -> Table:
    """Ours and the paper's, cell by cell, with a verdict."""
    rows: list[list[Cell | str]] = [
        [
            named(each.arm),
            each.figure.name,
            blocks.figure_cell(each.ours),
            Cell(f"{each.paper:.4f}", each.paper),
            Cell(blocks.deviation(each.deviation), each.deviation),
            "yes" if each.near else "no",
            "–" if each.covered is None else "yes" if each.covered else "no",
        ]
        for each in every
    ]
    columns = [
        Column("estimator"),
        Column("metric"),
        Column("ours", True, "mean, 95% interval"),
        Column("paper", True),
        Column("deviation", True),
        Column("within 5%"),
        Column("paper in our interval"),
    ]
    return Table("Our figures and the paper’s", columns, rows)


def arms_table(results: Results, severity: float, evaluation: str, protocol: str) -> Table:
    """All arms under the paper's four metrics; an asterisk where better than the next best by more than chance."""
    every = ladders(results, severity, evaluation, protocol)
    against = "all items" if protocol == "full" else f"{protocol.partition('-')[2]} items drawn uniformly"
    return Table(
        f"{evaluation.capitalize()}: ranked against {against}, severity {severity:g}. Means, 95% intervals; * better "
        f"than the next best, p < 0.05 after Holm’s correction",
        [Column("estimator"), *(Column(ladder.figure.name, True) for ladder in every)],
        [[named(arm), *(starred(results, severity, arm, ladder) for ladder in every)] for arm in results.arms],
    )


def starred(results: Results, severity: float, arm: str, ladder: Ladder) -> Cell:
    """0.607* [0.601, 0.613]."""
    star = "*" if arm in ladder.order and ladder.step(arm).sure else ""
    return blocks.figure_cell(results.estimate(severity, arm, ladder.figure), star)


def tests_table(results: Results, severity: float, evaluation: str) -> Table:
    """Each arm against the next best."""
    every = [ladder for protocol in results.protocols for ladder in ladders(results, severity, evaluation, protocol)]
    columns = [
        Column("pair"),
        Column("ranking"),
        Column("metric"),
        Column("difference", True, "mean, 95% interval"),
        Column("p", True, "paired t, Holm over the ranking’s table"),
    ]
    rows = [_test(ladder.figure, step) for ladder in every for step in ladder.steps if step.test is not None]
    return Table(f"Each arm against the next best, {evaluation}", columns, rows)


def _test(figure: Judged, step: Step) -> list[Cell | str]:
    assert step.test is not None
    assert step.below is not None
    found = step.test
    told = f"{found.difference:.4f} [{found.low:.4f}, {found.high:.4f}]".replace("-", "−")
    p = "below 0.001" if found.p < 0.001 else f"{found.p:.3f}"
    pair = f"{named(step.arm)} over {named(step.below)}"
    return [pair, figure.protocol, figure.name, Cell(told, found.difference), Cell(p, found.p)]


def _gap(results: Results, severity: float) -> Table:
    rows: list[list[Cell | str]] = []
    for arm in learnable(results):
        for metric in METRICS:
            figures = [Judged(TRUE, protocol, *metric) for protocol in results.protocols]
            shares = [blocks.gap_cell(results.gap_closed(arm, figure, [severity])) for figure in figures]
            paper = _paper_gap(arm, METRICS.index(metric)) if comparable(results.sampled, severity) else "–"
            rows.append([named(arm), f"{metric[0]}@{metric[1]}", *shares, paper])
    columns = [Column("estimator"), Column("metric"), *(Column(protocol, True) for protocol in results.protocols)]
    return Table("Share of the gap from naive to ideal that is closed", [*columns, Column("paper", True)], rows)


def _paper_gap(arm: str, place: int) -> str:
    table = TABLES[TRUE]
    if arm not in table:
        return "–"
    naive, ideal, own = (table[name][place] for name in (BASE, BOUND, arm))
    return share((own - naive) / (ideal - naive))
