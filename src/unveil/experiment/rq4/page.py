"""The page of RQ4: the paper's table beside ours, three rankings, what flips, the control, the weights."""

from unveil.experiment.outcome import STANDARD
from unveil.experiment.reproduce import blocks, plots
from unveil.experiment.reproduce.ranking import ladders
from unveil.experiment.reproduce.results import Figure as Judged
from unveil.experiment.reproduce.rq1_page import paper_table, starred
from unveil.experiment.reproduce.words import interval
from unveil.experiment.rq4.control_page import control_section
from unveil.experiment.rq4.flips import DOUBTED, TURNED, Pair, box, pairs
from unveil.experiment.rq4.made import made
from unveil.experiment.rq4.published import METRICS, published
from unveil.experiment.rq4.results import AS_IT_IS, RealResults
from unveil.experiment.rq4.run import RealAnswer
from unveil.experiment.rq4.tables import beside, protocols
from unveil.experiment.rq4.training_page import training_section, weights_section
from unveil.experiment.rq4.words import caution, headline, reading
from unveil.report.names import COLOURS, against, named
from unveil.report.page import Block, Cell, Column, Figure, Figures, KeyFigure, Note, Page, Section, Table, Text

TITLE = "How well does each estimator rank real interactions?"
_STEADY = "No conclusion by NDCG@10 that a test is sure of depends on the ranking."


def page(answer: RealAnswer, command: str) -> Page:
    """The whole page."""
    first, *rest = reading(answer)
    results = answer.results
    return Page(
        title=TITLE,
        lede=first,
        key_figures=_key_figures(results),
        sections=[
            Section("What the figures say", [*(Text(each) for each in rest), Note(caution(results))]),
            Section("What flips between rankings", _flips(results)),
            Section("Beside the paper", _beside(answer)),
            Section("Three ways to rank", [_arms(results, name) for name in protocols(results)]),
            control_section(results),
            weights_section(results),
            Section("What is recommended", [_lists(results)]),
            training_section(results),
            Section("How it was made", made(answer, command)),
        ],
    )


def _key_figures(results: RealResults) -> list[KeyFigure]:
    figure = headline(results)
    label = f"NDCG@10 against {against(figure.protocol)}"
    return [
        KeyFigure(f"{results.estimate(AS_IT_IS, arm, figure).mean:.3f}", f"{named(arm)}: {label}")
        for arm in results.trained
    ]


def _flips(results: RealResults) -> list[Block]:
    told = box(results)
    flipped = [line for line in told if not line.startswith(("The same", TURNED, DOUBTED))]
    notes = [Note(line, warning=True) for line in flipped] or [Note(_STEADY)]
    return [*notes, *(Text(line) for line in told if line not in flipped), _pairs(results)]


def _pairs(results: RealResults) -> Table:
    columns = [
        Column("pair"),
        *(Column(against(name), True, "difference, 95% interval, p") for name in results.protocols),
    ]
    rows: list[list[Cell | str]] = [
        [f"{named(pair.one)} over {named(pair.other)}", *(_test(pair, name) for name in results.protocols)]
        for pair in pairs(results)
    ]
    caption = "Every pair under every ranking, NDCG@10: paired t, p after Holm’s correction over the table"
    return Table(caption, columns, rows)


def _test(pair: Pair, protocol: str) -> Cell:
    found = pair.tests[protocol]
    p = "p < 0.001" if found.p < 0.001 else f"p {found.p:.3f}"
    told = f"{found.difference:+.4f} [{found.low:.4f}, {found.high:.4f}] {p}".replace("-", "−")
    return Cell(told, found.difference)


def _beside(answer: RealAnswer) -> list[Block]:
    every = beside(answer)
    figures = [Judged(STANDARD, answer.results.sampled, *metric) for metric in METRICS]
    drawn = Figures([_dots(answer, figure) for figure in figures])
    return [drawn, paper_table(every)] if every else [Text("The paper has no figures for a log of this size."), drawn]


def _dots(answer: RealAnswer, figure: Judged) -> Figure:
    marks = [_mark(answer, arm, figure) for arm in answer.results.trained]
    told = ", ".join(f"{mark.label} {mark.mean:.3f}" for mark in marks)
    diamonds = any(mark.paper is not None for mark in marks)
    return Figure(
        f"{figure.name} against {against(figure.protocol)}",
        plots.beside(marks, figure.name, f"{figure.protocol}-{figure.metric.lower()}-{figure.k}"),
        f"Mean {figure.name} of each arm with its interval: {told}.",
        f"Dot and line: our mean and 95% interval.{' Diamond: the paper.' if diamonds else ''} The axis does not "
        f"start at 0.",
    )


def _mark(answer: RealAnswer, arm: str, figure: Judged) -> plots.Mark:
    found = answer.results.estimate(AS_IT_IS, arm, figure)
    low, high = (found.mean if end is None else end for end in (found.low, found.high))
    told = f"{named(arm)}: {found.mean:.4f}{interval(found, 4)}"
    return plots.Mark(named(arm), found.mean, low, high, published(answer.data, arm, figure), COLOURS.get(arm), told)


def _arms(results: RealResults, protocol: str) -> Table:
    every = ladders(results, AS_IT_IS, STANDARD, protocol)
    return Table(
        f"Ranked against {against(protocol)}. Means, 95% intervals; * better than the next best, p < 0.05 after Holm’s "
        f"correction",
        [Column("arm"), *(Column(ladder.figure.name, True) for ladder in every)],
        [[named(arm), *(starred(results, AS_IT_IS, arm, ladder) for ladder in every)] for arm in results.arms],
    )


def _lists(results: RealResults) -> Table:
    return Table(
        "The ten items recommended: means, 95% intervals over replicates; the control has the λ of the paper’s ranking",
        [Column("arm"), *(Column(figure.name, True) for figure in results.list_figures)],
        [[named(arm), *(_list_cell(results, arm, figure) for figure in results.list_figures)] for arm in results.arms],
    )


def _list_cell(results: RealResults, arm: str, figure: Judged) -> Cell:
    return blocks.figure_cell(results.estimate(AS_IT_IS, arm, figure))
