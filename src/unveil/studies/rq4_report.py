"""What RQ4 shows: which conclusions flip between rankings, what avoiding popular items is worth, and the weights."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any, Literal

import numpy as np

from unveil.evaluation.statistics import Paired, bootstrap, holm
from unveil.propensity.base import PROPENSITIES
from unveil.propensity.popularity import Popularity
from unveil.registry import Registry
from unveil.report.names import against, named
from unveil.report.page import Cell, Column, Figure, Table, count, percent, plain
from unveil.report.plots import Line, Scale, lines
from unveil.report.prose import p_value, signed
from unveil.studies.arms import Variant
from unveil.studies.diagnostics import Records, diagnostics, ess_share
from unveil.studies.engine import Answer
from unveil.studies.paper import Published
from unveil.studies.results import ALPHA, BASE, Estimate, Measure, Results
from unveil.studies.rq4_data import CONTROL
from unveil.training.fit import propensity_name
from unveil.training.recipe import Recipe

Verdict = Literal["above", "below", "level"]


@dataclass(frozen=True, eq=False)
class RealResults(Results):
    """Results of a real log: with one replicate, intervals are bootstraps over users. Shapes: U users, M measures."""

    @cached_property
    def arms(self) -> list[str]:
        """All arms, the control last."""
        found = dict.fromkeys(arm for values in self.values.values() for arm, _ in values)
        return sorted(found, key=lambda arm: arm == CONTROL)

    def estimate(self, arm: str, measure: Measure, level: float = 0.95) -> Estimate:
        """Mean and interval: Student's t over replicates; with one of them, percentile bootstrap over users."""
        if self.units == "users" and measure in self.ranked:
            return self._intervals[arm][measure]
        return super().estimate(arm, measure, level)

    @cached_property
    def _intervals(self) -> dict[str, dict[Measure, Estimate]]:
        return {arm: self._bootstrapped(arm) for arm in self.arms}

    def _bootstrapped(self, arm: str) -> dict[Measure, Estimate]:
        """All measures of an arm from the same resamples of its users."""
        value_UM = np.stack([self.sample(arm, measure) for measure in self.ranked], axis=1)
        low_M, high_M = bootstrap(value_UM, np.random.default_rng(0))
        found = zip(self.ranked, value_UM.mean(0), low_M, high_M, strict=True)
        return {
            measure: Estimate(float(mean), float(low), float(high), len(value_UM)) for measure, mean, low, high in found
        }


def results_of(answer: Answer) -> RealResults:
    """The results of an answer, made once."""
    if "real_results" not in answer.__dict__:
        answer.__dict__["real_results"] = RealResults.of(answer.frame)
    found: RealResults = answer.__dict__["real_results"]
    return found


@dataclass(frozen=True)
class Pair:
    """One arm against another under every ranking; p-values are corrected."""

    one: str
    other: str
    tests: Mapping[str, Paired]

    @property
    def verdicts(self) -> dict[str, Verdict]:
        """What a paired test allows to say under each ranking."""
        return {protocol: _verdict(test) for protocol, test in self.tests.items()}

    @property
    def steady(self) -> bool:
        """The same under all rankings."""
        return len(set(self.verdicts.values())) == 1

    @property
    def reverses(self) -> bool:
        """Significantly better under one ranking, significantly worse under another."""
        return {"above", "below"} <= set(self.verdicts.values())

    @property
    def turns(self) -> bool:
        """Above under one ranking and below under another by the means, significant or not."""
        means = [test.difference for test in self.tests.values()]
        return min(means) < 0 < max(means)

    def under(self, verdict: Verdict) -> list[str]:
        """The rankings with this verdict."""
        return [against(protocol) for protocol, each in self.verdicts.items() if each == verdict]

    def as_json(self) -> dict[str, Any]:
        """For results.json; an effect without bounds (all differences equal) is none."""
        return {
            "pair": [self.one, self.other],
            "verdicts": self.verdicts,
            "steady": self.steady,
            "reverses": self.reverses,
            "turns_in_the_means": self.turns,
            "tests": {
                name: {key: value if np.isfinite(value) else None for key, value in vars(test).items()}
                for name, test in self.tests.items()
            },
        }


def _verdict(test: Paired) -> Verdict:
    if not test.p < ALPHA:
        return "level"
    return "above" if test.difference > 0 else "below"


def pairs(results: Results, measure: Measure) -> list[Pair]:
    """All pairs of trained arms, the naive one and the control always second; Holm's correction over all tests."""
    arms = sorted(results.trained, key=lambda arm: {BASE: 2, CONTROL: 1}.get(arm, 0))
    raw = [
        Pair(one, other, {p: results.difference(one, other, measure._replace(protocol=p)) for p in results.protocols})
        for one, other in combinations(arms, 2)
    ]
    corrected = iter(holm(np.array([test.p for pair in raw for test in pair.tests.values()])).tolist())
    return [
        replace(pair, tests={name: replace(test, p=next(corrected)) for name, test in pair.tests.items()})
        for pair in raw
    ]


def doubted(results: Results, every: Sequence[Pair], measure: Measure) -> list[tuple[str, str]]:
    """Arm and protocol: significant where only each arm is tested against naive, and not among all tests of pairs."""
    found = []
    for protocol in results.protocols:
        alone = results.against(measure._replace(protocol=protocol))
        for pair in every:
            if pair.other == BASE and pair.verdicts[protocol] == "level" and _verdict(alone[pair.one]) != "level":
                found.append((pair.one, against(protocol)))
    return found


def pairs_table(results: Results, every: Sequence[Pair]) -> Table:
    """Every pair under every ranking."""
    columns = [
        Column("pair"),
        *(Column(against(name), True, "difference, 95% interval, p") for name in results.protocols),
    ]
    rows: list[list[Cell | str]] = [
        [f"{named(pair.one)} over {named(pair.other)}", *(_test(pair.tests[name]) for name in results.protocols)]
        for pair in every
    ]
    return Table("", columns, rows)


def _test(found: Paired) -> Cell:
    bounds = f"[{signed(found.low, 4)}, {signed(found.high, 4)}]"
    return Cell(f"{signed(found.difference, 4)} {bounds} {p_value(found.p)}", found.difference)


def _controls(answer: Answer) -> list[Mapping[str, Any]]:
    return [record[CONTROL] for record in answer.where(estimator=BASE)]


def control_gains(answer: Answer, results: Results) -> list[tuple[str, float, list[float]]]:
    """Protocol, relative gain of the control over naive, and the λ that were chosen."""
    found = []
    for protocol in answer.study.protocols:
        measure = answer.study.headline._replace(protocol=protocol)
        naive, gain = results.mean(BASE, measure), results.difference(CONTROL, BASE, measure).difference
        chosen = sorted({each["strength"][protocol] for each in _controls(answer)})
        found.append((protocol, gain / naive if naive else 0.0, chosen))
    return found


def control_table(answer: Answer, results: Results) -> Table:
    """The chosen λ and what it gives on the test cases."""
    rows: list[list[Cell | str]] = []
    for protocol in answer.study.protocols:
        measure = answer.study.headline._replace(protocol=protocol)
        strengths = [each["strength"][protocol] for each in _controls(answer)]
        naive, own = (results.mean(arm, measure) for arm in (BASE, CONTROL))
        chosen = Cell(", ".join(f"{each:g}" for each in strengths), float(np.mean(strengths)))
        gain = Cell(signed(own - naive, 4), own - naive)
        rows.append([against(protocol), chosen, Cell(f"{naive:.4f}", naive), Cell(f"{own:.4f}", own), gain])
    columns = [Column("ranked against"), Column("λ", True, "by replicate")]
    return Table("", [*columns, *(Column(title, True) for title in ("naive", "with λ", "difference"))], rows)


def control_figure(answer: Answer) -> Figure:
    """Each ranking's validation NDCG@10 along λ as a multiple of the naive model's: mean and range over replicates."""
    controls, strengths, drawn = _controls(answer), list(answer.study.strengths), {}
    for place, protocol in enumerate(answer.study.protocols):
        ratio_RS = np.array([np.array(c["along"][protocol]) / (c["along"][protocol][0] or 1) for c in controls])
        mean, low, high = (values.tolist() for values in (ratio_RS.mean(0), ratio_RS.min(0), ratio_RS.max(0)))
        titles = [f"{against(protocol)}, λ = {s:g}: {value:.2f}" for s, value in zip(strengths, mean, strict=True)]
        drawn[against(protocol)] = Line(strengths, mean, titles, place, low, high)
    said = "; ".join(f"{name} {', '.join(f'{value:.2f}' for value in line.y)}" for name, line in drawn.items())
    return Figure(
        "",
        lines(drawn, ("strength λ", "× naive"), "control", Scale(bottom=None)),
        f"Validation NDCG@10 at λ = {', '.join(f'{each:g}' for each in strengths)}: {said}.",
    )


def weights_table(trained: Mapping[str, Records]) -> Table:
    """What weighting does to the sample, also with the weights as the paper writes them."""
    rows: list[list[Cell | str]] = []
    for arm, records in trained.items():
        own, as_written = ess_share(records), ess_share(records, "as_written")
        if own is not None and as_written is not None:
            found = diagnostics(records[0]["weights"])
            shares = [percent(found.largest_share, 3), count(found.spread), percent(found.clipped)]
            rows.append([named(arm), percent(own), *shares, percent(as_written)])
    columns = [
        Column("estimator"),
        Column("effective sample", True, "(Σw)² / Σw², of the events"),
        Column("largest share", True, "max w / Σw"),
        Column("spread", True, "max w / min w"),
        Column("clipped", True, "of the events"),
        Column("effective sample with 1/θ̂", True, "as the paper writes it"),
    ]
    return Table("", columns, rows, sortable=False)


def settings_table(recipes: Mapping[str, Recipe], estimators: Registry[Any]) -> Table:
    """How each arm is trained."""
    heads = ("width", "blocks", "heads", "tokens", "batch", "dropout", "mask ρ", "epochs", "exponent", "clip of θ̂")
    rows: list[list[Cell | str]] = []
    for arm, recipe in recipes.items():
        network, task = recipe.model, recipe.task
        sizes = (network.width, getattr(network, "blocks", 0), getattr(network, "heads", 0), network.length)
        rest = (task.batch_size, network.dropout, task.mask_probability, recipe.training.epochs)
        known = estimators.options(Variant.of(arm).estimator)
        options = [
            recipe.estimator.get(name, default) if name in known else "–"
            for name, default in (("exponent", 1.0), ("clip", 0.0))
        ]
        shown = [each if isinstance(each, str) else plain(float(each)) for each in options]  # a clip may be 5%
        rows.append([named(arm), *(plain(value) for value in (*sizes, *rest)), *shown])
    return Table("", [Column("estimator"), *(Column(head, True) for head in heads)], rows, sortable=False)


def proxies(recipes: Mapping[str, Recipe]) -> dict[str, Any]:
    """What is used in place of exposure that nobody recorded: arms with popularity, and what the others assume."""
    used = {arm: name for arm, recipe in recipes.items() if (name := propensity_name(recipe)) is not None}
    popular = [arm for arm, name in used.items() if issubclass(PROPENSITIES[name], Popularity)]
    others = [
        (arm, name, str(getattr(PROPENSITIES[name], "assumes", ""))) for arm, name in used.items() if arm not in popular
    ]
    return {"popular": popular, "others": others, "recorded": any(not assumes for *_, assumes in others)}


def csv_rows(results: Results, published: Published, preset: str) -> list[dict[str, Any]]:
    """Rows of results.csv: one for each arm and measure."""
    rows = []
    for arm in results.arms:
        for measure in results.measures:
            found = results.estimate(arm, measure)
            rows.append(
                {
                    "estimator": arm,
                    "preset": preset,
                    "severity": None,
                    "protocol": measure.protocol,
                    "evaluation": measure.evaluation,
                    "metric": measure.metric,
                    "k": measure.k,
                    "mean": found.mean,
                    "low": found.low,
                    "high": found.high,
                    "replicates": results.replicates,
                    "worlds": 0,
                    "paper": published.figure(arm, measure),
                }
            )
    return rows
