"""The figures of a feedback loop by round."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import NamedTuple

from unveil.evaluation.statistics import Paired
from unveil.report import page
from unveil.report.names import COLOURS, listed, named
from unveil.report.plots import Line, Scale, lines
from unveil.studies.results import Estimate, Measure, Results, corrected


class Shown(NamedTuple):
    """A figure as it is called, `{k}` standing for the places of a list; its explanation is in the template."""

    title: str
    group: str
    digits: int = 3


FIGURES: Mapping[str, Shown] = {
    "efd": Shown("EFD@{k}", "novelty"),
    "efd_first": Shown("EFD@{k} by the first log", "novelty"),
    "arp": Shown("ARP@{k}", "novelty", 1),
    "gini": Shown("Gini@{k}", "diversity"),
    "coverage": Shown("Coverage@{k}", "diversity"),
    "collective": Shown("Collective diversity", "diversity", 1),
    "individual": Shown("Individual diversity", "diversity"),
    "overlap": Shown("Overlap", "diversity"),
    "log_gini": Shown("Gini of the log", "log", 4),
    "taken_efd": Shown("Novelty of the chosen items", "log"),
    "taken": Shown("Users who chose an item", "log"),
    "relevance": Shown("Relevance of the recommendations", "truth"),
    "taken_relevance": Shown("Relevance of the chosen items", "truth"),
    "standing": Shown("Rank of the recommendations", "truth"),
    "taken_standing": Shown("Rank of the chosen items", "truth"),
    "short": Shown("Short lists", "log"),
    "events": Shown("Events", "log", 0),
    "loss": Shown("Loss", "training"),
    "ess": Shown("Effective sample", "training"),
}
#: The figure that conclusions are drawn from.
HEADLINE = "efd"


def measure_of(key: str, k: int) -> Measure:
    """A figure as a measure of the long frame."""
    return Measure(FIGURES[key].group, "loop", key, k)


class Known(NamedTuple):
    """The models with a figure in some round, and the rounds in which all of them have it, in all replicates."""

    models: list[str]
    rounds: list[int]


@dataclass(frozen=True, eq=False)
class LoopResults(Results):
    """The figures by round. Some are missing: no item is chosen in round 0, a rule has no loss, a log no γ."""

    @property
    def k(self) -> int:
        return self.measures[0].k

    @property
    def rounds(self) -> int:
        return int(self.along("round")[-1])

    @cached_property
    def known(self) -> dict[str, Known]:
        found, every = {}, range(self.rounds + 1)
        for key in FIGURES:
            at = {
                (model, n)
                for model, n in product(self.arms, every)
                if len(self.values[(("round", n),)].get((model, measure_of(key, self.k)), ())) == self.replicates
            }
            if models := [model for model in self.arms if any((model, n) in at for n in every)]:
                found[key] = Known(models, [n for n in every if all((model, n) in at for model in models)])
        return found

    @property
    def plotted(self) -> list[str]:
        return [key for key, known in self.known.items() if len(known.rounds) > 1]

    def title(self, key: str) -> str:
        return FIGURES[key].title.format(k=self.k)

    def figure(self, model: str, key: str, round: int | None = None) -> Estimate:
        return self.at(round=self.rounds if round is None else round).estimate(model, measure_of(key, self.k))

    def changes(self, key: str) -> dict[str, float]:
        """Of every model the mean of the last round less that of the first one that has the figure."""
        first, *_, last = self.known[key].rounds
        return {m: self.figure(m, key, last).mean - self.figure(m, key, first).mean for m in self.arms}

    def highest_first(self, key: str, round: int | None = None) -> list[str]:
        return sorted(self.known[key].models, key=lambda model: -self.figure(model, key, round).mean)

    def differences(self) -> dict[str, Paired]:
        """EFD of the other models less that of the first in the last round, replicate by replicate; p after Holm."""
        last, measure, (base, *others) = self.at(round=self.rounds), measure_of(HEADLINE, self.k), self.arms
        return dict(zip(others, corrected(last.difference(each, base, measure) for each in others), strict=True))

    def above(self, one: str, other: str) -> int:
        every = range(self.rounds + 1)
        return sum(self.figure(one, HEADLINE, n).mean > self.figure(other, HEADLINE, n).mean for n in every)


def round_figure(results: LoopResults, key: str) -> page.Figure:
    """A figure's means along the rounds, with bands where there are replicates."""
    title, digits, (models, rounds) = results.title(key), FIGURES[key].digits, results.known[key]
    drawn, cells = dict[str, Line](), list[list[page.Cell]]()
    for model in models:
        found = [results.figure(model, key, n) for n in rounds]
        texts = [_text(each, digits) for each in found]
        ends = [(each.low, each.high) for each in found if each.low is not None and each.high is not None]
        low, high = zip(*ends, strict=True) if ends else (None, None)
        titles = [f"{named(model)}, round {n}: {text}" for n, text in zip(rounds, texts, strict=True)]
        drawn[named(model)] = Line(rounds, [each.mean for each in found], titles, COLOURS.get(model), low, high)
        cells.append([page.Cell(text, each.mean) for text, each in zip(texts, found, strict=True)])
    columns = [page.Column(name, True) for name in ("round", *drawn)]
    rows = [[str(n), *row] for n, *row in zip(rounds, *cells, strict=True)]
    return page.Figure(
        title,
        lines(drawn, ("round", title), f"loop-{key}", Scale(bottom=None, whole=True)),
        f"{title} along the rounds for {listed(models)}.",
        data=page.Table(f"{title} by round", columns, rows, sortable=False),
    )


def _text(found: Estimate, digits: int) -> str:
    interval = "" if found.low is None else f" [{found.low:,.{digits}f}, {found.high:,.{digits}f}]"
    return f"{found.mean:,.{digits}f}{interval}".replace("-", "−")
