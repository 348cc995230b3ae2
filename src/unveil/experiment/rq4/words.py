"""What the figures of RQ4 say, in sentences chosen by them. Real data have no truth: all is under a proxy."""

from collections.abc import Sequence

import numpy as np

from unveil.experiment.outcome import BASE, STANDARD
from unveil.experiment.reproduce.networks import networks
from unveil.experiment.reproduce.results import Figure
from unveil.experiment.reproduce.words import against_base, difference
from unveil.experiment.rq4.control import CONTROL
from unveil.experiment.rq4.flips import box
from unveil.experiment.rq4.proxies import proxies
from unveil.experiment.rq4.published import METRICS, PUBLISHED
from unveil.experiment.rq4.results import AS_IT_IS, RealResults
from unveil.experiment.rq4.run import RealAnswer
from unveil.experiment.rq4.tables import beside, protocols
from unveil.propensity.weights import WeightDiagnostics
from unveil.report.names import against, listed, named
from unveil.wording import quantity


def reading(answer: RealAnswer) -> list[str]:
    """Order, differences, what else tells arms apart, nearness to the paper, the control, the weights."""
    results = answer.results
    said = [_order(answer), _arms(results), networks(answer.plan), _near(answer), control(results), _weights(results)]
    return [*(paragraph for paragraph in said if paragraph), *proxies(answer.plan)]


def in_words(answer: RealAnswer) -> list[str]:
    """The reading, what flips, and what the intervals are over: all that a page says in sections of its own."""
    return [*reading(answer), *box(answer.results), caution(answer.results)]


def headline(results: RealResults) -> Figure:
    """The figure that the paper's conclusions are drawn from."""
    return Figure(STANDARD, results.sampled, "NDCG", 10)


def _order(answer: RealAnswer) -> str:
    results, figure = answer.results, headline(answer.results)
    every = [results.order(AS_IT_IS, figure._replace(protocol=name)) for name in protocols(results)]
    said = f"Ranked against {against(results.sampled)}, the order of the means by NDCG@10 is {listed(every[0])}"
    others = [
        f"against {against(name)} {listed(order)}"
        for name, order in zip(protocols(results)[1:], every[1:], strict=True)
    ]
    return f"{said}{_paper_order(answer)}; {'; '.join(others)}."


def _paper_order(answer: RealAnswer) -> str:
    if answer.data is None:
        return ""
    rows, place = PUBLISHED[answer.data].rows, METRICS.index(("NDCG", 10))
    arms = sorted((arm for arm in rows if arm in answer.results.trained), key=lambda arm: -rows[arm][place])
    return f" (the paper’s: {listed(arms)})" if len(arms) > 1 else ""


def _arms(results: RealResults) -> str:
    told = []
    for protocol in (results.sampled, "full"):
        tests = against_base(results, AS_IT_IS, Figure(STANDARD, protocol, "NDCG", 10))
        told.append(
            f"Against {against(protocol)}, by NDCG@10: {'; '.join(difference(*each) for each in tests.items())}."
        )
    return " ".join(told)


def _near(answer: RealAnswer) -> str:
    every = beside(answer)
    if not every:
        return "The paper has no figures for a log of this size."
    near = sum(each.near for each in every)
    ends = min(each.deviation for each in every), max(each.deviation for each in every)
    low, high = (f"{end:+.0%}".replace("-", "−") for end in ends)
    return (
        f"{near} of the {len(every)} figures of the paper’s table for {answer.data} lie within 5% of ours; ours are "
        f"{low} to {high} from them."
    )


def control(results: RealResults) -> str:
    """What avoiding popular items alone is worth under each ranking."""
    cells = results.every(AS_IT_IS, CONTROL)
    told = []
    for protocol in protocols(results):
        figure = Figure(STANDARD, protocol, "NDCG", 10)
        test = results.against(AS_IT_IS, CONTROL, BASE, figure)
        strengths = sorted({cell["strength"][protocol] for cell in cells})
        naive = results.estimate(AS_IT_IS, BASE, figure).mean
        share = f"{test.difference / naive if naive else 0.0:+.1%}".replace("-", "−")
        told.append(f"{share} with λ = {_range(strengths)} against {against(protocol)}")
    return (
        f"The control arm is the naive model after training, less λ · log popularity, λ chosen on the validation cases "
        f"under the ranking that is judged. It has learnt nothing more, so what it gains is what a ranking pays for "
        f"avoiding popular items: {', '.join(told)}, in NDCG@10.{_edge(results)}"
    )


def _range(strengths: Sequence[float]) -> str:
    ends = dict.fromkeys((strengths[0], strengths[-1]))
    return " to ".join(f"{strength:g}" for strength in ends)


def _edge(results: RealResults) -> str:
    cells = results.every(AS_IT_IS, CONTROL)
    if any(max(cell["strengths"]) in cell["strength"].values() for cell in cells):
        return " The largest λ of the grid was chosen somewhere: a larger one may gain more."
    return ""


def ess(results: RealResults, arm: str, name: str | None = None) -> float | None:
    """The effective sample as a share of the training events, averaged over cells; of the weights `name`d inside."""
    every = [cell["weights"] for cell in results.every(AS_IT_IS, arm) if cell["weights"] is not None]
    if not every:
        return None
    return float(np.mean([diagnostics(each, name).ess_share for each in every]))


def diagnostics(weights: dict[str, object], name: str | None = None) -> WeightDiagnostics:
    """The diagnostics of a cell's weights, as they were or as the paper writes them."""
    chosen = weights if name is None else weights[name]
    assert isinstance(chosen, dict)
    return WeightDiagnostics(**{key: value for key, value in chosen.items() if key != "as_written"})


def _weights(results: RealResults) -> str:
    told = [
        f"{named(arm)} {own:.1%} ({as_written:.1%} if weighted by 1/θ̂ as the paper writes it)"
        for arm in results.trained
        if (own := ess(results, arm)) is not None and (as_written := ess(results, arm, "as_written")) is not None
    ]
    return f"Effective sample of the weights, as a share of the training events: {', '.join(told)}." if told else ""


def caution(results: RealResults) -> str:
    """What the intervals and tests are over, and what they leave out."""
    if results.units == "replicates":
        return (
            f"Means over {results.replicates} replicates of one log, each with initial weights, batches, masks and "
            f"negatives of its own. All arms share the negatives, and arms of equal settings the rest. Intervals and "
            f"tests are Student’s t over replicates "
            f"({quantity(results.replicates - 1, 'degree')} of freedom); the users are the same in all of them."
        )
    return (
        "One training of each loss. Intervals are percentile bootstraps over users, tests paired t over users: they "
        "say how much users differ, not how much another training would. --replicates counts that in."
    )
