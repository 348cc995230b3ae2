"""The figures of a loop along its rounds: what they are called, their tables and their plots."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from unveil.evaluation.statistics import Paired
from unveil.report.names import COLOURS, listed, named
from unveil.report.page import Block, Cell, Column, Figure, Figures, Table
from unveil.report.plots import Line, Scale, lines
from unveil.report.prose import Prose
from unveil.studies.results import Estimate, Measure, Results, corrected
from unveil.wording import quantity

#: The figure that conclusions are drawn from.
HEADLINE = "efd"


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


def measure_of(key: str, k: int) -> Measure:
    """A figure as a measure of the long frame."""
    return Measure(FIGURES[key].group, "loop", key, k)


@dataclass(frozen=True, eq=False)
class Outcome:
    """The figures by round. Some are missing: no item is chosen in round 0, a rule has no loss, a log no ground truth.

    A figure is there if all replicates have it.
    """

    results: Results
    k: int

    @property
    def models(self) -> list[str]:
        """In the order in which they were named."""
        return self.results.arms

    @property
    def rounds(self) -> int:
        """The last one."""
        return int(self.results.along("round")[-1])

    @cached_property
    def figures(self) -> list[str]:
        """The figures that are there, in the order of the page."""
        return [key for key in FIGURES if self.models_of(key)]

    @property
    def plotted(self) -> list[str]:
        """The figures that are there in more than one round."""
        return [key for key in self.figures if len(self.rounds_of(key)) > 1]

    def title(self, key: str) -> str:
        """EFD@10."""
        return FIGURES[key].title.format(k=self.k)

    def models_of(self, key: str) -> list[str]:
        """The models that have a figure in some round."""
        return [model for model in self.models if any(self._has(model, key, n) for n in range(self.rounds + 1))]

    def rounds_of(self, key: str) -> list[int]:
        """The rounds in which all of these models have it: training may be rarer than rounds."""
        models = self.models_of(key)
        return [n for n in range(self.rounds + 1) if all(self._has(model, key, n) for model in models)]

    def _has(self, model: str, key: str, round: int) -> bool:
        found = self.results.values[(("round", round),)].get((model, measure_of(key, self.k)), ())
        return len(found) == self.results.replicates

    def estimate(self, model: str, key: str, round: int | None = None) -> Estimate:
        """The mean over replicates and its 95% interval, in the last round if none is named."""
        here = self.results.at(round=self.rounds if round is None else round)
        return here.estimate(model, measure_of(key, self.k))

    def changes(self, key: str) -> dict[str, float]:
        """Of every model the mean of the last round less that of the first one that has the figure."""
        first, *_, last = self.rounds_of(key)
        return {m: self.estimate(m, key, last).mean - self.estimate(m, key, first).mean for m in self.models}

    def order(self, key: str, round: int | None = None) -> list[str]:
        """The models that have the figure, highest mean first."""
        return sorted(self.models_of(key), key=lambda model: -self.estimate(model, key, round).mean)

    def differences(self) -> dict[str, Paired]:
        """EFD of the other models less that of the first in the last round, replicate by replicate; p after Holm."""
        last, measure, (base, *others) = self.results.at(round=self.rounds), measure_of(HEADLINE, self.k), self.models
        return dict(zip(others, corrected(last.difference(each, base, measure) for each in others), strict=True))

    def above(self, one: str, other: str) -> int:
        """In how many rounds the mean EFD of one model is higher than another's."""
        every = range(self.rounds + 1)
        return sum(self.estimate(one, HEADLINE, n).mean > self.estimate(other, HEADLINE, n).mean for n in every)


def csv_rows(results: Results, k: int, same: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A row for each figure, model and round, with what is the `same` in all."""
    outcome = Outcome(results, k)
    return [
        {
            "estimator": model,
            "severity": None,
            **measure_of(key, k)._asdict(),
            "round": round,
            "mean": found.mean,
            "low": found.low,
            "high": found.high,
            "replicates": found.n,
            "paper": None,
            **same,
        }
        for key in outcome.figures
        for model in outcome.models_of(key)
        for round in outcome.rounds_of(key)
        for found in [outcome.estimate(model, key, round)]
    ]


def ends_table(outcome: Outcome, *, last_only: bool = False) -> Table:
    """Every figure in the first round and in the last."""
    keys = [key for key in outcome.plotted if FIGURES[key].group != "training"]
    rows: list[list[Cell | str]] = [
        [outcome.title(key), *(_from_to(outcome, model, key, last_only) for model in outcome.models)] for key in keys
    ]
    over = quantity(outcome.results.replicates, "replicate")
    caption = f"{'' if last_only else 'First round → '}round {outcome.rounds}: means over {over}"
    columns = [Column("figure"), *(Column(named(model), True) for model in outcome.models)]
    return Table(caption, columns, rows, sortable=False)


def _from_to(outcome: Outcome, model: str, key: str, last_only: bool) -> Cell | str:
    if model not in outcome.models_of(key):
        return "–"
    rounds, digits = outcome.rounds_of(key), FIGURES[key].digits
    shown = [outcome.estimate(model, key, n).mean for n in ([] if last_only else rounds[:1]) + rounds[-1:]]
    return Cell(" → ".join(f"{mean:,.{digits}f}" for mean in shown), shown[-1])


def figures(outcome: Outcome, template: str) -> dict[str, Block]:
    """Every figure along the rounds, by group; the template has a line on each."""
    about, groups = Prose([template], {"k": outcome.k}), dict[str, list[Figure]]()
    for key in outcome.plotted:
        groups.setdefault(FIGURES[key].group, []).append(_figure(outcome, key, about.line(key)))
    return {group: Figures(found) for group, found in groups.items()}


def _figure(outcome: Outcome, key: str, caption: str) -> Figure:
    title, models, rounds = outcome.title(key), outcome.models_of(key), outcome.rounds_of(key)
    found = {model: [outcome.estimate(model, key, n) for n in rounds] for model in models}
    drawn = {named(model): _line(model, rounds, found[model], FIGURES[key].digits) for model in models}
    rows: list[list[Cell | str]] = [
        [str(n), *(Cell(_text(found[model][place], FIGURES[key].digits), found[model][place].mean) for model in models)]
        for place, n in enumerate(rounds)
    ]
    columns = [Column("round", True), *(Column(named(model), True) for model in models)]
    return Figure(
        title,
        lines(drawn, ("round", title), f"loop-{key}", Scale(bottom=None, whole=True)),
        f"{title} along the rounds for {listed(models)}.",
        caption,
        Table(f"{title} by round", columns, rows, sortable=False),
    )


def _line(model: str, rounds: Sequence[int], found: Sequence[Estimate], digits: int) -> Line:
    """A model's means along the rounds, with a band where there are replicates."""
    titles = [f"{named(model)}, round {n}: {_text(each, digits)}" for n, each in zip(rounds, found, strict=True)]
    ends = [(each.low, each.high) for each in found if each.low is not None and each.high is not None]
    low, high = zip(*ends, strict=True) if ends else (None, None)
    return Line(rounds, [each.mean for each in found], titles, COLOURS.get(model), low, high)


def _text(found: Estimate, digits: int) -> str:
    """A mean with its interval where it has one."""
    interval = "" if found.low is None else f" [{found.low:,.{digits}f}, {found.high:,.{digits}f}]"
    return f"{found.mean:,.{digits}f}{interval}".replace("-", "−")
