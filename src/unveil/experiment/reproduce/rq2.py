"""RQ2: how robust is each estimator to increasing exposure bias?"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from unveil.experiment.outcome import BASE, BOUND, TRUE
from unveil.experiment.reproduce import blocks, plots
from unveil.experiment.reproduce.networks import networks
from unveil.experiment.reproduce.published import METRICS
from unveil.experiment.reproduce.question import Sheet
from unveil.experiment.reproduce.results import Figure as Judged
from unveil.experiment.reproduce.results import Results
from unveil.experiment.reproduce.rq1_page import arms_table, shared_sections
from unveil.experiment.reproduce.run import Answer
from unveil.experiment.reproduce.words import against_base, ess_words, gap_words, headline, learnable, verdict
from unveil.report.names import COLOURS, against, listed, named, signed
from unveil.report.page import Block, Cell, Column, Figure, Figures, Section, Table, Text

#: Of the bands, as in the caption of the paper's figure; tables have 95%.
LEVEL = 0.90


class RQ2:
    """The paper's four plots along the severity p, with slopes, the best at each p, and what is left of the sample."""

    name = "rq2"
    title = "How robust is each estimator to increasing exposure bias?"

    def sheets(self, answer: Answer) -> list[Sheet]:
        """NDCG@10 and Recall@10 along p, as in the paper and among all items."""
        found = answer.results
        figures = [Judged(TRUE, protocol, *metric) for protocol in reversed(found.protocols) for metric in METRICS[:2]]
        return [_sheet(found, figure) for figure in figures]

    def reading(self, answer: Answer) -> list[str]:
        """Who falls fastest, who is best where, what else differs, what weighting does."""
        found = answer.results
        said = [_slopes(found), _best(found), _arms(found), networks(answer.plan), _sample(found)]
        return [paragraph for paragraph in said if paragraph]

    def sections(self, answer: Answer) -> list[Section]:
        """Bands, tables and shared parts."""
        found = answer.results
        return [
            Section("Along the severity", _bands(found)),
            Section("Slopes, and the best at each severity", [_slope_table(found), _gap_table(found)]),
            Section("Every severity", [arms_table(found, p, TRUE, found.sampled) for p in found.severities]),
            *shared_sections(answer),
        ]

    def findings(self, answer: Answer) -> dict[str, Any]:
        """Slopes, the best at each severity, effective sample sizes, and the gap closed at each."""
        found, figure = answer.results, headline(answer.results)
        return {
            "slopes": {arm: {f.name: slope(found, arm, f) for f in _figures(found)} for arm in found.trained},
            "best": {f"{p:g}": {f.name: found.order(p, f) for f in _figures(found)} for p in found.severities},
            "ess_share": {
                arm: {
                    f"{p:g}": share for p in found.severities if (share := blocks.ess_share(found, p, arm)) is not None
                }
                for arm in found.trained
            },
            "gap_closed_by_severity": {
                arm: {f"{p:g}": (gap := found.gap_closed(arm, figure, [p])) and gap.mean for p in found.severities}
                for arm in found.trained
            },
            "band": LEVEL,
        }


def _figures(results: Results) -> list[Judged]:
    return [Judged(TRUE, results.sampled, *metric) for metric in METRICS]


def slope(results: Results, arm: str, figure: Judged) -> float | None:
    """Least squares over the severities: change of the mean for each unit of p; None with a single severity."""
    if len(results.severities) < 2:
        return None
    means = [results.estimate(severity, arm, figure).mean for severity in results.severities]
    centred = np.array(results.severities) - np.mean(results.severities)
    return float(centred @ (np.array(means) - means[0]) / (centred @ centred))


def _sheet(results: Results, figure: Judged) -> Sheet:
    rows = [
        [
            named(arm),
            *(f"{results.estimate(p, arm, figure).mean:.4f}" for p in results.severities),
            _slope(results, arm, figure),
        ]
        for arm in results.arms
    ]
    head = ["", *(f"p = {p:g}" for p in results.severities), "slope"]
    return Sheet(
        f"{figure.name} on true relevance, against {against(figure.protocol)}",
        head,
        rows,
        "slope: change for each unit of p",
    )


def _slope(results: Results, arm: str, figure: Judged) -> str:
    found = slope(results, arm, figure)
    return "–" if found is None else signed(found)


def _slopes(results: Results) -> str:
    figure = headline(results)
    found = {arm: slope(results, arm, figure) for arm in results.trained}
    known = {arm: value for arm, value in found.items() if value is not None}
    if not known:
        return ""
    order = sorted(known, key=lambda arm: known[arm])
    told = ", ".join(f"{named(arm)} {signed(known[arm])}" for arm in order)
    severities = ", ".join(f"{p:g}" for p in results.severities)
    said = (
        f"With each unit of p the mean of {figure.name} on true relevance changes by: {told} (least squares over "
        f"p = {severities})"
    )
    falling = [arm for arm in order if round(known[arm], 3) < 0]
    return f"{said}: {_falling(falling, order)}." if len(order) > 1 else f"{said}."


def _falling(falling: Sequence[str], order: Sequence[str]) -> str:
    """Who falls, as far as the printed digits tell, and who most: `order` begins with the steepest."""
    if not falling:
        return "none falls"
    still = listed(arm for arm in order if arm not in falling)
    most = f"{named(order[0])} falls most"
    return f"{most}, and {still} not at all" if still else f"all fall, and {most}"


def _best(results: Results) -> str:
    figure = headline(results)
    if len(results.trained) < 2:
        return ""
    winners = {p: next(arm for arm in results.order(p, figure) if arm != BOUND) for p in results.severities}
    if len(set(winners.values())) == 1:
        return (
            f"Of the losses that need no truth {named(next(iter(winners.values())))} has the highest mean at every p."
        )
    told = "; ".join(f"at p = {p:g} {named(arm)}" for p, arm in winners.items())
    return f"Of the losses that need no truth the highest mean is, {told}."


def _arms(results: Results) -> str:
    figure, said = headline(results), []
    for arm in learnable(results) if BASE in results.trained else []:
        words = {p: verdict(against_base(results, p, figure)[arm]) for p in results.severities}
        told = "; ".join(f"{word} it at p = {_places(words, word)}" for word in dict.fromkeys(words.values()))
        said.append(
            f"Against the naive loss, {named(arm)} {told}; over all p, {gap_words(results.gap_closed(arm, figure))}."
        )
    return " ".join(said)


def _places(words: dict[float, str], word: str) -> str:
    return ", ".join(f"{p:g}" for p, each in words.items() if each == word)


def _sample(results: Results) -> str:
    last = results.severities[-1]
    shares = {arm: found for arm in results.trained if (found := blocks.ess_share(results, last, arm)) is not None}
    return f"At p = {last:g}: {ess_words(shares)[0].lower()}{ess_words(shares)[1:]}" if shares else ""


def _bands(results: Results) -> list[Block]:
    drawn = [
        _band(results, Judged(TRUE, protocol, *metric))
        for protocol in reversed(results.protocols)
        for metric in METRICS
    ]
    half = len(METRICS)
    return [
        Text("Ranked against uniformly drawn negatives, as in the paper’s figure."),
        Figures(drawn[:half]),
        Text("Ranked against all items."),
        Figures(drawn[half:]),
    ]


def _band(results: Results, figure: Judged) -> Figure:
    every = {arm: [results.estimate(p, arm, figure, LEVEL) for p in results.severities] for arm in results.trained}
    curves = {
        named(arm): plots.Band(
            [found.mean for found in row],
            [found.mean if found.low is None else found.low for found in row],
            [found.mean if found.high is None else found.high for found in row],
            COLOURS.get(arm),
        )
        for arm, row in every.items()
    }
    told = "; ".join(f"{name} {', '.join(f'{mean:.3f}' for mean in band.mean)}" for name, band in curves.items())
    slug = f"band-{figure.protocol}-{figure.metric.lower()}-{figure.k}"
    return Figure(
        f"{figure.name}, {figure.protocol}",
        plots.bands(list(results.severities), curves, ("severity p", figure.name), slug),
        f"{figure.name} on true relevance along p = {', '.join(f'{p:g}' for p in results.severities)}: {told}.",
        f"Means, and {LEVEL:.0%} intervals over {results.units} as in the paper’s figure.",
    )


def _slope_table(results: Results) -> Table:
    columns = [Column("estimator"), *(Column(f.name, True, "change for each unit of p") for f in _figures(results))]
    rows = [[named(arm), *(_slope_cell(results, arm, f) for f in _figures(results))] for arm in results.trained]
    return Table("Slopes along the severity, on true relevance", columns, rows)


def _slope_cell(results: Results, arm: str, figure: Judged) -> Cell | str:
    found = slope(results, arm, figure)
    return "–" if found is None else Cell(signed(found, 4), found)


def _gap_table(results: Results) -> Table:
    figure = headline(results)
    columns = [
        Column("severity"),
        Column("order of the means"),
        *(Column(named(arm), True) for arm in learnable(results)),
    ]
    rows: list[list[Cell | str]] = [
        [
            f"p = {p:g}",
            listed(results.order(p, figure)),
            *(blocks.gap_cell(results.gap_closed(arm, figure, [p])) for arm in learnable(results)),
        ]
        for p in results.severities
    ]
    return Table(f"Order, and share of the gap closed in {figure.name}", columns, rows, sortable=False)
