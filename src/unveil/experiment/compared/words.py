"""What a report says of its runs, in words that are chosen by the figures."""

from collections.abc import Sequence

import numpy as np

from unveil.experiment.compared.results import protocols, row_of
from unveil.experiment.compared.run import Report
from unveil.experiment.compared.side import Side
from unveil.runs.dial import Point

_FULL = "full"
TARGETS = (
    "The targets are what users took, and to be taken an item had to be shown: a run that corrects for exposure may "
    "lose here and still be nearer to what users would like."
)
CAUTION = f"{TARGETS} Intervals are over users; another seed would give other models."


def reading(report: Report) -> list[str]:
    """The conclusions, each a paragraph."""
    paragraphs = [*standing(report), _novelty(report), _alike(report), _belief(report)]
    return [paragraph for paragraph in paragraphs if paragraph]


def standing(side: Side) -> list[str]:
    """Who is best among all items, and whether every protocol says so."""
    return [_accuracy(side), _protocols(side)]


def caution(report: Report) -> str:
    """What the figures do not say."""
    proxy = [run.name for run in report.runs if run.about["by_proxy"]]
    return f"{CAUTION} In {', '.join(proxy)} popularity stands in for exposure." if proxy else CAUTION


def _ranking(side: Side, protocol: str) -> list[int]:
    """Places of the runs, best NDCG@10 first."""
    return sorted(range(len(side.names)), key=lambda place: -row_of(side, place, protocol, "NDCG@10")["mean"])


def _accuracy(side: Side) -> str:
    best, *others = _ranking(side, _FULL)
    row = row_of(side, best, _FULL, "NDCG@10")
    span = f"{row['mean']:.3f} (95% interval {row['low']:.3f} to {row['high']:.3f}, {row['n']:,} users)"
    if not others:
        return f"Among all items, {side.names[best]} has an NDCG@10 of {span}."
    second = row_of(side, others[0], _FULL, "NDCG@10")
    return (
        f"Among all items, {side.names[best]} has the highest NDCG@10, {span}; {side.names[others[0]]} comes next "
        f"with {second['mean']:.3f}, and {_difference(side, best, others[0])}."
    )


def _difference(side: Side, one: int, other: int) -> str:
    assert side.comparison is not None
    pair = {side.names[one], side.names[other]}
    rows = side.comparison.tests.iter_rows(named=True)
    p = next(
        row["p_holm"]
        for row in rows
        if (row["protocol"], row["metric"], row["k"]) == (_FULL, "NDCG", 10) and {row["a"], row["b"]} == pair
    )
    size = "below 0.001" if p < 0.001 else f"{p:.3f}"
    return f"the difference is {'more than' if p < side.comparison.alpha else 'within'} chance (p {size}, corrected)"


def _protocols(side: Side) -> str:
    order = {protocol: _ranking(side, protocol) for protocol in protocols(side)}
    other = [protocol for protocol, found in order.items() if found != order[_FULL]]
    if len(side.names) < 2 or len(order) < 2:
        return ""
    if not other:
        return "Every protocol puts the runs in the same order."
    told = "; ".join(f"{name}: {', '.join(side.names[place] for place in order[name])}" for name in (_FULL, *other))
    return f"The order of the runs hangs on the protocol ({told}). Full ranking asks what a user would see."


def _novelty(report: Report) -> str:
    """Whether a more novel run beats the dial of the most accurate one."""
    dials = {name: found.dial for name, found in report.measured.items() if found.dial}
    if len(dials) < 2:
        return ""
    base = report.names[_ranking(report, _FULL)[0]]
    novel = max(dials, key=lambda name: dials[name][0]["surprise"])
    if novel == base:
        return f"The lists of {base} are also the most novel: {dials[base][0]['surprise']:.2f} bits an item."
    own, there = dials[novel][0], at_novelty(dials[base], dials[novel][0]["surprise"])
    said = (
        f"{novel} lists the least popular items, {own['surprise']:.2f} bits each, at an NDCG@10 of {own['ndcg']:.3f}."
    )
    if there is None:
        return f"{said} The dial of {base} does not reach that far."
    verdict = "more" if there > own["ndcg"] else "less" if there < own["ndcg"] else "as much"
    return f"{said} Turned to the same novelty, the dial of {base} gives {there:.3f}: {verdict}, without training anew."


def at_novelty(points: Sequence[Point], surprise: float) -> float | None:
    """NDCG of a dial where its lists are so surprising, on straight lines between the points; None beyond them."""
    order = sorted(points, key=lambda point: point["surprise"])
    x, y = ([point[name] for point in order] for name in ("surprise", "ndcg"))
    return float(np.interp(surprise, x, y)) if x[0] <= surprise <= x[-1] else None


def _alike(report: Report) -> str:
    if report.shared is None:
        return ""
    return f"Of ten listed items two runs have {10 * report.shared:.1f} in common, mean over users and pairs of runs."


def _belief(report: Report) -> str:
    found = {name: each.calibration for name, each in report.measured.items()}
    best, worst = (pick(found, key=lambda name: found[name].first.error) for pick in (min, max))
    if best == worst:
        return f"Of its first places {best} is off by {found[best].first.error:.1%} on average (ECE)."
    return (
        f"What is promised of the first place is off by {found[best].first.error:.1%} on average (ECE) in {best} and "
        f"by {found[worst].first.error:.1%} in {worst}."
    )
